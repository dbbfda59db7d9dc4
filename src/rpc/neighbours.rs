//! Between replicas in plain text, which only processes of this machine can speak: the kernel tells whose each connection
//! is, so that no other user can speak for a replica. With certificates nothing of this is needed.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use netlink_packet_core::{NLM_F_REQUEST, NetlinkHeader, NetlinkMessage, NetlinkPayload};
use netlink_packet_sock_diag::SockDiagMessage::{self, InetResponse};
use netlink_packet_sock_diag::constants::{AF_INET, AF_INET6, IPPROTO_TCP, TCP_ESTABLISHED};
use netlink_packet_sock_diag::inet::{ExtensionFlags, InetRequest, InetResponseHeader, SocketId, StateFlags};
use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;
use tokio::net::TcpStream;

use super::users::Users;
use crate::admission::{Porter, Who};
use crate::replica::deeds::{Deeds, Refused};

/// What the kernel says of a connection that no process holds any more; its user is then said to be root.
const NOBODY_HOLDS_IT: u32 = 0;
/// Whichever connection has these ends.
const ANY_COOKIE: [u8; 8] = [0xff; 8];

/// Lets in those of whom another porter lets in that are connections of root and the replica's own user.
pub struct Neighbours<P> {
    porter: P,
    users: Users,
    deeds: Arc<Deeds>,
}

impl<P> Neighbours<P> {
    pub fn of(porter: P, deeds: Arc<Deeds>) -> Self {
        Self { porter, users: Users::own_and(&[]), deeds }
    }
}

impl<P: Porter<TcpStream>> Porter<TcpStream> for Neighbours<P> {
    type Guest = P::Guest;

    async fn meet(&self, stream: TcpStream, who: Who) -> Option<P::Guest> {
        let ends = stream.peer_addr().ok().zip(stream.local_addr().ok())?;
        let guest = self.porter.meet(stream, who).await?;
        let (who, why) = match owner_of(ends) {
            Ok(Some(uid)) if self.users.may(uid) => return Some(guest),
            Ok(Some(uid)) => (format!("uid {uid}"), String::new()),
            Ok(None) => ("nobody known".into(), String::new()),
            Err(error) => ("nobody known".into(), format!("; the kernel cannot be asked ({error}), use certificates")),
        };
        self.deeds.refusals.note(Refused::Neighbour, &who, None, &format!("a connection from {}{why}", ends.0));
        None
    }

    fn gave_up(&self, who: Who) {
        self.porter.gave_up(who);
    }
}

/// Whose the other end of a connection is, as the kernel says at once (`man 7 sock_diag`).
fn owner_of((theirs, ours): (SocketAddr, SocketAddr)) -> io::Result<Option<u32>> {
    let (theirs, ours) = (plain(theirs), plain(ours));
    let request = InetRequest {
        family: if theirs.is_ipv4() { AF_INET } else { AF_INET6 },
        protocol: IPPROTO_TCP,
        extensions: ExtensionFlags::empty(),
        states: StateFlags::ESTABLISHED,
        socket_id: SocketId {
            source_address: theirs.ip(),
            source_port: theirs.port(),
            destination_address: ours.ip(),
            destination_port: ours.port(),
            interface_id: 0,
            cookie: ANY_COOKIE,
        },
    };
    let ends = |id: &SocketId| (id.source_address, id.source_port, id.destination_address, id.destination_port);
    let wanted = ends(&request.socket_id);
    let mut header = NetlinkHeader::default();
    header.flags = NLM_F_REQUEST;
    let mut message = NetlinkMessage::new(header, SockDiagMessage::InetRequest(request).into());
    message.finalize();
    let mut bytes = vec![0; message.buffer_len()];
    message.serialize(&mut bytes);

    let kernel = Socket::new(NETLINK_SOCK_DIAG)?;
    // The answer is there as soon as the question is asked.
    kernel.set_non_blocking(true)?;
    kernel.send_to(&bytes, &netlink_sys::SocketAddr::new(0, 0), 0)?;
    let (answer, _) = kernel.recv_from_full()?;
    match NetlinkMessage::deserialize(&answer).map_err(io::Error::other)?.payload {
        // Of a listener, where there is no such connection.
        NetlinkPayload::InnerMessage(InetResponse(told)) if ends(&told.header.socket_id) != wanted => Ok(None),
        NetlinkPayload::InnerMessage(InetResponse(told)) => Ok(holder(&told.header)),
        NetlinkPayload::Error(error) if error.to_io().kind() == io::ErrorKind::NotFound => Ok(None),
        NetlinkPayload::Error(error) => Err(error.to_io()),
        _ => Err(io::Error::other("the kernel answers something else")),
    }
}

fn holder(told: &InetResponseHeader) -> Option<u32> {
    (told.state == TCP_ESTABLISHED && told.inode != NOBODY_HOLDS_IT).then_some(told.uid)
}

fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use nix::unistd::geteuid;
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn the_kernel_tells_whose_a_connection_is_until_its_process_lets_go_of_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address).await else { continue };
            let theirs = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (ours, from) = listener.accept().await.unwrap();
            let ends = (from, ours.local_addr().unwrap());
            assert_eq!(owner_of(ends).unwrap(), Some(geteuid().as_raw()));
            assert_eq!(owner_of((ends.0, SocketAddr::new(ends.1.ip(), 1))).unwrap(), None, "another connection's");
            let of_the_listener = (ends.1, SocketAddr::new(ends.0.ip(), 1));
            assert_eq!(owner_of(of_the_listener).unwrap(), None, "what answers for it is a listener");
            drop(theirs);
            assert_eq!(owner_of(ends).unwrap(), None);
        }
    }

    #[test]
    fn a_connection_that_no_process_holds_is_nobodys_though_the_kernel_says_root() {
        let told = |state, uid, inode| {
            let socket_id = SocketId::new_v4();
            let (timer, recv_queue, send_queue) = (None, 0, 0);
            holder(&InetResponseHeader { family: AF_INET, state, timer, socket_id, recv_queue, send_queue, uid, inode })
        };
        assert_eq!(told(TCP_ESTABLISHED, 1000, 77), Some(1000));
        assert_eq!(told(TCP_ESTABLISHED, 0, 0), None);
        assert_eq!(told(TCP_ESTABLISHED + 3, 0, 77), None);
    }
}
