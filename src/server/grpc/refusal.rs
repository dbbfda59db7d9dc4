//! Why an operator's wish changed nothing, for the operator.

use tonic::Status;

use super::wishes::unknown;
use crate::replica::clock::rfc3339;
use allclear_core::model::command::Ignored;
use allclear_core::model::event::Event;
use allclear_core::model::id::EventId;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::operator::{Asked, Halt};
use allclear_core::model::state::State;

/// By the state that this replica has applied since.
pub(super) fn refusal(state: &State, what: &Asked, why: Ignored) -> Status {
    let id = match what {
        Asked::Hold { event, .. }
        | Asked::Release { event }
        | Asked::Approve { event, .. }
        | Asked::Skip { event, .. } => event,
        Asked::Restored { member } => {
            return Status::failed_precondition(match why {
                Ignored::Repeated => format!("{member} is in service"),
                _ => format!("{member} is not being restored: an event keeps it out"),
            });
        }
        Asked::Pause { .. } | Asked::Resume | Asked::Wish { .. } => {
            return Status::failed_precondition(match why {
                Ignored::Repeated => "no pause is in force".into(),
                _ => in_general(why),
            });
        }
    };
    match state.open_event(id) {
        Some(event) => Status::failed_precondition(format!("event {id} {}", about(state, event, what, why))),
        None => unknown(state, id),
    }
}

fn about(state: &State, event: &Event, what: &Asked, why: Ignored) -> String {
    match (why, what) {
        (Ignored::Late, _) => late(event),
        (_, Asked::Hold { .. } | Asked::Release { .. } | Asked::Approve { .. }) if event.is_drill() => {
            "is a drill, which is never approved; `allclear drill --end` ends it before its time".into()
        }
        (Ignored::Repeated, Asked::Release { .. }) => "is not held".into(),
        (Ignored::Repeated, Asked::Skip { .. }) => "does not wait for that hook: it is done or skipped already".into(),
        (Ignored::Repeated, _) => "was approved by an operator already".into(),
        (Ignored::Held, _) => event.hold(state.now).map_or_else(|| "was held".into(), |hold| halted("is held", &hold)),
        (Ignored::Paused, _) => {
            let paused = "has to wait: approvals are paused";
            state.pause(state.now).map_or_else(|| paused.into(), |pause| halted(paused, &pause))
        }
        (Ignored::Changed, _) => changed(&event.announcement.id, event.revision),
        (Ignored::NotNow, _) => "is shown as Scheduled by no current document".into(),
        (Ignored::NotDue, _) => "does not need that hook".into(),
        (why, _) => format!("is as it was: {}", in_general(why)),
    }
}

fn late(event: &Event) -> String {
    let is_late = "a claim is never taken back";
    match (event.stage(), event.claims.last(), event.takeovers.last()) {
        (Stage::Claimed, Some(claim), _) => {
            format!("is about to be approved by {} since {}: {is_late}", claim.approver, rfc3339(claim.at))
        }
        (Stage::Announced | Stage::Preparing | Stage::Claimed, _, Some(takeover)) => {
            format!("was approved by {} alone at {}: {is_late}", takeover.approver, rfc3339(takeover.at))
        }
        (Stage::Approved, ..) => format!("is approved already: {is_late}"),
        (Stage::Started, ..) => "has started already".into(),
        (Stage::Restoring | Stage::Closed, ..) => "is over".into(),
        (Stage::Announced | Stage::Preparing | Stage::Claimed, ..) => format!("is decided already: {is_late}"),
    }
}

fn halted(what: &str, halt: &Halt) -> String {
    format!("{what} {halt}, until {}; end that first", rfc3339(halt.until))
}

fn changed(id: &EventId, revision: u64) -> String {
    format!("has changed: it is at revision {revision} now; look at it again with `allclear explain {id}`")
}

fn in_general(why: Ignored) -> String {
    match why {
        Ignored::Unbounded => "the end has to lie in the future, and no more than 30 days away".into(),
        why => why.to_string(),
    }
}
