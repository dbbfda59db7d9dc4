//! `GET /metrics`: gauges of the present state, computed at each scrape, and the counters of `replica::metrics`.
//! `deploy/monitoring` has the alerts.

mod cluster;
mod events;
mod exposition;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use prometheus::{TEXT_FORMAT, TextEncoder};

use self::exposition::Exposition;
use crate::replica::view::View;

pub(super) fn answer(view: &View) -> Response {
    match exposition(view) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn exposition(view: &View) -> prometheus::Result<String> {
    let (state, input) = view.inputs();
    let exposition = Exposition::default();
    cluster::fill(&exposition, view, &state, &input)?;
    events::fill(&exposition, &state, &input)?;
    let mut families = exposition.gather();
    families.extend(view.metrics().gather());
    TextEncoder::new().encode_to_string(&families)
}
