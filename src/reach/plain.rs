//! Connections as plain text, where that is configured.

use std::future::{Ready, ready};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::codegen::Service;
use tonic::transport::{Channel, Endpoint, Uri};

use super::stream::connect;
use super::together::Together;
use super::way::Way;

/// A channel to whoever is at the end of a way, opened when it is first used.
pub fn dial(endpoint: &Endpoint, way: &Arc<Way>) -> Channel {
    endpoint.connect_with_connector_lazy(Plain(way.clone()))
}

/// A channel that never opens, for a replica that has no certificates and may not speak plain text.
pub fn refuse(endpoint: &Endpoint, _: &Arc<Way>) -> Channel {
    endpoint.connect_with_connector_lazy(Refuse)
}

#[derive(Clone)]
struct Refuse;

impl Service<Uri> for Refuse {
    type Response = TokioIo<TcpStream>;
    type Error = io::Error;
    type Future = Ready<io::Result<TokioIo<TcpStream>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let why =
            "this replica is a cluster of one: it needs `cluster.listen` and `[cluster.tls]` to talk to another one";
        ready(Err(io::Error::new(io::ErrorKind::PermissionDenied, why)))
    }
}

/// Opens connections along one way.
#[derive(Clone)]
pub struct Plain(pub Arc<Way>);

impl Service<Uri> for Plain {
    type Response = TokioIo<Together<TcpStream>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<TokioIo<Together<TcpStream>>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let way = self.0.clone();
        Box::pin(async move { Ok(TokioIo::new(Together::new(way.go(connect).await?))) })
    }
}
