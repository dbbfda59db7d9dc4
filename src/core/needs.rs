//! Which hooks an event needs, in the order in which those of one workload run. Derived from what is registered, noted
//! of the workloads, chosen for the event and tried.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::LazyCell;

use super::attempt::Attempt;
use super::event::Event;
use super::id::{GroupName, VmName};
use super::left_out::{LeftOut, left_out};
use super::policy::Action;
use super::state::State;
use super::workload::{Hook, HookId, Intent, Member, OnAbsent, OnFailure, Phase, Role, Workload};

/// One hook of one affected workload.
#[derive(Clone, Debug)]
pub struct Step<'a> {
    pub member: Member,
    pub id: HookId,
    pub hook: &'a Hook,
    /// The workload dials in and is away: what that means.
    pub away: Option<OnAbsent>,
    /// The stint in which a disruptive hook is begun now; 0 where the event does not keep the member out.
    pub stint: u64,
    /// Those that count, oldest first: of a disruptive hook those of the present stint.
    pub attempts: Vec<&'a Attempt>,
    /// In this stint the hook was done for another event.
    pub is_done_elsewhere: bool,
    /// What was begun is taken back.
    pub is_undo: bool,
    /// The hook's own, unless its member was sick when somebody asked for the event (R3b).
    pub on_failure: OnFailure,
}

impl<'a> Step<'a> {
    /// The attempts that were to get it done: the others take it back.
    pub fn forward(&self) -> impl DoubleEndedIterator<Item = &'a Attempt> + '_ {
        self.attempts.iter().copied().filter(|attempt| attempt.intent != Intent::Undo)
    }
}

/// The hooks that prepare the affected workloads; those of one workload stand in the order in which they run.
pub fn preparing<'a>(state: &'a State, event: &'a Event) -> Vec<Step<'a>> {
    let needed = considered(state, event).into_iter().filter(|(_, left_out)| left_out.is_none());
    needed.map(|(step, _)| step).collect()
}

/// Every hook before the event of those it affects, where it is prepared at all; `None`: the event needs it.
pub(super) fn considered<'a>(state: &'a State, event: &'a Event) -> Vec<(Step<'a>, Option<LeftOut>)> {
    let Some(treatment) = event.treatment.as_ref().filter(|treatment| treatment.action == Action::Prepare) else {
        return Vec::new();
    };
    let led = LazyCell::new(|| led(state, event));
    let mut found = Vec::new();
    for (vm, workload) in affected(state, event) {
        // Many that dial in only want to know.
        if workload.hooks.is_empty() {
            continue;
        }
        let member = workload.on(vm);
        let is_led = || workload.group.as_ref().is_some_and(|group| led.contains(group));
        let away = away(state, &member, workload);
        // A dry run takes nothing away: its restore is one more hook that says what it would do, and it alone checks.
        let (first, last) =
            if event.is_dry_run() { (Phase::Check, Phase::Ready) } else { (Phase::Checkpoint, Phase::Shutdown) };
        for phase in Phase::ALL.into_iter().filter(|phase| (first..=last).contains(phase)) {
            found.extend(workload.hooks_of(phase).map(|(id, hook)| {
                let step = step(state, event, &member, id, hook, away);
                let why = left_out(state, event, treatment, &step, is_led);
                (step, why)
            }));
        }
    }
    found
}

/// The groups of which an affected member is known to be the primary.
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
    id: HookId,
    hook: &'a Hook,
    away: Option<OnAbsent>,
) -> Step<'a> {
    let event_id = &event.announcement.id;
    let slot = state.slots.get(member).filter(|slot| slot.events.contains(event_id));
    let takes_away = id.phase.is_disruptive() && !event.is_dry_run();
    // Of an event that is over its last stint is told.
    let of_member = || event.attempts.iter().filter(|attempt| attempt.member == *member).map(|attempt| attempt.stint);
    let last = || if event.stage().is_over() { of_member().max() } else { None };
    let stint = slot.map(|slot| slot.stint).or_else(last).unwrap_or(0);
    let counts = |attempt: &&Attempt| !takes_away || attempt.stint == stint;
    let others = || state.open_events().filter(|other| other.announcement.id != *event_id);
    let is_done = |other: &Event| {
        let last = other.forward_attempts_of(member, id).rfind(|attempt| attempt.stint == stint);
        last.and_then(|last| last.outcome.as_ref()).is_some_and(|(outcome, _)| outcome.is_favourable())
    };
    let is_excused = event.is_user_initiated() && slot.is_some_and(|slot| !slot.was_fit);
    Step {
        member: member.clone(),
        id,
        hook,
        away,
        stint,
        attempts: event.attempts_of(member, id).filter(counts).collect(),
        is_done_elsewhere: takes_away && stint > 0 && others().any(is_done),
        is_undo: false,
        on_failure: if is_excused { OnFailure::Continue } else { hook.on_failure },
    }
}

/// The workloads on the VMs that an event names, by VM.
pub(super) fn affected<'a>(state: &'a State, event: &Event) -> Vec<(&'a VmName, &'a Workload)> {
    let named = event.announcement.resources.iter().filter(|vm| !event.departed.contains(*vm));
    let replicas: BTreeMap<_, _> = named.filter_map(|vm| state.replicas.get_key_value(vm)).collect();
    replicas.into_iter().flat_map(|(vm, replica)| replica.effective().map(move |workload| (vm, workload))).collect()
}

/// The workload dials in and is away: what that means.
pub(super) fn away(state: &State, member: &Member, workload: &Workload) -> Option<OnAbsent> {
    let is_absent = state.replicas.get(&member.vm).is_some_and(|replica| replica.is_absent(workload));
    is_absent.then_some(workload.on_absent)
}
