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
use allclear_core::model::workload::Member;

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
    // No state of the cluster makes an end in the past right.
    if why == Rejection::Unbounded {
        return Status::invalid_argument("the end has to be in the future, and at most 30 days from now");
    }
    let id = match what {
        OperatorRequest::Hold { event, .. }
        | OperatorRequest::Release { event }
        | OperatorRequest::Approve { event, .. }
        | OperatorRequest::Prepare { event, .. }
        | OperatorRequest::Retry { event, .. }
        | OperatorRequest::Skip { event, .. } => event,
        OperatorRequest::Restored { member } => {
            return Status::failed_precondition(match why {
                Rejection::Repeated if is_registered(state, member) => format!("{member} is in service"),
                Rejection::Repeated => {
                    format!("{}: there is no such workload; `allclear workload list` has all workloads", member.path())
                }
                _ => format!("{member} is not being restored: an event keeps the member out of service"),
            });
        }
        OperatorRequest::Pause { .. } | OperatorRequest::Resume | OperatorRequest::ClusterChange { .. } => {
            return Status::failed_precondition(match why {
                Rejection::Repeated => "no pause is in force".into(),
                why => why.to_string(),
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
        (why, _) => format!("is unchanged: {why}"),
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

fn is_registered(state: &State, member: &Member) -> bool {
    state.replicas.get(&member.vm).is_some_and(|replica| replica.workload(&member.workload).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::id::{VmName, WorkloadName};
    use allclear_core::model::time::Timestamp;
    use tonic::Code;

    #[test]
    fn an_end_that_cannot_be_is_a_wrong_request_in_any_state() {
        let pause = OperatorRequest::Pause { until: Timestamp(0) };
        let status = refusal(&State::default(), &pause, Rejection::Unbounded);
        assert_eq!(status.code(), Code::InvalidArgument, "{status}");
        let status = refusal(&State::default(), &OperatorRequest::Resume, Rejection::Repeated);
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "no pause is in force"));
    }

    #[test]
    fn a_workload_that_nobody_registered_is_not_said_to_be_in_service() {
        let member = Member { vm: VmName::new("db-0"), workload: WorkloadName("nope".into()) };
        let status = refusal(&State::default(), &OperatorRequest::Restored { member }, Rejection::Repeated);
        assert_eq!(status.code(), Code::FailedPrecondition, "{status}");
        assert!(status.message().starts_with("db-0/nope: there is no such workload"), "{status}");
    }
}
