//! TLS connections from other replicas. A handshake has a short limit, and few run at a time.

use std::io;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::chain;
use super::connection::TlsConnection;
use super::credentials::Credentials;
use super::handshake_error::HandshakeError;
use crate::net::limits::{
    Acceptor, BoundedConnection, ClientKey, ConnectionLimit, HandshakeGate, Incoming, by_frames, incoming as meet,
};

/// Each of 100 replicas has one connection, and `doctor` another for a short time.
const CONNECTIONS: usize = 512;
/// The maximum for one certificate: a replica with repeated disconnections leaves some connections behind, which take a
/// while to end.
const CONNECTIONS_OF_A_CERTIFICATE: usize = 16;
/// The bytes encrypted and not read yet, of each connection.
const UNREAD: usize = 16 << 10;

/// Accepts connections with a certificate of this cluster, until `stop`.
pub fn incoming(
    listener: TcpListener,
    credentials: Arc<Credentials>,
    stop: CancellationToken,
) -> Incoming<BoundedConnection<TlsConnection>> {
    let places = ConnectionLimit::new(CONNECTIONS, |_| CONNECTIONS_OF_A_CERTIFICATE);
    meet(listener, HandshakeGate::default(), Replicas { credentials, places }, stop)
}

struct Replicas {
    credentials: Arc<Credentials>,
    /// By the names in the certificate.
    places: ConnectionLimit<Arc<str>>,
}

impl Acceptor<TcpStream> for Replicas {
    type Guest = BoundedConnection<TlsConnection>;
    /// The certificate.
    const IS_PROOF: bool = true;

    async fn accept(&self, stream: TcpStream, who: ClientKey) -> Option<BoundedConnection<TlsConnection>> {
        let met = self.handshake(stream, who).await;
        met.map_err(|refusal| self.credentials.refused(&who.to_string(), &refusal)).ok()
    }

    fn rejected(&self, who: ClientKey) {
        self.credentials.refused(&who.to_string(), &HandshakeError::Unfinished);
    }
}

impl Replicas {
    async fn handshake(
        &self,
        stream: TcpStream,
        who: ClientKey,
    ) -> Result<BoundedConnection<TlsConnection>, HandshakeError> {
        let config = self.credentials.to_be_dialled().map_err(|error| HandshakeError::Other(error.to_string()))?;
        let met = TlsAcceptor::from(config).accept(stream).await;
        let mut stream = met.map_err(|error: io::Error| HandshakeError::of(&error))?;
        stream.get_mut().1.set_buffer_limit(Some(UNREAD));
        let certificates = stream.get_ref().1.peer_certificates();
        let names = chain::names(certificates.and_then(<[_]>::first).ok_or(HandshakeError::NoCertificate)?)?;
        let place = self.places.acquire(names.to_string().into()).ok_or(HandshakeError::TooMany)?;
        let caller = Caller::new(self.credentials.clone(), names, &who.to_string());
        Ok(by_frames(TlsConnection::new(stream, caller), place))
    }
}
