//! A drill as shown to operators: every hook with the outcome.

use allclear_core::model::attempt::{Attempt, Outcome};
use allclear_core::model::drill::Drill;
use allclear_core::model::event::{Ending, Event};
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::state::State;
use allclear_core::model::workload::Phase;
use allclear_core::schedule::last_call;
use allclear_core::schedule::required;
use allclear_core::schedule::required::would_run;
use allclear_core::schedule::restore;
use allclear_core::schedule::step::Step;
use allclear_core::schedule::step_state;
use allclear_core::schedule::step_state::StepState;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn shown(state: &State, event: &Event, drill: &Drill) -> shown::Drill {
    let runs = required::required_steps(state, event).into_iter().chain(restore::restore_steps(state, event));
    let runs = runs.map(|step| run(state, event, &step));
    let named = would_run(state, event).into_iter().map(|step| told(event, &step, "would_run", None));
    shown::Drill { mode: drill.mode.to_string(), who: drill.who.clone(), steps: runs.chain(named).collect() }
}

fn run(state: &State, event: &Event, step: &Step<'_>) -> shown::DrillStep {
    if event.waivers.iter().any(|waiver| waiver.member == step.member && waiver.hook == step.id) {
        return told(event, step, "not_waited_for", None);
    }
    let last = event.attempts_of(&step.member, step.id).next_back().and_then(outcome);
    let reason = || last.and_then(Outcome::reason).map(String::from);
    let may_begin =
        if step.id.phase < Phase::Restore { !event.stage().is_over() } else { event.stage() < Stage::Closed };
    match step_state::state_without_undo(event, step, state.now) {
        StepState::Running(_) => told(event, step, "running", None),
        StepState::Satisfied => told(event, step, last.map_or("done", Outcome::as_str), plan(event, step)),
        StepState::Failed(reason) => told(event, step, "failed", Some(reason)),
        StepState::Due { blocked, .. } if may_begin => told(event, step, "waiting", blocked),
        StepState::Due { .. } | StepState::OutOfTime if last.is_none() => {
            told(event, step, "not_run", Some(not_run(state, event)))
        }
        StepState::Due { .. } | StepState::OutOfTime => told(event, step, "failed", reason()),
    }
}

/// Why a hook of a drill that is over was never begun.
fn not_run(state: &State, event: &Event) -> String {
    let failed = |attempt: &Attempt| outcome(attempt).is_some_and(|outcome| !outcome.is_favourable());
    if event.ending == Some(Ending::Interrupted) {
        return "a real event or an operator ended the drill".into();
    }
    if event.attempts.iter().any(failed) {
        return "a hook before it failed".into();
    }
    if event.slots_since.is_some() || event.is_dry_run() {
        return "its turn did not come in the time for preparation".into();
    }
    // The members that were out of service may be back since.
    let others = last_call::overdraft(state, event);
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    let others = if others.is_empty() { "other members".into() } else { others.join(" and ") };
    format!("its group had no room: out of service were {others}")
}

/// The last progress of a hook in a dry run: what the hook would do.
fn plan(event: &Event, step: &Step<'_>) -> Option<String> {
    let last = event.attempts_of(&step.member, step.id).next_back().filter(|_| event.is_dry_run())?;
    last.progress.as_ref().map(|progress| progress.text.clone()).filter(|text| !text.is_empty())
}

fn outcome(attempt: &Attempt) -> Option<&Outcome> {
    attempt.outcome.as_ref().map(|(outcome, _)| outcome)
}

fn told(event: &Event, step: &Step<'_>, result: &str, reason: Option<String>) -> shown::DrillStep {
    let mut attempts = event.attempts_of(&step.member, step.id);
    let begun = attempts.next().map(|first| first.begun_at);
    let last = event.attempts_of(&step.member, step.id).next_back();
    let ended = last.and_then(|last| last.outcome.as_ref()).map(|(_, at)| *at);
    let took = begun.zip(ended).map(|(begun, ended)| ended.since(begun).as_millis());
    shown::DrillStep {
        workload: step.member.workload.to_string(),
        vm: step.member.vm.to_string(),
        phase: step.id.phase.to_string(),
        result: result.into(),
        reason,
        took_ms: took.map(|took| u64::try_from(took).unwrap_or(u64::MAX)),
    }
}
