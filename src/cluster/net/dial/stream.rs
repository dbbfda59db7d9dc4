//! TCP connections that end soon after the other machine is gone. The kernel does the detection, which wakes no task.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;

/// The idle time before the first TCP keepalive probe, and the interval of further probes.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// The time without an acknowledgement after which a machine is gone. Otherwise the kernel retransmits at growing
/// intervals, and the recovery of a network is detected late.
const GONE_AFTER: Duration = Duration::from_secs(3);

/// Opens a connection to another replica.
///
/// # Errors
/// The error of the kernel.
pub async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(ASKED_EVERY).with_interval(ASKED_EVERY))?;
    socket.set_tcp_user_timeout(Some(GONE_AFTER))?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_kernel_gives_up_a_machine_that_acknowledges_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = connect(listener.local_addr().unwrap()).await.unwrap();
        let socket = SockRef::from(&stream);
        assert_eq!(socket.tcp_user_timeout().unwrap(), Some(GONE_AFTER));
        let asked = [socket.tcp_keepalive_time().unwrap(), socket.tcp_keepalive_interval().unwrap()];
        assert!(socket.keepalive().unwrap() && stream.nodelay().unwrap());
        assert_eq!(asked, [ASKED_EVERY; 2]);
    }
}
