//! The ends of notified waits. An event also stops waiting when the notice runs out, without any repair: a receiver of a
//! resolution would close the alarm while the primary goes down.

use crate::model::event::{Ending, Event};
use crate::model::hook_id::HookId;
use crate::model::lifecycle::Stage;
use crate::model::slot::SlotCause;
use crate::model::state::State;
use crate::model::workload::Member;
use crate::planning_input::PlanningInput;
use crate::schedule::required::required_steps;
use crate::schedule::slot_taking::slots_denied_by;
use crate::schedule::slots::deferral_while_out;
use crate::schedule::step::Step;

/// The end of a wait for a person.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum WaitEnd {
    /// The cause of the wait is removed, an operator decided, or the event went away without having started.
    Resolved,
    /// The event was approved, started or forgotten in spite of the cause.
    Unresolved,
}

/// How a wait without a present cause has ended; `None` while both ends are possible, as for a failed hook that runs again.
/// `what` is the code of the blocker, and the hook after a slash.
pub(super) fn wait_end(state: &State, event: &Event, what: &str, input: &PlanningInput) -> Option<WaitEnd> {
    if went_without_start(event) {
        return Some(WaitEnd::Resolved);
    }
    let (code, hook) = what.split_once('/').unwrap_or((what, ""));
    let is_approved = event.entered_at(Stage::Approved).is_some() || event.is_accepted();
    let goes_on_from = if is_of_approval(code) { Stage::Started } else { Stage::Approved };
    let has_gone_on =
        event.stage() >= goes_on_from || (event.has_isolated_approval() && goes_on_from == Stage::Approved);
    let is_chosen = event.is_approved_by_operator() || event.has_isolated_approval_of_operator();
    let is_resolved = if is_of_approval(code) {
        is_approved
    } else if is_chosen {
        true
    } else if hook.contains('/') {
        // After the start, hooks cease to be required by the start alone.
        is_settled(state, event, hook) || (event.stage() <= Stage::Approved && !is_required(state, event, hook))
    } else if has_gone_on {
        is_approved
    } else {
        !is_still_lacking(state, event, code, input)
    };
    let unresolved = has_gone_on.then_some(WaitEnd::Unresolved);
    if is_resolved { Some(WaitEnd::Resolved) } else { unresolved }
}

/// Whether the event was withdrawn in time. An event that goes at the end of the notice may have started unseen, and a
/// forgotten event too.
fn went_without_start(event: &Event) -> bool {
    let is_in_time = event.over_at().is_some_and(|at| at < event.notice_ends());
    is_in_time && !event.may_have_started() && event.ending != Some(Ending::Forgotten)
}

/// Whether the event waits for the platform to take the approval. Each post hides the failure of the post before.
fn is_of_approval(code: &str) -> bool {
    matches!(code, "posting" | "post_failed" | "views_differ")
}

/// Whether the hook is done, or an operator skipped the hook. A hook is not done when the event passes over the hook: after
/// a failure that lets the event go on, without a reachable replica, or without time.
fn is_settled(state: &State, event: &Event, hook: &str) -> bool {
    let is_skipped = event.waivers.iter().any(|waiver| {
        event.is_skipped(&waiver.member, waiver.hook) && is_named(state, &waiver.member, waiver.hook, hook)
    });
    let is_done = |step: &Step<'_>| {
        let last = step.forward().next_back().and_then(|last| last.outcome.as_ref());
        step.is_done_elsewhere || last.is_some_and(|(outcome, _)| outcome.is_favourable())
    };
    let steps = required_steps(state, event);
    is_skipped || steps.iter().any(|step| is_named(state, &step.member, step.id, hook) && is_done(step))
}

fn is_required(state: &State, event: &Event, hook: &str) -> bool {
    required_steps(state, event).iter().any(|step| is_named(state, &step.member, step.id, hook))
}

/// Whether the text is the name of this hook; a number of a retry or of a repeated notification may follow.
fn is_named(state: &State, member: &Member, id: HookId, text: &str) -> bool {
    let end = text.strip_prefix(state.hook_name(member, id).as_str());
    end.is_some_and(|end| end.is_empty() || end.starts_with('/'))
}

/// Whether the cause of the wait is still there, although the event goes on: in last call an event takes slots over the
/// limit, and the wait for a registration is bounded.
fn is_still_lacking(state: &State, event: &Event, code: &str, input: &PlanningInput) -> bool {
    match code {
        "budget" => {
            let is_sick = |cause: &SlotCause| matches!(cause, SlotCause::Unreachable(_) | SlotCause::NotReady(_));
            let held = match event.slots_since {
                None => slots_denied_by(state, event, input.now),
                Some(_) => deferral_while_out(state, event),
            };
            held.is_some_and(|held| held.by.iter().any(is_sick))
        }
        "hook_waiting" => input.members.iter().any(|vm| event.affects(vm) && !state.replicas.contains_key(vm)),
        _ => false,
    }
}
