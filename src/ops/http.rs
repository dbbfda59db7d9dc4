//! The status over HTTP: read only, projections of the view and nothing else.

use std::io;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::metrics;
use crate::replica::view::View;

/// Serves until it is stopped.
pub async fn serve(listener: TcpListener, view: View, stop: CancellationToken) -> io::Result<()> {
    axum::serve(listener, router(view)).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn router(view: View) -> Router {
    Router::new()
        .route("/v1/status", get(|State(view): State<View>| async move { Json(view.status()) }))
        .route("/v1/events", get(|State(view): State<View>| async move { Json(view.events()) }))
        .route("/v1/events/{id}", get(event))
        .route("/metrics", get(|State(view): State<View>| async move { metrics::answer(&view) }))
        .route("/livez", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .fallback(|| async { problem(StatusCode::NOT_FOUND, "there is nothing here; /v1/status is the status") })
        .with_state(view)
}

async fn event(State(view): State<View>, Path(id): Path<String>) -> Response {
    match view.event(&id) {
        Some(event) => Json(event).into_response(),
        None => problem(StatusCode::NOT_FOUND, "no such event is known here; /v1/events lists them"),
    }
}

async fn ready(State(view): State<View>) -> Response {
    match view.is_ready() {
        Ok(()) => "ok\n".into_response(),
        Err(why) => problem(StatusCode::SERVICE_UNAVAILABLE, &why),
    }
}

fn problem(status: StatusCode, why: &str) -> Response {
    (status, Json(json!({ "error": why }))).into_response()
}
