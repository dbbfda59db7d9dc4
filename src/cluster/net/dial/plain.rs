//! Connections in plain text, where the configuration allows them.

use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;

use super::coalesced_writes::CoalescedWrites;
use super::stream::connect;
use super::target::DialTarget;

/// A channel to a dial target, opened at the first use.
pub fn dial(endpoint: &Endpoint, way: &Arc<DialTarget>) -> Channel {
    let way = way.clone();
    endpoint.connect_with_connector_lazy(service_fn(move |_: Uri| {
        let way = way.clone();
        async move { way.connect(connect).await.map(|stream| TokioIo::new(CoalescedWrites::new(stream))) }
    }))
}

/// A channel that never opens, for a replica that has no certificates and may not use plain text.
pub fn refuse(endpoint: &Endpoint, _: &Arc<DialTarget>) -> Channel {
    endpoint.connect_with_connector_lazy(service_fn(async |_: Uri| {
        let why = "this replica is a cluster of one: a connection to another replica needs `cluster.listen` and \
             `[cluster.tls]`";
        Err::<TokioIo<TcpStream>, _>(io::Error::new(io::ErrorKind::PermissionDenied, why))
    }))
}
