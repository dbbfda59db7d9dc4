//! The sockets on which operators and workloads ask, and how much of it is put up with.

use std::sync::Arc;

use tokio::net::UnixListener;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Error;

use super::users::Guard;
use crate::admission::{Calls, Door, Http2, Paces, Places, TurnedAway, Turns, Who, grpc_server, incoming};
use crate::replica::deeds::Refused;

/// What one socket puts up with.
struct Bounds {
    connections: usize,
    /// Of all connections.
    calls: usize,
    calls_of_a_connection: u32,
    calls_at_once: u32,
    calls_a_second: u32,
    bytes_at_once: u32,
    bytes_a_second: u32,
}

const OPERATORS: Bounds = Bounds {
    connections: 128,
    calls: 256,
    calls_of_a_connection: 32,
    calls_at_once: 1_000,
    calls_a_second: 400,
    bytes_at_once: 1 << 20,
    bytes_a_second: 256 << 10,
};

const WORKLOADS: Bounds = Bounds {
    // One for each workload also where all are of one user, who has a quarter of them.
    connections: 256,
    // Each workload has a stream, or asks, and reports now and then.
    calls: 512,
    calls_of_a_connection: 64,
    // All of them may dial in at the same moment.
    calls_at_once: 1_000,
    calls_a_second: 400,
    bytes_at_once: 4 << 20,
    bytes_a_second: 256 << 10,
};

/// A user that is neither root nor the replica's own gets one in so many of the places.
const SHARE_OF_ANOTHER_USER: usize = 4;

/// Serves until it is stopped; open calls are waited for, so every stream ends when it is told to stop.
pub async fn serve(listener: UnixListener, routes: Routes, guard: Guard, stop: CancellationToken) -> Result<(), Error> {
    OPERATORS.serve(listener, routes, guard, TurnedAway::at("operator.socket"), stop).await
}

/// The same for workloads.
pub async fn serve_workloads(
    listener: UnixListener,
    routes: Routes,
    guard: Guard,
    stop: CancellationToken,
) -> Result<(), Error> {
    let deeds = guard.deeds.clone();
    let turned_away = TurnedAway::at("workloads.socket").counted(move || deeds.refusals.count(Refused::Connection));
    WORKLOADS.serve(listener, routes, guard, turned_away, stop).await
}

impl Bounds {
    async fn serve(
        &self,
        listener: UnixListener,
        routes: Routes,
        guard: Guard,
        turned_away: TurnedAway,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let places = |most: usize| {
            let users = guard.users.clone();
            let is_trusted = move |who| matches!(who, Who::User(uid) if users.is_trusted(uid));
            Places::new(most, move |who| if is_trusted(who) { most } else { most / SHARE_OF_ANOTHER_USER })
        };
        let porter = Http2 {
            places: places(self.connections),
            paces: Some(Paces::new(self.bytes_at_once, self.bytes_a_second)),
            turned_away,
        };
        let turns = Some(Turns::new(self.calls_at_once, self.calls_a_second));
        let calls = Calls { at_once: places(self.calls), turns };
        // Those who may not are bounded as well.
        let routes = calls.bound(Arc::new(guard).before(routes));
        let incoming = incoming(listener, Door::default(), porter, stop.clone()).into_stream();
        let mut server = grpc_server(self.calls_of_a_connection);
        server.add_routes(routes).serve_with_incoming_shutdown(incoming, stop.cancelled()).await
    }
}
