//! The status over HTTP: read only, projections of the view and nothing else.

use std::io;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::{metrics, page, watch};
use crate::replica::view::View;

/// Kept by hand; a test compares it with what is served.
const OPENAPI: &str = include_str!("openapi.json");

/// Serves until it is stopped.
pub async fn serve(listener: TcpListener, view: View, stop: CancellationToken) -> io::Result<()> {
    axum::serve(listener, router(view, stop.clone())).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn router(view: View, stop: CancellationToken) -> Router {
    Router::new()
        .route("/v1/status", get(|State(view): State<View>| async move { Json(view.status()) }))
        .route("/v1/events", get(|State(view): State<View>| async move { Json(view.events()) }))
        .route("/v1/events/{id}", get(event))
        .route("/metrics", get(|State(view): State<View>| async move { metrics::answer(&view) }))
        .route("/openapi.json", get(|| async { ([(header::CONTENT_TYPE, "application/json")], OPENAPI) }))
        .route("/livez", get(alive))
        .route("/readyz", get(ready))
        .fallback(|| async {
            problem(StatusCode::NOT_FOUND, "there is nothing here; / is the page, /v1/status the status")
        })
        .with_state(view.clone())
        .merge(watch::router(view, stop))
        .merge(page::router())
        .layer(from_fn(read_only))
}

/// Nothing can be changed here, and no browser takes an answer for another kind of thing than it is.
async fn read_only(request: Request, next: Next) -> Response {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        let allowed = [(header::ALLOW, "GET, HEAD")];
        return (
            allowed,
            problem(StatusCode::METHOD_NOT_ALLOWED, "this is for reading; act with the command allclear"),
        )
            .into_response();
    }
    let mut response = next.run(request).await;
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

async fn event(State(view): State<View>, Path(id): Path<String>) -> Response {
    match view.event(&id) {
        Some(event) => Json(event).into_response(),
        None => problem(StatusCode::NOT_FOUND, "no such event is known here; /v1/events lists them"),
    }
}

async fn alive(State(view): State<View>) -> Response {
    match view.standstill() {
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

pub(super) fn problem(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}
