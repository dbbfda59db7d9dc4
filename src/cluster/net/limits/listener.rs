//! Listeners, and the client of a connection as far as known to the system.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// The clients that are counted together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ClientKey {
    User(u32),
    Address(IpAddr),
    /// All clients together.
    Anybody,
}

impl ClientKey {
    pub(super) fn of(address: SocketAddr) -> Self {
        Self::Address(address.ip().to_canonical())
    }
}

impl fmt::Display for ClientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "uid {uid}"),
            Self::Address(address) => address.fmt(f),
            Self::Anybody => f.write_str("anybody"),
        }
    }
}

pub trait Listener: Send + Sync + 'static {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, ClientKey)>> + Send;
}

impl Listener for TcpListener {
    type Stream = TcpStream;

    async fn accept(&self) -> io::Result<(TcpStream, ClientKey)> {
        let (stream, from) = Self::accept(self).await?;
        // Without `TCP_NODELAY` every write stalls on delayed acknowledgements. An error means a closed connection.
        let _ = stream.set_nodelay(true);
        Ok((stream, ClientKey::of(from)))
    }
}

impl Listener for UnixListener {
    type Stream = UnixStream;

    async fn accept(&self) -> io::Result<(UnixStream, ClientKey)> {
        let (stream, _) = Self::accept(self).await?;
        let who = stream.peer_cred().map_or(ClientKey::Anybody, |peer| ClientKey::User(peer.uid()));
        Ok((stream, who))
    }
}
