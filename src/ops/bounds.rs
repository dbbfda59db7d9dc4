//! How many connections for the status there may be, and how often it is told.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::http::problem;
use crate::admission::{self, Admitted, Crowd, Door, Http1, Incoming, Paces, TurnedAway, Turns, Who};

/// Of all together: more than listen for changes, and some that only ask.
const CONNECTIONS: usize = 128;
const BYTES_AT_ONCE: u32 = 1 << 20;
const BYTES_A_SECOND: u32 = 256 << 10;
/// Answers that are made from the whole state.
const ANSWERS_AT_ONCE: u32 = 200;
const ANSWERS_A_SECOND: u32 = 100;
/// Answers that somebody else had a moment ago.
const SHARED_AT_ONCE: u32 = 4000;
const SHARED_A_SECOND: u32 = 4000;

pub(super) fn incoming(listener: TcpListener, stop: CancellationToken) -> Incoming<Admitted<TcpStream>> {
    let porter = Http1 {
        crowd: Mutex::new(Crowd::new(CONNECTIONS)),
        paces: Paces::new(BYTES_AT_ONCE, BYTES_A_SECOND),
        turned_away: TurnedAway::at("status.listen"),
    };
    admission::incoming(listener, Door::default(), porter, stop)
}

/// Turns of everybody together.
pub(super) struct Limits {
    pub(super) made: Turns,
    pub(super) shared: Turns,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            made: Turns::new(ANSWERS_AT_ONCE, ANSWERS_A_SECOND),
            shared: Turns::new(SHARED_AT_ONCE, SHARED_A_SECOND),
        }
    }
}

/// The same routes, whose answers are made anew for each call, in its turn.
pub(super) fn in_turn<S: Clone + Send + Sync + 'static>(routes: Router<S>, limits: Arc<Limits>) -> Router<S> {
    routes.layer(from_fn_with_state(limits, wait))
}

async fn wait(State(limits): State<Arc<Limits>>, request: Request, next: Next) -> Response {
    if limits.made.wait(Who::Anybody).await { next.run(request).await } else { too_often() }
}

pub(super) fn too_often() -> Response {
    problem(StatusCode::TOO_MANY_REQUESTS, "too many ask; ask again, or ask another replica")
}
