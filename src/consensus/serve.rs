//! The listener that replicas reach each other on.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::Stream;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::{Connected, TcpIncoming};

use super::peers::{KEEPALIVE_EVERY, KEEPALIVE_WITHIN};
use crate::tls::{self, Credentials, Limits};

/// Calls that are still open when the listener stops are given this long.
const DRAIN_WITHIN: Duration = Duration::from_secs(2);

/// Serves until `stop`, and returns soon after it whatever is still open. Without credentials as plain text.
pub async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Credentials>>,
    routes: Routes,
    stop: CancellationToken,
) -> io::Result<()> {
    let Some(credentials) = tls else {
        // Without it every write stalls on delayed acknowledgements: the server's own setting does not reach this listener.
        return serve_incoming(TcpIncoming::from(listener).with_nodelay(Some(true)), routes, stop).await;
    };
    // Gently. Without tonic's own grace, beside which it would only cut connections off; they end by themselves.
    let server = server().max_connection_age(credentials.max_connection_age());
    serve_by(server, tls::incoming(listener, credentials, Limits::default(), stop.clone()), routes, stop).await
}

/// The same as plain text, on connections of another kind.
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
    Server::builder().http2_keepalive_interval(Some(KEEPALIVE_EVERY)).http2_keepalive_timeout(Some(KEEPALIVE_WITHIN))
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
