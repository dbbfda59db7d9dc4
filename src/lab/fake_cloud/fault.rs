//! Faults of answers: switched on per VM, for a number of requests or until cleared.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use allclear_cloud::Notice;

const LONGEST_MS: u64 = 10 * 60 * 1000;
const LARGEST_BODY: usize = 16 * 1024 * 1024;
const MOST_LIES: u64 = 1000;

/// One fault.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FaultRule {
    /// The answer is late; an approval has taken effect by then.
    Slow {
        ms: u64,
    },
    /// No answer until the client gives up; an approval does not take effect.
    Hang,
    Empty,
    Html,
    /// Valid JSON without `Events`.
    ErrorJson,
    /// A whole answer whose JSON ends in the middle.
    Malformed,
    /// The connection ends in the middle of the body.
    Truncated,
    WrongTypes {
        of: Field,
    },
    /// An approval does not take effect.
    Status {
        status: u16,
    },
    /// The endpoint serves only this api-version, and answers others with this status: 400 or 404.
    Serves {
        version: String,
        status: u16,
    },
    /// The connection is reset before the request takes effect.
    Reset,
    /// A redirect to a path that does not exist; a client following the redirect appears in the request log.
    Redirect,
    Oversized {
        bytes: usize,
    },
    /// The document as of the time when the fault was set.
    Stale,
    /// The document does not list the event.
    Lacks {
        event: String,
    },
    /// The document lists the event with these fields.
    Shows {
        event: String,
        fields: Map<String, Value>,
    },
    /// The document lists so many made-up events beside the real events, each of so many made-up machines, and
    /// different events each time.
    Lies {
        events: u64,
        resources: u64,
    },
    /// The answer's `Date` has no time.
    Undated,
    /// The answer's `Date` is so far ahead of the cloud's time; a negative number is behind.
    Dated {
        ahead_ms: i64,
    },
    /// The connection is closed before the request took effect.
    RequestLost,
    /// The connection is closed at once, and an approval takes effect so long afterwards.
    LateEffect {
        ms: u64,
    },
    /// The request takes effect, then the connection is closed without an answer.
    ReplyLost,
}

/// The part with the wrong JSON type.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Field {
    Document,
    Incarnation,
    Events,
    Event,
}

/// Which requests about events a fault is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum On {
    Get,
    Post,
    #[default]
    Both,
}

/// A fault that is switched on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Switched {
    pub(super) fault: FaultRule,
    pub(super) on: On,
    /// Number of further requests; `None` is until cleared.
    pub(super) times: Option<u32>,
    #[serde(skip)]
    pub(super) stale: Option<Notice>,
}

impl Switched {
    pub(super) fn is_for(&self, is_post: bool) -> bool {
        // These faults do not apply to a POST.
        let is_about_documents = matches!(
            self.fault,
            FaultRule::Stale
                | FaultRule::WrongTypes { .. }
                | FaultRule::Lacks { .. }
                | FaultRule::Shows { .. }
                | FaultRule::Lies { .. }
                | FaultRule::Undated
                | FaultRule::Dated { .. }
        );
        match self.on {
            On::Get => !is_post,
            On::Post => is_post && !is_about_documents,
            On::Both => !is_post || !is_about_documents,
        }
    }
}

impl FaultRule {
    pub(super) fn mistakes(&self, times: Option<u32>) -> Vec<String> {
        let mut mistakes = Vec::new();
        match self {
            Self::Slow { ms } | Self::LateEffect { ms } if *ms > LONGEST_MS => {
                mistakes.push(format!("ms: {ms} is more than {LONGEST_MS}; use less, or the fault \"hang\""));
            }
            Self::Oversized { bytes } if *bytes > LARGEST_BODY => {
                mistakes.push(format!("bytes: {bytes} is more than {LARGEST_BODY}; use less"));
            }
            Self::Lies { events, resources } if *events > MOST_LIES || *resources > MOST_LIES => {
                mistakes.push(format!("events and resources: at most {MOST_LIES} of each"));
            }
            Self::Serves { status, .. } if !matches!(status, 400 | 404) => {
                mistakes.push(format!("{status}: the platform refuses a version with 400 or 404"));
            }
            Self::Status { status } if !(200..600).contains(status) => {
                mistakes.push(format!("{status} is no final HTTP status; use one from 200 to 599"));
            }
            _ => {}
        }
        if times == Some(0) {
            mistakes.push("times: 0 requests have no fault; use 1 or more, or no times until cleared".into());
        }
        mistakes
    }

    pub(super) fn word(&self) -> String {
        serde_json::to_value(self)
            .ok()
            .and_then(|value| Some(value.get("kind")?.as_str()?.to_owned()))
            .unwrap_or_default()
    }
}
