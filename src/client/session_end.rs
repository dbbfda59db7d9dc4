//! Why a session ended, and whether the end passes by itself.

use std::time::Duration;

use tonic::{Code, Status};

use super::outcome::cut;
use allclear_wire::pb::allclear::workload::v1;

/// Why a session ended.
pub(super) struct SessionEnd {
    pub(super) why: String,
    /// The replica does not understand the registration.
    pub(super) is_refused: bool,
    /// The minimum pause before the next connection.
    pub(super) after: Duration,
}

impl From<Status> for SessionEnd {
    fn from(status: Status) -> Self {
        let is_refused = matches!(status.code(), Code::InvalidArgument | Code::PermissionDenied | Code::Unimplemented);
        let why = match status.code() {
            Code::Unimplemented if status.message().is_empty() => {
                "this server does not serve workloads: use the path of `workloads.socket` of the replica"
            }
            _ => status.message(),
        };
        Self { is_refused, ..Self::lost(cut(why)) }
    }
}

impl SessionEnd {
    pub(super) fn away(away: &v1::GoAway) -> Self {
        Self { after: Duration::from_millis(away.after_ms), ..Self::lost(cut(&away.reason)) }
    }

    pub(super) fn lost(why: impl Into<String>) -> Self {
        Self { why: why.into(), is_refused: false, after: Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_that_serves_no_workloads_is_a_refusal_with_words() {
        let end = SessionEnd::from(Status::new(Code::Unimplemented, ""));
        assert!(end.is_refused && end.why.contains("use the path of `workloads.socket`"), "{}", end.why);
        let lost = SessionEnd::from(Status::unavailable("the replica stops"));
        assert!(!lost.is_refused && lost.why == "the replica stops");
    }
}
