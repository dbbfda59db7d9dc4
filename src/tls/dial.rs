//! Opening a connection to a replica: only that replica is talked to, and only one that takes our certificate.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::AsyncBufReadExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::codegen::Service;

use tonic::transport::{Channel, Endpoint, Uri};

use super::caller::Caller;
use super::connection::Connection;
use super::credentials::Credentials;
use super::names::Names;
use super::refusal::Refusal;
use crate::reach::{self, Together, Way};

/// A channel to a replica, opened when it is first used.
pub fn dial(endpoint: &Endpoint, credentials: &Arc<Credentials>, replica: &str, way: &Arc<Way>) -> Channel {
    endpoint.connect_with_connector_lazy(Connector::to(replica, credentials, way))
}

/// Opens connections to one replica.
#[derive(Clone)]
pub struct Connector {
    replica: Arc<str>,
    credentials: Arc<Credentials>,
    way: Arc<Way>,
}

impl Connector {
    pub fn to(replica: &str, credentials: &Arc<Credentials>, way: &Arc<Way>) -> Self {
        Self { replica: replica.into(), credentials: credentials.clone(), way: way.clone() }
    }

    async fn connect(self, uri: Uri) -> io::Result<Connection> {
        self.way.go(|address| self.connect_to(address, &uri)).await
    }

    /// One address of a name may be somebody else's, so who is there is part of the attempt.
    async fn connect_to(&self, address: SocketAddr, uri: &Uri) -> io::Result<Connection> {
        let met = self.greet(reach::connect(address).await?).await.map_err(|error| Refusal::of(&error));
        met.map_err(|refusal| {
            self.credentials
                .refused(&format!("{} at {}", self.replica, uri.authority().map_or("", |it| it.as_str())), &refusal);
            io::Error::other(refusal)
        })
    }

    async fn greet(&self, stream: TcpStream) -> io::Result<Connection> {
        let config = self.credentials.to_dial(&self.replica).map_err(io::Error::other)?;
        // It is not sent, and not what decides.
        let name = ServerName::try_from("replica").map_err(io::Error::other)?;
        let mut stream = TlsConnector::from(config).connect(name, stream).await?;
        // In TLS 1.3 the other side judges our certificate last: its first words say that it took it.
        if stream.fill_buf().await?.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let caller = Caller::new(self.credentials.clone(), Names::default(), &self.replica);
        Ok(Connection::new(stream, caller, None))
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Together<Connection>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Together<Connection>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connecting = self.clone().connect(uri);
        Box::pin(async { connecting.await.map(|connection| TokioIo::new(Together::new(connection))) })
    }
}
