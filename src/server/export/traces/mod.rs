//! Traces of events (OTLP over HTTP): the spans computed from the log, and the collector.

mod export;
mod failure;
mod otlp;
mod spans;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;

pub use self::export::export;
use super::headers::{Headers, secrets_of};
use super::post::post;
use crate::http_client::header::{CONTENT_TYPE, HeaderValue};
use crate::http_client::{Reply, Url, parse_external};
use crate::secrets::Secrets;
use allclear_core::model::event::Event;
use allclear_core::model::state::State;

/// The number of spans in one request; a larger trace is split, since collectors limit the bytes of a request.
const SPANS_AT_ONCE: usize = 1_000;

/// The configured collector of traces.
#[derive(Clone, PartialEq, Debug)]
pub struct Collector {
    /// Without a trailing slash: `/v1/traces` is appended.
    pub endpoint: String,
    pub headers: Headers,
    /// Certificate authorities beside those of the system.
    pub ca: Option<PathBuf>,
}

/// The outcome of an export.
#[derive(PartialEq, Eq, Debug)]
pub enum ExportResult {
    Accepted,
    /// A permanent rejection: a retry would be rejected again.
    Refused(String),
    /// A temporary failure; the next attempt follows after the time that the collector asks for.
    NotNow(String, Duration),
}

impl Collector {
    pub async fn take(&self, cluster: &str, state: &State, event: &Event) -> ExportResult {
        for part in spans::of(cluster, state, event).chunks(SPANS_AT_ONCE) {
            match self.post(otlp::encode(cluster, part)).await {
                ExportResult::Accepted => {}
                other => return other,
            }
        }
        ExportResult::Accepted
    }

    /// Posts an empty request as a test.
    pub async fn greet(&self) -> ExportResult {
        self.post(otlp::encode("", &[])).await
    }

    async fn post(&self, body: Bytes) -> ExportResult {
        self.exchange(body)
            .await
            .map_or_else(|why| ExportResult::NotNow(why, Duration::ZERO), |(answer, secrets)| taken(&answer, &secrets))
    }

    /// Posts the body; files are read each time, since they may have been renewed. Returns the answer, and the secrets
    /// to remove from its text.
    async fn exchange(&self, body: Bytes) -> Result<(Reply, Secrets), String> {
        let (url, mut headers) = (self.url()?, self.headers.read().await?);
        let secrets = secrets_of(&headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        Ok((post(url, self.ca.as_deref(), headers, body).await?, secrets))
    }

    /// The URL for posts.
    pub fn url(&self) -> Result<Url, String> {
        let url = parse_external(&format!("{}/v1/traces", self.endpoint))?;
        self.headers.may_go_to(&url)?;
        Ok(url)
    }
}

/// The result by the protocol's rules: only four statuses ask for another attempt.
fn taken(answer: &Reply, secrets: &Secrets) -> ExportResult {
    match answer.status {
        200..=299 => match otlp::refused(&answer.body) {
            Some((spans, why)) => ExportResult::Refused(format!("{spans} spans of the trace: {}", secrets.cut(&why))),
            None => ExportResult::Accepted,
        },
        status @ (429 | 502 | 503 | 504) => {
            ExportResult::NotNow(format!("the collector answered {status}"), answer.retry_after.unwrap_or_default())
        }
        status => ExportResult::Refused(format!(
            "the collector answered {status}: {}",
            secrets.cut(&otlp::reason(&answer.body))
        )),
    }
}
