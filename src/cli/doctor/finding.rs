//! A finding: in order, a warning, or a failure.

use serde::Serialize;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    Ok,
    Warn,
    Fail,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Finding {
    /// The name of the check, one word.
    pub(super) check: &'static str,
    pub(super) verdict: Severity,
    pub(super) what: String,
    /// How to repair the fault.
    pub(super) advice: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, what: impl Into<String>) -> Self {
        Self { check, verdict: Severity::Ok, what: what.into(), advice: None }
    }

    pub(super) fn warn(check: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Severity::Warn, what: what.into(), advice: Some(advice.into()) }
    }

    pub(super) fn fail(check: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, verdict: Severity::Fail, what: what.into(), advice: Some(advice.into()) }
    }
}
