//! Which hooks of an affected workload an event does not need, and why.

use alloc::vec::Vec;
use core::time::Duration;

use super::document::Kind;
use super::event::Event;
use super::lifecycle::Stage;
use super::policy::{Action, Treatment};
use super::state::State;
use super::steps::{self, Step, affected};
use super::workload::{Hook, Phase, RunsOn};

/// A freeze from this long on, or of unknown length, is worth every hook.
const LONG_FREEZE: Duration = Duration::from_secs(10);

/// Why a hook is not run for an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LeftOut {
    /// Policy asks for other phases.
    Phase,
    /// The impact had begun at first sight, and has taken the VM already.
    ImpactBegun,
    /// The freeze is brief, and the hook names no `min_freeze`.
    BriefFreeze,
    /// The freeze is shorter than this `min_freeze`.
    MinFreeze(Duration),
    /// It would be run, but does not know how to do so without changing anything.
    DryRun,
}

/// `None`: the event needs the hook.
pub(super) fn left_out(event: &Event, treatment: &Treatment, hook: &Hook) -> Option<LeftOut> {
    not_needed(event, treatment, hook).or_else(|| (!may_run(event, hook)).then_some(LeftOut::DryRun))
}

/// In a dry run only hooks that change nothing in one are run.
pub(super) fn may_run(event: &Event, hook: &Hook) -> bool {
    !event.is_dry_run() || hook.can_dry_run
}

fn not_needed(event: &Event, treatment: &Treatment, hook: &Hook) -> Option<LeftOut> {
    if !treatment.phases.contains(&hook.phase) {
        return Some(LeftOut::Phase);
    }
    if event.entered_at(Stage::Started) == Some(event.first_seen()) && hook.runs_on == RunsOn::Affected {
        return Some(LeftOut::ImpactBegun);
    }
    if event.announcement.kind != Kind::Freeze {
        return None;
    }
    let known_short = event.announcement.duration.filter(|duration| *duration < LONG_FREEZE);
    match (hook.min_freeze, known_short) {
        (Some(least), Some(duration)) => (least > duration).then_some(LeftOut::MinFreeze(least)),
        (None, _) => treatment.only_named_freezes.then_some(LeftOut::BriefFreeze),
        (Some(_), None) => None,
    }
}

/// The hooks before the event that it does not need, where it is prepared at all.
pub fn left_out_of<'a>(state: &'a State, event: &Event) -> Vec<(Step<'a>, LeftOut)> {
    let Some(treatment) = event.treatment.as_ref().filter(|treatment| treatment.action == Action::Prepare) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (member, workload) in affected(state, event) {
        for phase in Phase::ALL.into_iter().filter(|phase| *phase < Phase::Restore) {
            for (id, hook) in workload.hooks_of(phase) {
                if let Some(why) = left_out(event, treatment, hook) {
                    found.push((Step { member: member.clone(), id, hook }, why));
                }
            }
        }
    }
    found
}

/// What a dry run only names: the hooks that a rehearsal would run beside those that it runs itself.
pub fn would_run<'a>(state: &'a State, event: &Event) -> Vec<Step<'a>> {
    let before = left_out_of(state, event).into_iter().filter(|(_, why)| *why == LeftOut::DryRun);
    let mut found: Vec<Step<'a>> = before.map(|(step, _)| step).collect();
    let runs = steps::preparing(state, event);
    for (member, workload) in affected(state, event).filter(|_| event.is_dry_run()) {
        if !found.iter().chain(&runs).any(|step| step.member == member) {
            continue;
        }
        for phase in [Phase::Restore, Phase::Ready] {
            let hooks = workload.hooks_of(phase).filter(|(_, hook)| !may_run(event, hook));
            found.extend(hooks.map(|(id, hook)| Step { member: member.clone(), id, hook }));
        }
    }
    found
}
