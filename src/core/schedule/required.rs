//! Required hooks of an event, in the order of each workload, derived from the registrations, the conditions of the
//! workloads, the treatment and the attempts.

use crate::model::attempt::Attempt;
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::GroupName;
use crate::model::state::State;
use crate::model::treatment::Action;
use crate::model::workload::{Hook, Member, OnAbsent, OnFailure, Phase, Role};
use crate::schedule::affected_members::{affected, away};
use crate::schedule::skip_reason::{SkipReason, skip_reason};
use crate::schedule::step::Step;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cell::LazyCell;

/// Skipped hooks before the event, for events that are prepared.
pub fn skipped_steps<'a>(state: &'a State, event: &'a Event) -> Vec<(Step<'a>, SkipReason)> {
    required_or_skipped(state, event).into_iter().filter_map(|(step, why)| Some((step, why?))).collect()
}

/// Hooks only named by a dry run: a rehearsal would run these hooks beside the hooks run by the dry run.
pub fn would_run<'a>(state: &'a State, event: &'a Event) -> Vec<Step<'a>> {
    let named = skipped_steps(state, event).into_iter().filter(|(_, why)| *why == SkipReason::DryRun);
    named.map(|(step, _)| step).collect()
}

/// Required hooks of the affected workloads; the hooks of one workload are in running order.
pub fn required_steps<'a>(state: &'a State, event: &'a Event) -> Vec<Step<'a>> {
    let needed = required_or_skipped(state, event).into_iter().filter(|(_, left_out)| left_out.is_none());
    needed.map(|(step, _)| step).collect()
}

/// Every hook of the affected workloads before a prepared event; `None`: the event needs the hook.
pub(crate) fn required_or_skipped<'a>(state: &'a State, event: &'a Event) -> Vec<(Step<'a>, Option<SkipReason>)> {
    let Some(treatment) = event.treatment.as_ref().filter(|treatment| treatment.action == Action::Prepare) else {
        return Vec::new();
    };
    let led = LazyCell::new(|| led(state, event));
    let mut found = Vec::new();
    for (vm, workload) in affected(state, event) {
        // Many session workloads register only for notifications.
        if workload.hooks.is_empty() {
            continue;
        }
        let member = workload.on(vm);
        let is_led = || workload.group.as_ref().is_some_and(|group| led.contains(group));
        let away = away(state, &member, workload);
        // A dry run disrupts nothing: a restore is one more hook that reports an action, and only a dry run
        // runs check hooks for an event.
        let (first, last) =
            if event.is_dry_run() { (Phase::Check, Phase::Ready) } else { (Phase::Checkpoint, Phase::Shutdown) };
        for phase in Phase::ALL.into_iter().filter(|phase| (first..=last).contains(phase)) {
            found.extend(workload.hooks_of(phase).map(|(id, hook)| {
                let step = step(state, event, &member, (id, hook), away);
                let why = skip_reason(state, event, treatment, &step, is_led);
                (step, why)
            }));
        }
    }
    found
}

/// The groups whose primary is known to be an affected member.
fn led<'a>(state: &'a State, event: &Event) -> BTreeSet<&'a GroupName> {
    let grouped =
        affected(state, event).into_iter().filter_map(|(vm, workload)| Some((workload.group.as_ref()?, vm, workload)));
    let primaries = grouped.filter(|(_, vm, workload)| state.role(&workload.on(vm)) == Role::Primary);
    primaries.map(|(group, ..)| group).collect()
}

fn step<'a>(
    state: &'a State,
    event: &'a Event,
    member: &Member,
    (id, hook): (HookId, &'a Hook),
    away: Option<OnAbsent>,
) -> Step<'a> {
    let event_id = &event.announcement.id;
    let slot = state.slots.get(member).filter(|slot| slot.events.contains(event_id));
    let takes_away = id.phase.is_disruptive() && !event.is_dry_run();
    // For an event that is over, the last stint counts.
    let of_member = || event.attempts.iter().filter(|attempt| attempt.member == *member).map(|attempt| attempt.stint);
    let last = || if event.stage().is_over() { of_member().max() } else { None };
    let stint = slot.map(|slot| slot.stint).or_else(last).unwrap_or(0);
    let counts = |attempt: &&Attempt| !takes_away || attempt.stint == stint;
    let others = || state.open_events().filter(|other| other.announcement.id != *event_id);
    let is_done = |other: &Event| {
        let last = other.forward_attempts_of(member, id).rfind(|attempt| attempt.stint == stint);
        last.and_then(|last| last.outcome.as_ref()).is_some_and(|(outcome, _)| outcome.is_favourable())
    };
    let was_unfit = event.is_user_initiated() && slot.is_some_and(|slot| !slot.was_fit);
    let is_excused = was_unfit && !state.is_fit_for(event_id, member);
    Step {
        member: member.clone(),
        id,
        hook,
        when_disconnected: away,
        stint,
        attempts: event.attempts_of(member, id).filter(counts).collect(),
        is_done_elsewhere: takes_away && stint > 0 && others().any(is_done),
        is_undo: false,
        on_failure: if is_excused { OnFailure::Continue } else { hook.on_failure },
    }
}
