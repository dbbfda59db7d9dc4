//! Explains to an operator why a request changed nothing.

use std::fmt::Display;

use tonic::Status;

use crate::replica::clock::rfc3339;
use allclear_core::model::command::Rejection;
use allclear_core::model::event::Event;
use allclear_core::model::event_lookup::NotSelected;
use allclear_core::model::id::EventId;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::operator::{OperatorRequest, Suspension};
use allclear_core::model::state::State;

/// A refusal changed nothing; any other error may have.
pub(super) fn refused(error: &impl Display, is_refusal: bool) -> Status {
    if is_refusal { Status::failed_precondition(error.to_string()) } else { Status::aborted(error.to_string()) }
}

/// The status for a text that selects no event.
pub(super) fn not_selected(error: &NotSelected) -> Status {
    match error {
        NotSelected::Unknown { .. } => Status::not_found(error.to_string()),
        NotSelected::Ambiguous { .. } => Status::failed_precondition(error.to_string()),
    }
}

/// The status for an event that is closed or never existed.
pub(super) fn unknown(state: &State, event: &EventId) -> Status {
    if state.event(event).is_some() {
        return Status::failed_precondition(format!("event {event} is closed"));
    }
    not_selected(&NotSelected::Unknown { given: event.to_string() })
}

/// The status of a rejected request, by the state that this replica has applied since.
pub(super) fn refusal(state: &State, what: &OperatorRequest, why: Rejection) -> Status {
    let id = match what {
        OperatorRequest::Hold { event, .. }
        | OperatorRequest::Release { event }
        | OperatorRequest::Approve { event, .. }
        | OperatorRequest::Prepare { event, .. }
        | OperatorRequest::Retry { event, .. }
        | OperatorRequest::Skip { event, .. } => event,
        OperatorRequest::Restored { member } => {
            return Status::failed_precondition(match why {
                Rejection::Repeated => format!("{member} is in service"),
                _ => format!("{member} is not being restored: an event keeps the member out of service"),
            });
        }
        OperatorRequest::Pause { .. } | OperatorRequest::Resume | OperatorRequest::ClusterChange { .. } => {
            return Status::failed_precondition(match why {
                Rejection::Repeated => "no pause is in force".into(),
                _ => in_general(why),
            });
        }
    };
    match state.open_event(id) {
        Some(event) => Status::failed_precondition(format!("event {id} {}", about(state, event, what, why))),
        None => unknown(state, id),
    }
}

fn about(state: &State, event: &Event, what: &OperatorRequest, why: Rejection) -> String {
    match (why, what) {
        (Rejection::Late, _) => late(event),
        (_, OperatorRequest::Hold { .. } | OperatorRequest::Release { .. } | OperatorRequest::Approve { .. })
            if event.is_drill() =>
        {
            "is a drill, and a drill is never approved; end the drill before its time with `allclear drill --end`"
                .into()
        }
        (Rejection::Repeated, OperatorRequest::Release { .. }) => "is not held".into(),
        (Rejection::Repeated, OperatorRequest::Skip { .. }) => {
            "does not wait for that hook: the hook is done or skipped already".into()
        }
        (Rejection::Repeated, OperatorRequest::Prepare { .. }) => {
            format!("is being prepared since {}", rfc3339(event.preparation_starts()))
        }
        (Rejection::NotNow, OperatorRequest::Prepare { .. }) => {
            let usual = rfc3339(event.usual_preparation_start());
            format!("is prepared from {usual} on without this command; give an earlier time")
        }
        (Rejection::NotDue, OperatorRequest::Prepare { .. }) => {
            "is not prepared by policy, or is a drill: `allclear explain` names the treatment".into()
        }
        (Rejection::Repeated, OperatorRequest::Retry { .. }) => {
            "is not blocked by a failure of that hook: only a hook that failed in all its attempts is run again".into()
        }
        (Rejection::NotNow, OperatorRequest::Retry { .. }) => {
            "has no time left for that hook before its notice ends, or an attempt or an undo of the hook is under way: \
             repeat the command when it has ended"
                .into()
        }
        (Rejection::Repeated, _) => "was approved by an operator already".into(),
        (Rejection::Held, _) => {
            event.hold(state.now).map_or_else(|| "was held".into(), |hold| halted("is held", &hold))
        }
        (Rejection::Paused, _) => {
            let paused = "has to wait: approvals are paused";
            state.pause(state.now).map_or_else(|| paused.into(), |pause| halted(paused, &pause))
        }
        (Rejection::Changed, _) => changed(&event.announcement.id, event.revision),
        (Rejection::NotNow, _) => "is not listed as Scheduled by any current document".into(),
        (Rejection::NotDue, _) => "does not need that hook".into(),
        (why, _) => format!("is unchanged: {}", in_general(why)),
    }
}

fn late(event: &Event) -> String {
    let is_late = "an approval cannot be withdrawn";
    match (event.stage(), event.claims.last(), event.isolated_approvals.last()) {
        (Stage::Claimed, Some(claim), _) => {
            format!("is being approved by {} since {}: {is_late}", claim.approver, rfc3339(claim.at))
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

fn halted(what: &str, halt: &Suspension) -> String {
    format!("{what} {halt}, until {}; end the hold or pause first", rfc3339(halt.until))
}

fn changed(id: &EventId, revision: u64) -> String {
    format!("has changed and is at revision {revision} now; check the event again with `allclear explain {id}`")
}

fn in_general(why: Rejection) -> String {
    match why {
        Rejection::Unbounded => "the end has to be in the future, and at most 30 days from now".into(),
        why => why.to_string(),
    }
}
