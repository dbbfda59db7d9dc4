//! Serves the sockets of operators and workloads, within limits.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Error;

use super::any_authority::AnyAuthority;
use super::uid_policy::UidPolicy;
use crate::net::limits::{
    AnswerBudget, CallLimits, CallRate, ClientKey, ConnectionLimit, HandshakeGate, Http2, RateLimiters, RejectionLog,
    grpc_server, incoming,
};
use crate::replica::metrics::RefusalKind;

/// The limits of one socket.
struct Bounds {
    connections: usize,
    /// Total over all connections.
    calls: usize,
    calls_of_a_connection: u32,
    bytes_at_once: u32,
}

const OPERATORS: Bounds = Bounds { connections: 128, calls: 256, calls_of_a_connection: 32, bytes_at_once: 1 << 20 };

const WORKLOADS: Bounds = Bounds {
    // Enough for one connection of each workload, also if all run as one user, who gets a quarter.
    connections: 256,
    // Each workload has a stream or a poll, and an occasional report.
    calls: 512,
    calls_of_a_connection: 64,
    bytes_at_once: 4 << 20,
};

const BYTES_A_SECOND: u32 = 256 << 10;
/// All workloads may connect at the same time.
const CALLS_AT_ONCE: u32 = 1_000;
const CALLS_A_SECOND: u32 = 400;
/// A user other than root and the replica's own gets at most the total divided by this number.
const SHARE_OF_ANOTHER_USER: usize = 4;

/// Serves until `stop`; open calls are waited for, so every stream must end at `stop`.
pub async fn serve(
    listener: UnixListener,
    routes: Routes,
    guard: UidPolicy,
    stop: CancellationToken,
) -> Result<(), Error> {
    let metrics = guard.metrics.clone();
    let (bounds, turned_away) = if guard.why == RefusalKind::Workload {
        let count = move || metrics.refusals.count(RefusalKind::Connection);
        (WORKLOADS, RejectionLog::at("workloads.socket").counted(count))
    } else {
        (OPERATORS, RejectionLog::at("operator.socket"))
    };
    let places = |most: usize| {
        let users = guard.users.clone();
        let is_trusted = move |who: &ClientKey| matches!(who, ClientKey::User(uid) if users.is_trusted(*uid));
        ConnectionLimit::new(most, move |who| if is_trusted(who) { most } else { most / SHARE_OF_ANOTHER_USER })
    };
    let bytes = Some(RateLimiters::new(bounds.bytes_at_once, BYTES_A_SECOND));
    let porter = Http2 { places: places(bounds.connections), paces: bytes, turned_away };
    let turns = Some(CallRate::new(CALLS_AT_ONCE, CALLS_A_SECOND));
    let calls = CallLimits { at_once: places(bounds.calls), turns, room: AnswerBudget::default() };
    // Rejected callers are limited as well.
    let routes = calls.bound(Arc::new(guard).before(routes));
    let incoming = incoming(listener, HandshakeGate::default(), porter, stop.clone()).into_stream();
    let incoming = incoming.map(|accepted| accepted.map(AnyAuthority::of));
    let mut server = grpc_server(bounds.calls_of_a_connection);
    server.add_routes(routes).serve_with_incoming_shutdown(incoming, stop.cancelled()).await
}
