//! Limits of the status listener: connections, and answers for each client.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::problem::problem;
use crate::net::limits::{
    self, BoundedConnection, CallRate, ClientKey, EvictingLimit, HandshakeGate, Http1, Incoming, Maker, PeerReader,
    RateLimiters, RejectionLog,
};

/// The limit of all connections: more than the limit of `/v1/watch`, and some for single requests.
const CONNECTIONS: usize = 128;
const BYTES_AT_ONCE: u32 = 1 << 20;
const BYTES_A_SECOND: u32 = 256 << 10;
/// The rate limit of answers made from the whole state.
const ANSWERS_AT_ONCE: u32 = 200;
const ANSWERS_A_SECOND: u32 = 100;

pub(super) fn incoming(listener: TcpListener, stop: CancellationToken) -> Incoming<BoundedConnection<TcpStream>> {
    let porter = Http1 {
        crowd: Mutex::new(EvictingLimit::new(CONNECTIONS)),
        paces: RateLimiters::new(BYTES_AT_ONCE, BYTES_A_SECOND),
        turned_away: RejectionLog::at("status.listen"),
    };
    limits::incoming(listener, HandshakeGate::default(), porter, stop)
}

/// Limits routes whose answers are made anew for each call: within the rate limit, and within the answer budget.
pub(super) fn in_turn<S: Clone + Send + Sync + 'static>(routes: Router<S>, maker: Maker) -> Router<S> {
    let turns = Arc::new(CallRate::new(ANSWERS_AT_ONCE, ANSWERS_A_SECOND));
    routes.layer(from_fn_with_state((turns, maker), wait))
}

/// The requesting client, and the reader of the answer.
pub(super) type Asker = ConnectInfo<(ClientKey, PeerReader)>;

pub(super) fn reader(request: &Request) -> PeerReader {
    request.extensions().get::<Asker>().map(|asker| asker.0.1.clone()).unwrap_or_default()
}

async fn wait(State((turns, maker)): State<(Arc<CallRate>, Maker)>, request: Request, next: Next) -> Response {
    if !turns.wait(ClientKey::Anybody).await {
        return problem(StatusCode::TOO_MANY_REQUESTS, "too many requests; try again, or use another replica");
    }
    let full = || {
        problem(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many callers do not read their answers; try again, or use another replica",
        )
    };
    let reader = reader(&request);
    maker.make(&reader, next.run(request)).await.unwrap_or_else(full)
}
