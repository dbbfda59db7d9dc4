//! Attempts that may start now.

use crate::model::document::Status;
use crate::model::event::Event;
use crate::model::id::WorkloadName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member, Phase, Role};
use crate::schedule::constraints;
use crate::schedule::last_call;
use crate::schedule::required::required_steps;
use crate::schedule::restore;
use crate::schedule::slots;
use crate::schedule::step::{Next, Step};
use crate::schedule::step_state::{StepState, is_half_done, is_satisfied, is_stale, step_state};
use alloc::vec::Vec;
use core::cell::LazyCell;

/// The attempts that may be begun now; `plan` begins these attempts and `apply` rejects all other attempts.
pub fn next_steps<'a>(state: &'a State, event: &'a Event, now: Timestamp) -> Vec<Next<'a>> {
    let is_undecided = event.stage() <= Stage::Preparing;
    let has_to_wait = || now < event.preparation_starts() || event.hold(now).is_some_and(|hold| hold.no_hooks);
    let mut found = if may_prepare(event) && !(is_undecided && has_to_wait()) {
        next_preparing(state, event, now)
    } else {
        Vec::new()
    };
    found.extend(next_restoring(state, event, now));
    constraints::enforce_exclusion(state, &mut found);
    found
}

/// Whether hooks before the start may still begin, now or later, as far as the course of the event decides this.
pub(crate) fn may_prepare(event: &Event) -> bool {
    let is_in_time = match event.stage() {
        Stage::Announced | Stage::Preparing => !event.has_isolated_approval(),
        Stage::Approved => event.is_reopened(),
        Stage::Started => event.entered_at(Stage::Started) == Some(event.first_seen()),
        Stage::Claimed | Stage::Restoring | Stage::Closed => false,
    };
    is_in_time && !event.is_approved_by_operator()
}

fn next_restoring<'a>(state: &'a State, event: &Event, now: Timestamp) -> Vec<Next<'a>> {
    // A running attempt for the same workload is stopped first.
    let busy = LazyCell::new(|| constraints::busy(state));
    first_due(event, &restore::restore_steps(state, event), now, |step, _| !busy.contains(&step.member))
}

fn next_preparing<'a>(state: &'a State, event: &'a Event, now: Timestamp) -> Vec<Next<'a>> {
    let steps = required_steps(state, event);
    let circles = LazyCell::new(|| constraints::dependency_cycles(state));
    // Lazy, because `busy` reads all open events, and most steps wait for nothing.
    let busy = LazyCell::new(|| constraints::busy(state));
    let may_disrupt = LazyCell::new(|| slots::may_disrupt(state, event, now));
    let may_begin = |step: &Step<'_>| *may_disrupt || (is_half_done(step) && slots::may_complete(state, event, now));
    // The event may be over: running attempts go on, and no new disruption begins.
    let is_missing = state.observed_status(&event.announcement.id) == Some(&Status::Missing);
    let is_let = |step: &Step<'_>| {
        if is_missing {
            return false;
        }
        let has_slot = step.stint > 0 || event.is_dry_run();
        !step.id.phase.is_disruptive() || (has_slot && may_begin(step) && is_in_order(state, event, &steps, step, now))
    };
    let mut found = first_due(event, &steps, now, |step, intent| {
        // Confirmation of a hook, and undo of a failed hook, disrupt nothing.
        if busy.contains(&step.member) || (intent == Intent::Run && !is_let(step)) {
            return false;
        }
        let after: Vec<&WorkloadName> =
            constraints::workloads_waited_for(state, &step.member, |name| circles.contains(name)).collect();
        after.is_empty()
            || steps
                .iter()
                .filter(|other| after.contains(&&other.member.workload))
                .all(|other| is_satisfied(event, other, now))
    });
    if now < event.preparation_ends() {
        let doubtful = steps.iter().filter(|step| is_stale(step, now) && !busy.contains(&step.member));
        let doubtful = doubtful.filter(|step| {
            // A drill is never approved, so nothing relies on its last results.
            let is_all = !event.is_drill() && steps.iter().all(|step| is_satisfied(event, step, now));
            is_all || (step.id.phase == Phase::Checkpoint && is_about_to_go(event, &steps, &step.member, now))
        });
        found.extend(doubtful.map(|step| Next { step: step.clone(), intent: Intent::Confirm }));
    }
    found
}

/// Whether the member has a slot and the first disruptive hook has yet to begin.
fn is_about_to_go(event: &Event, steps: &[Step<'_>], member: &Member, now: Timestamp) -> bool {
    let mut own = steps.iter().filter(|step| step.member == *member && step.id.phase.is_disruptive());
    own.next().is_some_and(|first| {
        first.stint > 0 && first.attempts.is_empty() && matches!(step_state(event, first, now), StepState::Due { .. })
    })
}

/// Conditions of a disruptive step beside its slot: an outdated checkpoint is confirmed first, a primary moves before
/// any other disruption (R8), and in last call some hooks are left out (R7).
fn is_in_order(state: &State, event: &Event, steps: &[Step<'_>], step: &Step<'_>, now: Timestamp) -> bool {
    let own = || steps.iter().filter(|other| other.member == step.member);
    let is_fresh = || {
        let has_begun = own().any(|other| other.id.phase.is_disruptive() && !other.attempts.is_empty());
        has_begun || !own().any(|other| other.id.phase == Phase::Checkpoint && is_stale(other, now))
    };
    let has_moved = || {
        let is_primary = state.role(&step.member) == Role::Primary;
        let mut failovers = own().filter(|other| other.id.phase == Phase::Failover);
        step.id.phase == Phase::Failover
            || !is_primary
            || failovers.all(|other| matches!(step_state(event, other, now), StepState::Satisfied))
    };
    last_call::lets_run(state, event, step, now) && is_fresh() && has_moved()
}

/// The first due step of each workload, if earlier steps are satisfied and `gate` allows the step.
fn first_due<'a>(
    event: &Event,
    steps: &[Step<'a>],
    now: Timestamp,
    gate: impl Fn(&Step<'a>, Intent) -> bool,
) -> Vec<Next<'a>> {
    let mut found: Vec<Next<'a>> = Vec::new();
    for (place, step) in steps.iter().enumerate() {
        let StepState::Due { intent, from, .. } = step_state(event, step, now) else {
            continue;
        };
        // The steps of one workload are adjacent.
        let mut before = steps[..place].iter().rev().take_while(|other| other.member == step.member);
        if now >= from && before.all(|other| is_satisfied(event, other, now)) && gate(step, intent) {
            found.push(Next { step: step.clone(), intent });
        }
    }
    found
}
