//! Connections that come in from other replicas: a handshake has little time, and there are few at once.

use std::io;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::chain;
use super::connection::Connection;
use super::credentials::Credentials;
use super::refusal::Refusal;
use crate::admission::{Door, Incoming, Places, Porter, Who, incoming as meet};

/// Each of 100 replicas has one, and `doctor` another for a moment.
const CONNECTIONS: usize = 512;

/// Those that show a certificate of this cluster, until `stop`.
pub fn incoming(listener: TcpListener, credentials: Arc<Credentials>, stop: CancellationToken) -> Incoming<Connection> {
    meet(listener, Door::default(), Replicas { credentials, places: Places::in_all(CONNECTIONS) }, stop)
}

struct Replicas {
    credentials: Arc<Credentials>,
    places: Places,
}

impl Porter<TcpStream> for Replicas {
    type Guest = Connection;

    async fn meet(&self, stream: TcpStream, who: Who) -> Option<Connection> {
        let met = self.handshake(stream, who).await;
        met.map_err(|refusal| self.credentials.refused(&who.to_string(), &refusal)).ok()
    }

    fn gave_up(&self, who: Who) {
        self.credentials.refused(&who.to_string(), &Refusal::Unfinished);
    }
}

impl Replicas {
    async fn handshake(&self, stream: TcpStream, who: Who) -> Result<Connection, Refusal> {
        let config = self.credentials.to_be_dialled().map_err(|error| Refusal::Other(error.to_string()))?;
        let stream = TlsAcceptor::from(config).accept(stream).await.map_err(|error: io::Error| Refusal::of(&error))?;
        let certificates = stream.get_ref().1.peer_certificates();
        let names = chain::names(certificates.and_then(<[_]>::first).ok_or(Refusal::NoCertificate)?)?;
        let place = self.places.enter(Who::Anybody).ok_or(Refusal::TooMany)?;
        let caller = Caller::new(self.credentials.clone(), names, &who.to_string());
        Ok(Connection::new(stream, caller, Some(place)))
    }
}
