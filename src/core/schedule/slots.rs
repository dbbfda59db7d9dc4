//! Slots of an event that has slots or is ready for slots: when its disruptive hooks may begin, and when the event
//! gives slots back (`SPEC.md` 8, R1 to R9). `plan`, `apply` and `explain` use this answer.

use crate::model::document::{EventType, Status};
use crate::model::event::Event;
use crate::model::id::GroupName;
use crate::model::lifecycle::Stage;
use crate::model::slot::{Slot, SlotCause, SlotState};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use crate::model::workload::{Member, Phase, RunsOn};
use crate::schedule::affected_members::needed;
use crate::schedule::failure::holding_failure_among;
use crate::schedule::groups::{by_group, filled, max_unavailable};
use crate::schedule::last_call;
use crate::schedule::peers::lacks_a_place;
use crate::schedule::required::required_steps;
use crate::schedule::skip_reason::LONG_FREEZE;
use crate::schedule::slot_queue::queue_position;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;
use alloc::vec::Vec;

/// Number of times that an event returns its slots automatically; afterwards only a last call or an operator prepares
/// the event.
pub const GIVES_BACK_AT_MOST: u32 = 2;

/// The reason why an event has to wait for slots, or has to wait while holding slots.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotDeferred {
    /// `None` where the member has no group, and waits for a restore of the member itself.
    pub group: Option<GroupName>,
    /// Never empty.
    pub by: Vec<SlotCause>,
}

/// Whether the event is a brief freeze without disruptive hooks. Such an event does not wait for slots, but counts in
/// the budget.
pub fn is_exempt(state: &State, event: &Event) -> bool {
    event.announcement.kind == EventType::Freeze
        && event.announcement.duration.is_some_and(|duration| duration < LONG_FREEZE)
        && !required_steps(state, event).iter().any(|step| step.id.phase.is_disruptive())
}

/// Whether a user repairs members that are out of service anyway (R3b).
pub fn is_repair(state: &State, event: &Event) -> bool {
    let members = needed(state, event);
    // An event that names the missing primary too may repair it.
    let is_repaired = |group: Option<&GroupName>| {
        members.iter().any(|(member, of)| *of == group && !state.may_lack_only_primary(member))
    };
    let is_unfit = |member: &Member| !state.is_fit_for(&event.announcement.id, member);
    event.is_user_initiated()
        && !members.is_empty()
        && members.iter().all(|(member, group)| is_unfit(member) && is_repaired(*group))
}

/// Whether the event is a repair by the fitness of each member at the time when the member's slot was taken.
fn was_repair(state: &State, event: &Event) -> bool {
    let members = needed(state, event);
    let was_fit = |member: &Member| state.slots.get(member).is_none_or(|slot| slot.was_fit);
    event.is_user_initiated() && !members.is_empty() && members.iter().all(|(member, _)| !was_fit(member))
}

/// The deferral by a prepared member of the event's VMs that is no longer registered: the workload registered instead
/// waits for the member's restore, because both may be the same workload.
pub(crate) fn restore_owed_under_another_name(state: &State, event: &Event) -> Option<SlotDeferred> {
    let is_owed = |(member, slot): &(&Member, &Slot)| {
        let is_returning = slot.state == SlotState::Returning && slot.needs_restore;
        is_returning && event.affects(&member.vm) && state.workload(member).is_none()
    };
    let (_, slot) = state.slots.iter().find(is_owed)?;
    Some(SlotDeferred { group: slot.group.clone(), by: [SlotCause::Returning(slot.by.clone())].into() })
}

/// Whether free slots are the event's only missing condition (R4).
pub fn is_ready_for_slots(state: &State, event: &Event, now: Timestamp) -> bool {
    let Some(treatment) = &event.treatment else { return false };
    let is_overruled = event.is_approved_by_operator();
    let acts = is_overruled || treatment.action != Action::Observe;
    // An event without required hooks does not wait for the preparation time.
    let is_due = is_overruled
        || treatment.action == Action::Approve
        || (now >= event.preparation_starts() && !event.has_missed_window(now))
        || required_steps(state, event).is_empty();
    acts && is_due
        && is_awaited(state, event)
        && suspended_until(state, event, now).is_none()
        && match hindrance(state, event, now) {
            None => true,
            Some(Hindrance::Lasting) => false,
            Some(Hindrance::Passing { since }) => now.since(since) < event.give_back_after(),
        }
}

/// When the operator's hold of the event, or the pause, ends.
fn suspended_until(state: &State, event: &Event, now: Timestamp) -> Option<Timestamp> {
    let pause = state.pause(now).filter(|_| !event.is_drill());
    event.hold(now).into_iter().chain(pause).map(|suspension| suspension.until).max()
}

/// Whether the event waits for its approval, and for more than its last call.
fn is_awaited(state: &State, event: &Event) -> bool {
    event.stage() <= Stage::Preparing
        && !event.has_isolated_approval()
        && (event.is_drill() || state.observed_status(&event.announcement.id) == Some(&Status::Scheduled))
        && !gave_back_too_often(event)
}

/// Whether only the last call or an operator prepares the event: the event gave its slots back too often (R6).
pub fn waits_for_last_call(event: &Event) -> bool {
    gave_back_too_often(event) && event.slots_since.is_none() && event.last_call_since.is_none()
}

fn gave_back_too_often(event: &Event) -> bool {
    event.times_given_back >= GIVES_BACK_AT_MOST && !event.is_approved_by_operator()
}

/// A condition of the event's hooks that keeps the event from going on.
enum Hindrance {
    /// Ended only by an operator.
    Lasting,
    /// May end automatically.
    Passing { since: Timestamp },
}

fn hindrance(state: &State, event: &Event, now: Timestamp) -> Option<Hindrance> {
    if event.is_approved_by_operator() {
        return None;
    }
    let steps = required_steps(state, event);
    if holding_failure_among(event, &steps, now).is_some() {
        return Some(Hindrance::Lasting);
    }
    // What may end automatically hinders no longer than the budget: the event is then approved without these hooks.
    if event.treatment.as_ref().is_some_and(|treatment| treatment.budget.is_some()) {
        return None;
    }
    let is_waiting = |step: &Step<'_>| matches!(step_state::step_state(event, step, now), StepState::Due { .. });
    let unreachable_since = |step: &Step<'_>| {
        let since = state.replicas.get(&step.member.vm)?.unreachable?;
        (step.hook.runs_on == RunsOn::Affected && is_waiting(step)).then_some(since)
    };
    // Service is not moved to a VM that is out of service.
    let placeless_since = |step: &Step<'_>| {
        let waits = step.attempts.is_empty() && is_waiting(step) && lacks_a_place(state, event, step);
        waits.then(|| event.slots_since.unwrap_or(now))
    };
    let since =
        |step| step_state::blocked_since(step).or_else(|| unreachable_since(step)).or_else(|| placeless_since(step));
    let stuck = steps.iter().filter_map(since);
    stuck.min().map(|since| Hindrance::Passing { since })
}

/// Whether disruptive hooks of the event may begin (R1): the event has slots and goes on.
pub fn may_disrupt(state: &State, event: &Event, now: Timestamp) -> bool {
    is_past_waiting(event) || (may_complete(state, event, now) && deferral_while_out(state, event).is_none())
}

/// Whether a failover that began may run again. Members that are not ready do not prevent this: they may wait for the
/// primary that only this failover brings back.
pub fn may_complete(state: &State, event: &Event, now: Timestamp) -> bool {
    is_past_waiting(event) || (event.slots_since.is_some() && is_ready_for_slots(state, event, now))
}

/// Whether the event waits for nothing any more. A peer may still move service away for an event first seen as `Started`.
fn is_past_waiting(event: &Event) -> bool {
    event.last_call_since.is_some() || event.is_reopened() || event.stage() == Stage::Started
}

/// The reason why an event with slots may neither begin hooks nor be claimed (R1c).
pub fn deferral_while_out(state: &State, event: &Event) -> Option<SlotDeferred> {
    if event.is_over_budget() || is_exempt(state, event) || event.reason_to_repeat().is_some() {
        return None;
    }
    let groups = by_group(state, event);
    if is_repair(state, event) {
        let repairs = |other: &&Event| {
            let is_under_way = (Stage::Claimed..=Stage::Started).contains(&other.stage());
            other.announcement.id != event.announcement.id && is_under_way && was_repair(state, other)
        };
        return state.open_events().filter(repairs).find_map(|other| {
            let group = by_group(state, other).into_keys().find(|group| groups.contains_key(group))?;
            Some(SlotDeferred {
                group: Some(group.clone()),
                by: [SlotCause::Event(other.announcement.id.clone())].into(),
            })
        });
    }
    let above = || groups.iter().find_map(|(group, own)| limit_exceeded(state, group, own));
    restore_owed_under_another_name(state, event).or_else(above)
}

fn limit_exceeded(state: &State, group: &GroupName, own: &[Member]) -> Option<SlotDeferred> {
    let limit = max_unavailable(state, group);
    let others = filled(state, group).into_iter().filter(|(member, _)| !own.contains(member));
    let others: Vec<SlotCause> = others.map(|(_, cause)| cause).collect();
    let is_above = !others.is_empty() && others.len() + own.len() > limit;
    is_above.then(|| SlotDeferred { group: Some(group.clone()), by: others })
}

/// Whether only later, unclaimed events defer this event: the later events return their slots (R1c).
fn is_blocked_by_later_events(state: &State, event: &Event, held: &SlotDeferred, now: Timestamp) -> bool {
    held.by.iter().all(|cause| match cause {
        SlotCause::Event(id) => state.open_event(id).is_some_and(|other| {
            other.stage() <= Stage::Preparing && queue_position(state, event, now) < queue_position(state, other, now)
        }),
        SlotCause::Returning(_) | SlotCause::Unreachable(_) | SlotCause::NotReady(_) | SlotCause::Queue(_) => false,
    })
}

/// Whether the event keeps members out and does not go on (R6). A passing hindrance counts from the start of the
/// hindrance.
pub(crate) fn is_stuck(state: &State, event: &Event, now: Timestamp) -> bool {
    if event.last_call_since.is_some() || event.stage() > Stage::Preparing || event.may_have_been_approved() {
        return false;
    }
    let is_listed = event.is_drill() || state.is_listed(&event.announcement.id);
    !is_listed
        || event.slots_since.is_none()
        || gave_back_too_often(event)
        || suspended_until(state, event, now).is_some()
        || hindrance(state, event, now).is_some()
        || deferral_while_out(state, event).is_some_and(|held| !is_blocked_by_later_events(state, event, &held, now))
}

/// Until when no disruptive hook of the event may begin although the event has its slots and no hook has failed: until a
/// hold or a pause ends, or until an unknown time. `None` while hooks may begin, and for an event without a budget.
pub(crate) fn halted_until(state: &State, event: &Event, now: Timestamp) -> Option<Timestamp> {
    let has_budget = event.treatment.as_ref().is_some_and(|treatment| treatment.budget.is_some());
    if !has_budget || event.slots_since.is_none() || event.stage() > Stage::Preparing {
        return None;
    }
    // A failed hook stops the event, whatever else does, and does not run again when that ends.
    if hindrance(state, event, now).is_some() {
        return None;
    }
    let goes_on = event.last_call_since.is_some()
        || event.is_reopened()
        || (is_awaited(state, event) && deferral_while_out(state, event).is_none());
    if goes_on { suspended_until(state, event, now) } else { Some(Timestamp::MAX) }
}

/// Whether the event keeps at least one member out.
pub fn holds_slots(state: &State, event: &Event) -> bool {
    state.slots.values().any(|slot| slot.events.contains(&event.announcement.id))
}

/// Whether the event returns its slots now. Not shortly before the notice ends: the platform then starts the event anyway.
pub(crate) fn gives_back_now(state: &State, event: &Event, now: Timestamp) -> bool {
    let is_due = gives_back_at(state, event).is_some_and(|at| now >= at);
    // A failover stopped half way would leave no primary in the group.
    let runs_failover = || event.attempts.iter().any(|it| it.outcome.is_none() && it.hook.phase == Phase::Failover);
    is_due && !runs_failover() && (event.is_drill() || !last_call::is_near(event, now)) && is_stuck(state, event, now)
}

/// The time when the event returns its slots, unless the event can go on before. `None` without a return before the
/// notice is about to end.
pub fn gives_back_at(state: &State, event: &Event) -> Option<Timestamp> {
    let since = event.stuck_since.filter(|_| holds_slots(state, event))?;
    let at = since.plus(event.give_back_after());
    (event.is_drill() || !last_call::is_near(event, at)).then_some(at)
}
