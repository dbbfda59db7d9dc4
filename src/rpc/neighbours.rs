//! Between replicas in plain text, which only processes of this machine can speak: the kernel tells whose each connection
//! is, so that no other user can speak for a replica. With certificates nothing of this is needed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::users::Users;
use crate::admission::{Porter, Who};
use crate::replica::deeds::{Deeds, Refused};

/// The kernel's lists of connections.
const LISTS: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];
const ESTABLISHED: &str = "01";
/// What the kernel says of a connection that no process holds any more; its user is then said to be root.
const NOBODY_HOLDS_IT: &str = "0";
/// A list that is read while connections come and go may miss one.
const READ_AT_MOST: usize = 3;

/// Lists that are read at once, however many connect.
const READERS: usize = 4;

/// Lets in those of whom another porter lets in that are connections of root and the replica's own user.
pub struct Neighbours<P> {
    porter: P,
    users: Users,
    deeds: Arc<Deeds>,
    readers: Arc<Semaphore>,
}

impl<P> Neighbours<P> {
    pub fn of(porter: P, deeds: Arc<Deeds>) -> Self {
        Self { porter, users: Users::own_and(&[]), deeds, readers: Arc::new(Semaphore::new(READERS)) }
    }
}

impl<P: Porter<TcpStream>> Porter<TcpStream> for Neighbours<P> {
    type Guest = P::Guest;

    async fn meet(&self, stream: TcpStream, who: Who) -> Option<P::Guest> {
        let ends = stream.peer_addr().ok().zip(stream.local_addr().ok())?;
        let guest = self.porter.meet(stream, who).await?;
        let reader = self.readers.clone().acquire_owned().await.ok()?;
        let reading = move || {
            let owner = owner_of(ends);
            drop(reader);
            owner
        };
        // Long lists take a while.
        let owner = tokio::task::spawn_blocking(reading).await.ok().flatten();
        if owner.is_some_and(|uid| self.users.may(uid)) {
            return Some(guest);
        }
        let who = owner.map_or_else(|| "nobody known".into(), |uid| format!("uid {uid}"));
        self.deeds.refusals.note(Refused::Neighbour, &who, None, &format!("a connection from {}", ends.0));
        None
    }

    fn gave_up(&self, who: Who) {
        self.porter.gave_up(who);
    }
}

fn owner_of((theirs, ours): (SocketAddr, SocketAddr)) -> Option<u32> {
    let mut lists =
        std::iter::repeat_n(LISTS, READ_AT_MOST).flatten().filter_map(|list| std::fs::read_to_string(list).ok());
    lists.find_map(|list| owner_in(&list, theirs, ours))
}

/// Whose end of a connection this is.
fn owner_in(list: &str, theirs: SocketAddr, ours: SocketAddr) -> Option<u32> {
    list.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, local, remote, state, _, _, _, uid, _, inode, ..] = words[..] else { return None };
        let is_it = state == ESTABLISHED && inode != NOBODY_HOLDS_IT;
        (is_it && address(local)? == plain(theirs) && address(remote)? == plain(ours))
            .then(|| uid.parse().ok())
            .flatten()
    })
}

/// As `0100007F:1D0C`: words of the machine's own order of bytes, and a port.
fn address(shown: &str) -> Option<(IpAddr, u16)> {
    let (ip, port) = shown.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |place: usize| Some(u32::from_str_radix(ip.get(place * 8..place * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let ip: IpAddr = if ip.len() == 8 {
        Ipv4Addr::from(word(0)?).into()
    } else {
        let words = [word(0)?, word(1)?, word(2)?, word(3)?];
        Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?).into()
    };
    Some((ip.to_canonical(), port))
}

fn plain(address: SocketAddr) -> (IpAddr, u16) {
    (address.ip().to_canonical(), address.port())
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
            assert_eq!(owner_of(ends), Some(geteuid().as_raw()));
            assert_eq!(owner_of((ends.0, SocketAddr::new(ends.1.ip(), 1))), None, "another connection's");
            drop(theirs);
            assert_eq!(owner_of(ends), None);
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn a_connection_that_no_process_holds_is_nobodys_though_the_kernel_says_root() {
        let line = |state: &str, uid: u32, inode: u32| {
            format!(
                "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                 1: 0100007F:9C40 0300007F:1CFC {state} 00000000:00000000 00:00000000 00000000 {uid} 0 {inode} 2 0 20 4\n"
            )
        };
        let owner = |list: &str| owner_in(list, "127.0.0.1:40000".parse().unwrap(), "127.0.0.3:7420".parse().unwrap());
        assert_eq!(owner(&line("01", 1000, 77)), Some(1000));
        assert_eq!(owner(&line("01", 0, 0)), None);
        assert_eq!(owner(&line("04", 0, 77)), None);
        assert_eq!(owner("nonsense\n 1: x y 01 a b c 0 0 5\n 1: é:1 é:1 01 a b c 0 0 5\n"), None);
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let read = |shown| address(shown).map(|(ip, port)| SocketAddr::new(ip, port).to_string());
        assert_eq!(read("0100007F:1CFC").as_deref(), Some("127.0.0.1:7420"));
        assert_eq!(read("00000000000000000000000001000000:0050").as_deref(), Some("[::1]:80"));
        assert_eq!(read("0000000000000000FFFF00000100007F:0050").as_deref(), Some("127.0.0.1:80"));
        assert_eq!((read("0100007F"), read("xyz:1"), read("0100007F00:0050")), (None, None, None));
    }
}
