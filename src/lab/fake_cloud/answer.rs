//! The response to the client, and how the connection ends.

use bytes::Bytes;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub(super) struct EmulatedResponse {
    pub(super) status: u16,
    pub(super) content_type: &'static str,
    pub(super) body: Bytes,
    /// The mark of a document, for `If-None-Match`.
    pub(super) etag: Option<String>,
    pub(super) ending: ResponseEnd,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ResponseEnd {
    Whole,
    /// The connection ends after half of the body.
    Cut,
    /// The connection is reset, without an answer.
    Reset,
    /// The connection is closed, without an answer.
    Closed,
    /// The connection does not end.
    Never,
}

impl EmulatedResponse {
    pub(super) fn text(status: u16, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        Self { status, content_type, body: body.into(), etag: None, ending: ResponseEnd::Whole }
    }

    pub(super) fn json(status: u16, body: &Value) -> Self {
        Self::text(status, "application/json; charset=utf-8", body.to_string())
    }

    pub(super) fn error(status: u16, message: &str) -> Self {
        Self::json(status, &json!({ "error": message }))
    }

    /// No answer; the log shows no status.
    pub(super) fn none(ending: ResponseEnd) -> Self {
        Self { ending, ..Self::text(500, "text/plain", "") }
    }

    /// Whether the client receives a status.
    pub(super) fn has_status(&self) -> bool {
        matches!(self.ending, ResponseEnd::Whole | ResponseEnd::Cut)
    }
}
