//! The listener for other replicas.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::Connected;

use crate::net::limits::{self, AnswerBudget, CallLimits, ConnectionLimit, HandshakeGate, Http2, RejectionLog};
use crate::net::tls::{self, Credentials};

/// Connections in plain text: each of 100 replicas has a connection, and a second for a moment.
const CONNECTIONS: usize = 256;
/// Concurrent calls, of one connection and of all connections.
const CALLS_OF_A_CONNECTION: u32 = 128;
const CALLS: usize = 2_048;
const HEADER_BYTES: u32 = 8 << 10;
const PROTOCOL_ERRORS: usize = 64;
/// A caller silent for this long is sent a keepalive. The caller's kernel checks every second; the keepalive only frees
/// a connection here.
const CALLER_ALIVE_WITHIN: Duration = Duration::from_secs(10);

/// The time for calls still open when the listener stops.
const DRAIN_WITHIN: Duration = Duration::from_secs(2);

/// Serves until `stop`, and returns soon after `stop` even with open calls. Without credentials as plain text. Boxed,
/// because the caller's crate would otherwise compile the server once more.
pub fn serve(
    listener: TcpListener,
    tls: Option<Arc<Credentials>>,
    routes: Routes,
    stop: CancellationToken,
) -> BoxFuture<'static, io::Result<()>> {
    serve_on(listener, tls, routes, stop).boxed()
}

async fn serve_on(
    listener: TcpListener,
    tls: Option<Arc<Credentials>>,
    routes: Routes,
    stop: CancellationToken,
) -> io::Result<()> {
    let routes = CallLimits { at_once: ConnectionLimit::in_all(CALLS), turns: None, room: AnswerBudget::default() }
        .bound(routes);
    let Some(credentials) = tls else {
        let places = ConnectionLimit::in_all(CONNECTIONS);
        let porter = Http2 { places, paces: None, turned_away: RejectionLog::at("cluster.listen") };
        let incoming = limits::incoming(listener, HandshakeGate::default(), porter, stop.clone());
        return serve_incoming(incoming.into_stream(), routes, stop).await;
    };
    // Connections end gently and by themselves. tonic's own grace period is not set: with a grace period, tonic would
    // only cut connections off.
    let server = server().max_connection_age(credentials.max_connection_age());
    serve_by(server, tls::incoming(listener, credentials, stop.clone()).into_stream(), routes, stop).await
}

/// Serves plain text on connections of another kind.
pub async fn serve_incoming<C>(
    incoming: impl Stream<Item = io::Result<C>>,
    routes: Routes,
    stop: CancellationToken,
) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    serve_by(server(), incoming, routes, stop).await
}

fn server() -> Server {
    Server::builder()
        .http2_keepalive_interval(Some(CALLER_ALIVE_WITHIN))
        .http2_keepalive_timeout(Some(CALLER_ALIVE_WITHIN))
        .max_concurrent_streams(CALLS_OF_A_CONNECTION)
        .http2_max_header_list_size(HEADER_BYTES)
        .http2_max_local_error_reset_streams(Some(PROTOCOL_ERRORS))
}

async fn serve_by<C>(
    mut by: Server,
    incoming: impl Stream<Item = io::Result<C>>,
    routes: Routes,
    stop: CancellationToken,
) -> io::Result<()>
where
    C: AsyncRead + AsyncWrite + Connected + Unpin + Send + 'static,
{
    let served = by.add_routes(routes).serve_with_incoming_shutdown(incoming, stop.clone().cancelled_owned());
    tokio::select! {
        served = served => served.map_err(io::Error::other),
        () = drained(stop) => Ok(()),
    }
}

async fn drained(stop: CancellationToken) {
    stop.cancelled().await;
    tokio::time::sleep(DRAIN_WITHIN).await;
}
