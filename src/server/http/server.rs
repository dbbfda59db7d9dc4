//! The status over HTTP: read-only projections of the view.

use std::io;
use std::sync::Arc;

use axum::extract::{Path, RawQuery, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::host::HostNames;
use super::limits::{self, Asker};
use super::problem::problem;
use super::{metrics, page, watch};
use crate::net::limits::{ClientKey, Maker, serve_http1};
use crate::replica::metrics::RefusalKind;
use crate::replica::view::View;
use allclear_core::model::event_lookup::NotSelected;

/// Serves until `stop`.
pub async fn serve(listener: TcpListener, view: View, names: HostNames, stop: CancellationToken) -> io::Result<()> {
    let listener = limits::incoming(listener, stop.clone());
    serve_http1(listener, router(view, names, stop.clone()), |stream, who| (*who, stream.reader()), stop).await
}

fn router(view: View, names: HostNames, stop: CancellationToken) -> Router {
    let door = Arc::new(RequestGuard { names, view: view.clone() });
    let maker = Maker::default();
    let of_the_view = Router::new()
        .route("/v1/events", get(events))
        .route("/v1/events/{id}", get(event))
        .route("/metrics", get(|State(view): State<View>| async move { metrics::answer(&view) }))
        .merge(watch::router(view.clone(), maker.room.clone(), stop));
    // Load balancers and dashboards ask for the status often, so the status has a limit of its own.
    let status = Router::new().route("/v1/status", get(|State(view): State<View>| async move { Json(view.status()) }));
    limits::in_turn(of_the_view, maker.clone())
        .merge(limits::in_turn(status, maker))
        .route(
            "/openapi.json",
            get(|| async { ([(header::CONTENT_TYPE, "application/json")], allclear_wire::OPENAPI) }),
        )
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .fallback(|| async {
            problem(StatusCode::NOT_FOUND, "there is no such path; the page is at /, the status at /v1/status")
        })
        .with_state(view)
        .merge(page::router())
        .layer(from_fn(move |request: Request, next: Next| door.clone().pass(request, next)))
}

/// The check before every answer.
struct RequestGuard {
    names: HostNames,
    view: View,
}

impl RequestGuard {
    /// Admits read-only requests addressed to this replica. The headers keep browsers from guessing another content
    /// type, and from giving the answer to another site's page.
    async fn pass(self: Arc<Self>, request: Request, next: Next) -> Response {
        let mut response = match self.names.judge(&request) {
            Ok(()) => next.run(request).await,
            Err(refusal) => {
                let from = request.extensions().get::<Asker>();
                let who = from.map_or(ClientKey::Anybody, |from| from.0.0).to_string();
                self.view.metrics().refusals.note(refusal.why, &who, None, &refusal.asked);
                let mut answer = problem(refusal.status, refusal.answer);
                if refusal.why == RefusalKind::Method {
                    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                }
                answer
            }
        };
        let headers = response.headers_mut();
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
        response
    }
}

/// A parameter is refused: an ignored one would be taken for a filter.
async fn events(State(view): State<View>, RawQuery(query): RawQuery) -> Response {
    if query.is_some_and(|query| !query.is_empty()) {
        let why = "/v1/events takes no parameters: it lists the open events and the last 100 closed events; \
                   `allclear events --export` and ListEvents over gRPC list every kept event";
        return problem(StatusCode::BAD_REQUEST, why);
    }
    Json(view.events()).into_response()
}

async fn event(State(view): State<View>, Path(id): Path<String>) -> Response {
    match view.select_event(&id) {
        Ok(event) => Json(event).into_response(),
        Err(NotSelected::Unknown { .. }) => {
            problem(StatusCode::NOT_FOUND, "no such event is known here; /v1/events lists the known events")
        }
        Err(several @ NotSelected::Ambiguous { .. }) => problem(StatusCode::NOT_FOUND, &several.to_string()),
    }
}

async fn alive(State(view): State<View>) -> Response {
    match view.stalled_loop() {
        None => "ok\n".into_response(),
        Some(why) => problem(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

async fn ready(State(view): State<View>) -> Response {
    match view.is_ready() {
        Ok(()) => "ok\n".into_response(),
        Err(why) => problem(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}
