//! The control interface of the fake cloud: JSON over HTTP under `/control`.

mod events;
mod requests;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::server_state::ServerState;
use allclear_cloud::OrderError;

const LARGEST_BODY: usize = 256 * 1024;

/// The answer at `/control` itself: people have the program, and not its source.
const DESCRIPTION: &str = include_str!("../README.md");

pub(super) fn router() -> Router<Arc<ServerState>> {
    Router::new()
        .route("/", get(|| async { DESCRIPTION }))
        .route("/state", get(events::state))
        .route("/events", get(events::list).post(events::announce))
        .route("/events/{id}", get(events::show).patch(events::change))
        .route("/events/{id}/{order}", post(events::order))
        .route("/incarnation", post(events::restart_incarnations))
        .route("/faults", post(requests::set_fault).delete(requests::clear_faults))
        .route("/requests", get(requests::list))
        .route("/approvals", get(requests::approvals))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
}

/// Why an order is not carried out, as the response to the caller.
pub(super) struct OrderFailure {
    status: StatusCode,
    error: String,
}

impl OrderFailure {
    fn wrong(error: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, error: error.into() }
    }

    fn nowhere(error: impl Into<String>) -> Self {
        Self { status: StatusCode::NOT_FOUND, error: error.into() }
    }

    fn conflict(error: impl Into<String>) -> Self {
        Self { status: StatusCode::CONFLICT, error: error.into() }
    }

    fn unless_empty(mistakes: &[String]) -> Result<(), Self> {
        if mistakes.is_empty() { Ok(()) } else { Err(Self::wrong(mistakes.join("; "))) }
    }
}

impl IntoResponse for OrderFailure {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.error }))).into_response()
    }
}

impl From<OrderError> for OrderFailure {
    fn from(refusal: OrderError) -> Self {
        let error = refusal.to_string();
        match refusal {
            OrderError::Unknown(_) | OrderError::UnknownVm(_) => Self::nowhere(error),
            OrderError::IdTaken(_) | OrderError::NotScheduled(_) | OrderError::NotStarted(_) | OrderError::Over(_) => {
                Self::conflict(error)
            }
        }
    }
}

/// The body as a `T`; an empty body counts as `{}`.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, OrderFailure> {
    let body = if body.is_empty() { b"{}".as_ref() } else { body.as_ref() };
    serde_json::from_slice(body).map_err(|error| OrderFailure::wrong(format!("the body is not valid: {error}")))
}
