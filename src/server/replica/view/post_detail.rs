//! The detail of an approval's outcome.

use allclear_core::model::claim::PostOutcome;

pub fn detail(outcome: &PostOutcome) -> Option<String> {
    match outcome {
        PostOutcome::Refused(status) => Some(format!("HTTP status {status}")),
        PostOutcome::NotSent(why) | PostOutcome::Unknown(why) => Some(why.clone()),
        PostOutcome::Accepted | PostOutcome::Withdrawn | PostOutcome::Differs => None,
    }
}
