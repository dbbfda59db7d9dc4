//! Clients that say nothing, take too long, or are one too many.

use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::*;

fn porter(most: usize) -> Http2 {
    Http2 { places: ConnectionLimit::in_all(most), paces: None, turned_away: RejectionLog::at("a test") }
}

async fn listener() -> (TcpListener, std::net::SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, address)
}

#[tokio::test]
async fn who_says_nothing_gives_way_to_who_comes() {
    let (listener, address) = listener().await;
    let door = HandshakeGate { within: Duration::from_mins(1), most: 4 };
    let mut guests = incoming(listener, door, porter(1), CancellationToken::new());
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(TcpStream::connect(address).await.expect("a connection"));
    }
    let mut talks = TcpStream::connect(address).await.expect("a connection");
    talks.write_all(&[1; PREFACE_BYTES]).await.expect("room");
    let mut guest = guests.0.recv().await.expect("a guest");
    assert_eq!(guest.read_u8().await.ok(), Some(1));
    // The first connections have been closed.
    assert_eq!(silent[0].read(&mut [0]).await.ok(), Some(0));
}

#[tokio::test]
async fn who_takes_too_long_and_who_is_one_too_many_are_turned_away() {
    let (listener, address) = listener().await;
    let door = HandshakeGate { within: Duration::from_millis(500), most: 4 };
    let (too_many, mut porter) = (Arc::new(AtomicUsize::new(0)), porter(1));
    let counted = too_many.clone();
    porter.turned_away = porter.turned_away.counted(move || {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let mut guests = incoming(listener, door, porter, CancellationToken::new());
    let mut slow = TcpStream::connect(address).await.expect("a connection");
    slow.write_all(&[1; PREFACE_BYTES - 1]).await.expect("room");
    assert!(matches!(slow.read(&mut [0]).await, Ok(0) | Err(_)), "it was let in");
    let mut first = TcpStream::connect(address).await.expect("a connection");
    first.write_all(&[1; PREFACE_BYTES]).await.expect("room");
    let guest = guests.0.recv().await;
    let mut second = TcpStream::connect(address).await.expect("a connection");
    second.write_all(&[1; PREFACE_BYTES]).await.expect("room");
    assert!(matches!(second.read(&mut [0]).await, Ok(0) | Err(_)), "it was let in");
    assert_eq!(too_many.load(Ordering::Relaxed), 1, "who takes too long is not one too many");
    drop(guest);
}

/// Accepts whoever sends a byte, and takes it as a proof.
struct Certain;

impl Acceptor<TcpStream> for Certain {
    type Guest = TcpStream;
    const IS_PROOF: bool = true;

    async fn accept(&self, mut stream: TcpStream, _: ClientKey) -> Option<TcpStream> {
        stream.read_u8().await.ok().map(|_| stream)
    }

    fn rejected(&self, _: ClientKey) {}
}

async fn from(last: u8, to: std::net::SocketAddr) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::new(127, 0, 8, last), 0).into()).expect("an address");
    socket.connect(to).await.expect("a connection")
}

#[tokio::test]
async fn strangers_in_any_number_keep_nobody_out_that_has_proved_who_it_is() {
    let (listener, address) = listener().await;
    let door = HandshakeGate { within: Duration::from_mins(1), most: 4 };
    let mut guests = incoming(listener, door, Certain, CancellationToken::new());
    from(1, address).await.write_all(&[1]).await.expect("room");
    guests.0.recv().await.expect("a guest");
    let mut slow = from(1, address).await;
    let mut strangers = Vec::new();
    for last in 2..22 {
        strangers.push(from(last, address).await);
    }
    assert_eq!(strangers[0].read(&mut [0]).await.ok(), Some(0), "the gate is full");
    slow.write_all(&[1]).await.expect("room");
    let met = timeout(Duration::from_secs(10), guests.0.recv()).await.expect("it was kept out");
    met.expect("a guest");
}
