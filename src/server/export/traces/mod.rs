//! Traces of events (OTLP over HTTP): the spans that follow from the log, and the collector.

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

/// Of a trace with more spans, several requests are made: collectors take only so many bytes at once.
const SPANS_AT_ONCE: usize = 1_000;

/// Where traces go, as it is configured.
#[derive(Clone, PartialEq, Debug)]
pub struct Collector {
    /// Without a slash at its end: `/v1/traces` is added.
    pub endpoint: String,
    pub headers: Headers,
    /// Certificate authorities beside those of the system.
    pub ca: Option<PathBuf>,
}

/// What became of a trace.
#[derive(PartialEq, Eq, Debug)]
pub enum ExportResult {
    Accepted,
    /// It would be refused again.
    Refused(String),
    /// Another time, and not before that has passed which the collector wishes.
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

    /// A request with nothing in it, to see whether it would be taken.
    pub async fn greet(&self) -> ExportResult {
        self.post(otlp::encode("", &[])).await
    }

    async fn post(&self, body: Bytes) -> ExportResult {
        self.exchange(body)
            .await
            .map_or_else(|why| ExportResult::NotNow(why, Duration::ZERO), |(answer, secrets)| taken(&answer, &secrets))
    }

    /// What is on the disk is read each time: it may have been renewed. The answer, and what it must not repeat.
    async fn exchange(&self, body: Bytes) -> Result<(Reply, Secrets), String> {
        let (url, mut headers) = (self.url()?, self.headers.read().await?);
        let secrets = secrets_of(&headers);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        Ok((post(url, self.ca.as_deref(), headers, body).await?, secrets))
    }

    /// Where a trace is posted to.
    pub fn url(&self) -> Result<Url, String> {
        let url = parse_external(&format!("{}/v1/traces", self.endpoint))?;
        self.headers.may_go_to(&url)?;
        Ok(url)
    }
}

/// As the protocol has it: four statuses ask for another attempt, and nothing else does.
fn taken(answer: &Reply, secrets: &Secrets) -> ExportResult {
    match answer.status {
        200..=299 => match otlp::refused(&answer.body) {
            Some((spans, why)) => ExportResult::Refused(format!("{spans} of its spans: {}", secrets.cut(&why))),
            None => ExportResult::Accepted,
        },
        status @ (429 | 502 | 503 | 504) => {
            ExportResult::NotNow(format!("it answers {status}"), answer.retry_after.unwrap_or_default())
        }
        status => ExportResult::Refused(format!("it answers {status}: {}", secrets.cut(&otlp::reason(&answer.body)))),
    }
}
