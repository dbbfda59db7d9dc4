//! Opens a TLS connection to one replica: both sides verify each other.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::caller::Caller;
use super::connection::TlsConnection;
use super::credentials::Credentials;
use super::handshake_error::HandshakeError;
use super::names::CertificateNames;
use crate::net::dial::{self, CoalescedWrites, DialTarget};

/// A channel to a replica, opened at the first use.
pub fn dial(endpoint: &Endpoint, credentials: &Arc<Credentials>, replica: &str, way: &Arc<DialTarget>) -> Channel {
    let dialled = (credentials.clone(), Arc::<str>::from(replica), way.clone());
    endpoint.connect_with_connector_lazy(service_fn(move |_: Uri| {
        let (credentials, replica, way) = dialled.clone();
        async move {
            let connection = way.connect(|address| connect(&credentials, &replica, address)).await?;
            Ok::<_, io::Error>(TokioIo::new(CoalescedWrites::new(connection)))
        }
    }))
}

/// One address of a name may belong to another machine, so the peer's identity is part of the attempt.
async fn connect(credentials: &Arc<Credentials>, replica: &str, address: SocketAddr) -> io::Result<TlsConnection> {
    let met = greet(credentials, replica, dial::connect(address).await?).await;
    met.map_err(|error| {
        let refusal = HandshakeError::of(&error);
        credentials.refused(&format!("{replica} at {address}"), &refusal);
        io::Error::other(refusal)
    })
}

async fn greet(credentials: &Arc<Credentials>, replica: &str, stream: TcpStream) -> io::Result<TlsConnection> {
    let config = credentials.to_dial(replica).map_err(io::Error::other)?;
    // The name is not sent, and does not decide.
    let name = ServerName::try_from("replica").map_err(io::Error::other)?;
    let mut stream = TlsConnector::from(config).connect(name, stream).await?;
    // In TLS 1.3 the peer verifies our certificate last: the peer's first bytes show the acceptance.
    if stream.fill_buf().await?.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let caller = Caller::new(credentials.clone(), CertificateNames::default(), replica);
    Ok(TlsConnection::new(stream, caller))
}
