//! Connections as plain text, where that is configured.

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
