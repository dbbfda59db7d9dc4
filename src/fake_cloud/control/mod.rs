//! The control interface: JSON over HTTP under `/control`, for whoever directs the play.

mod cast;
mod events;
mod faults;
mod logs;
mod state;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use axum::routing::{get, patch, post};
use bytes::Bytes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::house::House;
use super::tenant::Tenant;
use crate::machine::id::VmName;
use crate::simulator::cloud::Refusal;

const LARGEST_BODY: usize = 256 * 1024;

pub(super) fn router() -> Router<Arc<House>> {
    Router::new()
        .route("/state", get(state::show))
        .route("/events", get(events::list).post(events::announce))
        .route("/events/{id}", get(events::show).patch(events::change))
        .route("/events/{id}/{order}", post(events::order))
        .route("/scenario", get(cast::list).post(cast::play))
        .route("/platform", patch(cast::platform))
        .route("/habits", patch(cast::habits))
        .route("/incarnation", post(cast::incarnation))
        .route("/reset", post(cast::reset))
        .route("/faults", get(faults::list).post(faults::set).delete(faults::clear))
        .route("/requests", get(logs::requests).delete(logs::forget))
        .route("/approvals", get(logs::approvals))
        .layer(DefaultBodyLimit::max(LARGEST_BODY))
}

/// Why an order is not carried out, as it goes back to whoever gave it.
pub(super) struct Failure {
    status: StatusCode,
    error: String,
}

impl Failure {
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

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        failed(self.status, &self.error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let error = refusal.to_string();
        match refusal {
            Refusal::Unknown(_) | Refusal::UnknownVm(_) => Self::nowhere(error),
            Refusal::IdTaken(_) | Refusal::NotScheduled(_) | Refusal::NotStarted(_) | Refusal::Over(_) => {
                Self::conflict(error)
            }
        }
    }
}

pub(super) fn failed(status: StatusCode, error: &str) -> Response {
    (status, Json(json!({ "error": error }))).into_response()
}

/// The body as this shape; an empty one counts as `{}`.
fn read<T: DeserializeOwned>(body: &Bytes) -> Result<T, Failure> {
    let body = if body.is_empty() { b"{}".as_ref() } else { body.as_ref() };
    serde_json::from_slice(body).map_err(|error| Failure::wrong(format!("the body is not right: {error}")))
}

/// Which VM an order is for; left out, all of them.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ForVm {
    vm: Option<String>,
}

/// The named VM or all of them.
fn chosen(tenant: &Tenant, vm: Option<&str>) -> Result<Vec<VmName>, Failure> {
    let Some(name) = vm else { return Ok(tenant.vms.clone()) };
    let asked = VmName::new(name);
    let found = tenant.vms.iter().find(|candidate| **candidate == asked).cloned();
    found.map(|vm| vec![vm]).ok_or_else(|| Failure::nowhere(format!("this cloud has no VM {name}; see /control/state")))
}
