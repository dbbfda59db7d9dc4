//! The detail of an approval's outcome.

use allclear_core::model::claim::{Claim, PostOutcome};

pub fn detail(outcome: &PostOutcome) -> Option<String> {
    match outcome {
        PostOutcome::Refused(status) => Some(format!("HTTP status {status}")),
        PostOutcome::NotSent(why) | PostOutcome::Unknown(why) => Some(why.clone()),
        PostOutcome::Accepted | PostOutcome::Withdrawn | PostOutcome::Differs => None,
    }
}

/// The detail of a claim: of an approval through the control plane, the way too.
pub(super) fn claim_detail(claim: &Claim) -> Option<String> {
    let outcome = claim.outcome.as_ref().map(|(outcome, _)| outcome);
    if !claim.is_last_resort {
        return outcome.and_then(detail);
    }
    let way = "last resort, through the control plane";
    Some(match outcome.and_then(refusal) {
        Some(told) => format!("{way}: {told}"),
        None => way.to_owned(),
    })
}

/// What the control plane did not accept, and the reason that its status stands for.
fn refusal(outcome: &PostOutcome) -> Option<String> {
    let hint = match outcome {
        PostOutcome::Refused(401) => ": Azure does not know the token; the identity may have been deleted",
        PostOutcome::Refused(403) => ": the identity of the VM needs the role Scheduled Events Contributor",
        PostOutcome::Refused(404) => ": Azure knows no such event of the VM",
        _ => "",
    };
    detail(outcome).map(|told| format!("{told}{hint}"))
}
