//! Parts of the sentences that need no event.

use super::super::post_detail::detail;
use crate::clock::rfc3339;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;
use allclear_core::model::treatment::Opening;

pub(super) fn not_taken(approver: &VmName, outcome: &PostOutcome, at: Timestamp) -> String {
    let (at, why) = (rfc3339(at), detail(outcome).unwrap_or_default());
    match outcome {
        PostOutcome::Refused(_) => {
            format!("Azure did not accept the approval that {approver} posted at {at}: {why}")
        }
        PostOutcome::NotSent(_) => format!("{approver} could not post the approval at {at}: {why}"),
        PostOutcome::Withdrawn => {
            format!(
                "{approver} did not post the approval at {at}: its document no longer listed the event as \
                     Scheduled"
            )
        }
        PostOutcome::Differs => format!(
            "{approver} did not post the approval at {at}: in its fresh document the event differs from the decided \
             event"
        ),
        PostOutcome::Accepted | PostOutcome::Unknown(_) => {
            format!("the outcome of the approval that {approver} posted to Azure at {at} is unknown: {why}")
        }
    }
}

/// `a`, `a and b`, `a, b and c`
pub(super) fn list(names: &[VmName]) -> String {
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    match names.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
        _ => names.join(""),
    }
}

/// A missed opening is told, because the operator expected a preparation then.
pub(super) fn too_early(starts_at: Timestamp, missed: Option<Opening>) -> String {
    let (starts, missed) = (rfc3339(starts_at), missed.map(|it| (rfc3339(it.opens), rfc3339(it.closes))));
    match missed {
        Some((from, to)) => format!(
            "the window from {from} to {to} has passed, and the event could not be prepared in that time; preparation \
             starts at {starts}"
        ),
        None => format!("the notice is long: preparation starts at {starts}"),
    }
}
