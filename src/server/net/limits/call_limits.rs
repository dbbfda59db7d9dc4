//! Limits of calls on accepted connections: duration, number at a time, and rate.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http_body_util::BodyExt as _;
use tokio::time::sleep;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::UdsConnectInfo;

use super::accepted::Accepted;
use super::answer_budget::AnswerBudget;
use super::answers::answer;
use super::connection_limit::ConnectionLimit;
use super::listener::ClientKey;
use super::rate_limit::RateLimiters;

/// Until an answer begins. Changes of members take the longest.
const CALL_WITHIN: Duration = Duration::from_secs(90);
/// What is sent and not read yet, of a call and of a connection.
const UNREAD_OF_A_CALL: u32 = 64 << 10;
const UNREAD_OF_A_CONNECTION: u32 = 128 << 10;
const HEADER_BYTES: u32 = 8 << 10;
/// Calls that are broken off before they are looked at, and those that break the protocol.
const BROKEN_OFF: usize = 20;
const PROTOCOL_ERRORS: usize = 64;
/// A connection that is as silent is asked for a sign of life, and ended when it gives none for as long.
const ALIVE_WITHIN: Duration = Duration::from_secs(20);

/// A call does not wait longer for its turn.
const WAITS_AT_MOST: Duration = Duration::from_secs(5);
/// Before one is told that it asks too often.
const PAUSE: Duration = Duration::from_secs(1);

/// For clients on the machine.
pub fn grpc_server(calls_of_a_connection: u32) -> Server {
    Server::builder()
        .timeout(CALL_WITHIN)
        .max_concurrent_streams(calls_of_a_connection)
        .initial_stream_window_size(UNREAD_OF_A_CALL)
        .initial_connection_window_size(UNREAD_OF_A_CONNECTION)
        .http2_max_header_list_size(HEADER_BYTES)
        .http2_max_pending_accept_reset_streams(Some(BROKEN_OFF))
        .http2_max_local_error_reset_streams(Some(PROTOCOL_ERRORS))
        .http2_keepalive_interval(Some(ALIVE_WITHIN))
        .http2_keepalive_timeout(Some(ALIVE_WITHIN))
}

/// How often calls may come: what comes too often waits.
pub struct CallRate(RateLimiters<ClientKey>);

impl CallRate {
    pub fn new(at_once: u32, a_second: u32) -> Self {
        Self(RateLimiters::new(at_once, a_second))
    }

    /// False when so many wait already that it is in vain.
    pub async fn wait(&self, who: ClientKey) -> bool {
        let wait = {
            let pace = self.0.of(who);
            pace.lock().unwrap_or_else(PoisonError::into_inner).wait(1, WAITS_AT_MOST)
        };
        match wait {
            Some(Duration::ZERO) => {}
            Some(wait) => sleep(wait).await,
            None => sleep(PAUSE).await,
        }
        wait.is_some()
    }
}

/// What a listener for gRPC puts up with.
pub struct CallLimits {
    /// Those that have not ended.
    pub at_once: ConnectionLimit,
    pub turns: Option<CallRate>,
    /// For answers that are not read.
    pub room: AnswerBudget,
}

impl CallLimits {
    /// The same routes for as many calls and no more.
    pub fn bound(self, routes: Routes) -> Routes {
        routes.into_axum_router().layer(from_fn_with_state(Arc::new(self), admit)).into()
    }
}

async fn admit(State(calls): State<Arc<CallLimits>>, mut request: Request, next: Next) -> Response {
    let reader = Accepted::introduced(request.extensions_mut());
    let peer = request.extensions().get::<UdsConnectInfo>().and_then(|connected| connected.peer_cred);
    let who = peer.map_or(ClientKey::Anybody, |peer| ClientKey::User(peer.uid()));
    let Some(place) = calls.at_once.acquire(who) else {
        return Status::resource_exhausted("too many calls are open; end some").into_http();
    };
    if let Some(turns) = &calls.turns
        && !turns.wait(who).await
    {
        return Status::resource_exhausted(format!("{who} asks too often; ask less")).into_http();
    }
    let response = answer(&calls.room, &reader, next.run(request).await).await;
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            // The call ends with the last word of its answer, and so does its place.
            let _ = &place;
            frame
        }))
    })
}
