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

/// The timeout until an answer begins. Membership changes take the longest.
const CALL_WITHIN: Duration = Duration::from_secs(90);
/// The bytes sent and not read yet, of a call and of a connection.
const UNREAD_OF_A_CALL: u32 = 64 << 10;
const UNREAD_OF_A_CONNECTION: u32 = 128 << 10;
const HEADER_BYTES: u32 = 8 << 10;
/// The maximum of calls reset before they are handled, and of protocol errors.
const BROKEN_OFF: usize = 20;
const PROTOCOL_ERRORS: usize = 64;
/// The silence after which a connection is pinged, and the timeout of the ping.
const ALIVE_WITHIN: Duration = Duration::from_secs(20);

/// The maximum wait of a call for its turn.
const WAITS_AT_MOST: Duration = Duration::from_secs(5);
/// The delay before the refusal of a client with too many calls.
const PAUSE: Duration = Duration::from_secs(1);

/// A server for clients on the machine.
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

/// The rate of calls: a call above the rate waits.
pub struct CallRate(RateLimiters<ClientKey>);

impl CallRate {
    pub fn new(at_once: u32, a_second: u32) -> Self {
        Self(RateLimiters::new(at_once, a_second))
    }

    /// False if too many calls wait already.
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

/// The limits of a gRPC listener.
pub struct CallLimits {
    /// The calls in progress.
    pub at_once: ConnectionLimit,
    pub turns: Option<CallRate>,
    /// For unread answers.
    pub room: AnswerBudget,
}

impl CallLimits {
    /// Applies the limits to the routes.
    pub fn bound(self, routes: Routes) -> Routes {
        routes.into_axum_router().layer(from_fn_with_state(Arc::new(self), admit)).into()
    }
}

async fn admit(State(calls): State<Arc<CallLimits>>, mut request: Request, next: Next) -> Response {
    let reader = Accepted::introduced(request.extensions_mut());
    let peer = request.extensions().get::<UdsConnectInfo>().and_then(|connected| connected.peer_cred);
    let who = peer.map_or(ClientKey::Anybody, |peer| ClientKey::User(peer.uid()));
    let Some(place) = calls.at_once.acquire(who) else {
        return Status::resource_exhausted("too many calls are open; end calls first").into_http();
    };
    if let Some(turns) = &calls.turns
        && !turns.wait(who).await
    {
        return Status::resource_exhausted(format!("{who} sends too many requests; send fewer")).into_http();
    }
    let response = answer(&calls.room, &reader, next.run(request).await).await;
    response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            // The call ends with the last frame of its answer, and so does its permit.
            let _ = &place;
            frame
        }))
    })
}
