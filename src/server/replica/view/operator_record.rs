//! Operators' requests in words.

use crate::clock::rfc3339;
use allclear_core::isolation::unaware_replicas::{may_approve_by_itself, unaware_replicas};
use allclear_core::model::event::Event;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::operator::{OperatorAction, OperatorRecord, Suspension};
use allclear_core::model::state::State;
use allclear_core::planning_input::PlanningInput;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// A hold of one event, or a pause of all events.
pub(super) fn shown(halt: &Suspension, of: Option<&Event>, state: &State, input: &PlanningInput) -> shown::Pause {
    let is_early = |event: &&Event| {
        let is_of = of.is_none_or(|held| held.announcement.id == event.announcement.id);
        is_of && !event.is_drill() && event.stage() < Stage::Started && event.notice_ends() < halt.until
    };
    let start = |event: &Event| shown::pause::Start {
        event: event.announcement.id.to_string(),
        at: rfc3339(event.notice_ends()),
    };
    let unaware = unaware_replicas(state, input, halt.number);
    let may_approve = of.is_none_or(Event::is_user_initiated) && may_approve_by_itself(input, &unaware);
    shown::Pause {
        by: halt.by.clone(),
        until: rfc3339(halt.until),
        reason: halt.reason.clone(),
        unacknowledged_by: unaware.iter().map(ToString::to_string).collect(),
        unacknowledged_may_approve: may_approve,
        starts_before: state.open_events().filter(is_early).map(start).collect(),
        no_hooks: halt.no_hooks,
    }
}

/// A line of a timeline.
pub(super) fn told(state: &State, wish: &OperatorRecord) -> String {
    let (who, reason) = (&wish.who, &wish.reason);
    let what = match &wish.what {
        OperatorAction::Hold { until, no_hooks } => {
            let hooks = if *no_hooks { ", and no further hook begins" } else { "" };
            format!("held by {who} until {}{hooks}", rfc3339(*until))
        }
        OperatorAction::Release => format!("released by {who}"),
        OperatorAction::Approve { revision, over_budget } => {
            let over = if *over_budget { ", over budget" } else { "" };
            format!("approved by {who} as of revision {revision}{over}")
        }
        OperatorAction::Prepare { from, .. } => format!("to be prepared from {} on, by {who}", rfc3339(*from)),
        OperatorAction::Retry { member, hook, .. } => {
            let hook = state.hook_label(member, *hook);
            format!("{hook} of {} on {} to run again, by {who}", member.workload, member.vm)
        }
        OperatorAction::Restored(member) => format!("{member} reported as in service by {who}"),
        OperatorAction::Pause { until } => format!("all approvals paused by {who} until {}", rfc3339(*until)),
        OperatorAction::Resume => format!("approvals resumed by {who}"),
        OperatorAction::ClusterChange(what) => format!("{who} requested: {what}"),
    };
    if reason.is_empty() { what } else { format!("{what}: {reason}") }
}
