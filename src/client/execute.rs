//! Runs one attempt: wait for earlier attempts, journal, handler, deadline and outcome.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::hook::{Handler, Hook};
use super::journal::Act;
use super::outcome::Outcome;
use super::step::{Controls, Step};
use super::tracker::AttemptTracker;
use allclear_wire::pb::allclear::workload::v1;

/// Time between the cancellation of a handler and its drop. The replica waits 5 s for the outcome.
const GRACE: Duration = Duration::from_secs(4);

pub(super) async fn carry_out(
    desk: Arc<AttemptTracker>,
    hooks: Arc<[Hook]>,
    step: v1::Step,
    act: Act,
    controls: Arc<Controls>,
) {
    let attempt = step.attempt.clone();
    let handler = match prepare(&desk, &hooks, &step, act, &controls).await {
        Ok(handler) => handler,
        Err(outcome) => return desk.end(&attempt, outcome, false).await,
    };
    if let Err(error) = desk.begin(&attempt).await {
        // an attempt without a journal record is not begun
        let outcome = Outcome::Blocked(format!("the workload cannot write its journal: {error}"));
        return desk.end(&attempt, outcome, false).await;
    }
    let journaled = desk.last_outcome(&step);
    let outcome = run(&handler, Step::new(step, journaled, controls.clone()), &controls).await;
    desk.end(&attempt, outcome.cut(), true).await;
}

/// The handler to call, or the answer where no handler is called.
async fn prepare(
    desk: &AttemptTracker,
    hooks: &[Hook],
    step: &v1::Step,
    act: Act,
    controls: &Controls,
) -> Result<Handler, Outcome> {
    let mut of_phase = hooks.iter().filter(|hook| hook.told.phase == step.phase);
    let hook = of_phase.nth(usize::try_from(step.ordinal).unwrap_or(usize::MAX));
    let no_such = || Outcome::Failed("this workload has no such hook; was it registered by another version?".into());
    let hook = hook.ok_or_else(no_such)?;
    tokio::select! {
        biased;
        () = controls.cancel.cancelled() => return Err(Outcome::Cancelled),
        () = controls.time_is_up() => return Err(too_late(act)),
        () = desk.turn_of(&step.attempt) => {}
    }
    if controls.deadline() <= Instant::now() {
        return Err(too_late(act));
    }
    let handler = match act {
        Act::Run if desk.last_outcome(step) == Some(Outcome::Done) => return Err(Outcome::Done),
        Act::Run => Some(&hook.run),
        Act::Confirm if hook.confirm.is_none() => return Err(from_the_journal(desk.last_outcome(step).as_ref())),
        Act::Confirm => hook.confirm.as_ref(),
        Act::Undo => hook.undo.as_ref(),
        // A check changes nothing.
        Act::DryRun if hook.told.phase() == v1::Phase::Check => Some(hook.dry_run.as_ref().unwrap_or(&hook.run)),
        Act::DryRun => hook.dry_run.as_ref(),
    };
    handler.cloned().ok_or(Outcome::NotApplicable)
}

fn too_late(act: Act) -> Outcome {
    let why = "its time was up before it could begin";
    if act == Act::Confirm { Outcome::Unknown(why.into()) } else { Outcome::Blocked(why.into()) }
}

/// The answer to confirm of a hook without a `confirm` handler.
fn from_the_journal(last_outcome: Option<&Outcome>) -> Outcome {
    match last_outcome {
        Some(Outcome::Done) => Outcome::Done,
        Some(Outcome::NotDone) => Outcome::NotDone,
        Some(_) => Outcome::Unknown("it was begun, and the journal does not say that it was done".into()),
        None => Outcome::Unknown("the journal does not know it".into()),
    }
}

async fn run(handler: &Handler, step: Step, controls: &Controls) -> Outcome {
    // a task of its own, so that a panic of the handler ends nothing else
    let handler = handler.clone();
    let mut task = tokio::spawn(async move { handler(step).await });
    tokio::select! {
        ended = &mut task => return told(ended),
        () = controls.cancel.cancelled() => {}
        () = controls.time_is_up() => controls.cancel.cancel(),
    }
    if let Ok(ended) = tokio::time::timeout(GRACE, &mut task).await {
        return told(ended);
    }
    task.abort();
    Outcome::Unknown(format!("it was cancelled, and did not end within {} s", GRACE.as_secs()))
}

fn told(ended: Result<Outcome, tokio::task::JoinError>) -> Outcome {
    ended.unwrap_or_else(|error| Outcome::Unknown(format!("the hook's code did not come to its end: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Journal;
    use crate::journal_file::JournalFile;
    use allclear_wire::pb::allclear::workload::v1::{Intent, Mode, Phase};

    async fn outcome_of_a_dry_run(hook: Hook, phase: Phase) -> Outcome {
        let desk = Arc::new(AttemptTracker::new(JournalFile::default(), Journal::default()));
        let step = v1::Step {
            attempt: "a".into(),
            step: "s".into(),
            phase: phase.into(),
            intent: Intent::Run.into(),
            mode: Mode::DryRun.into(),
            time_left_ms: 60_000,
            ..v1::Step::default()
        };
        let controls = desk.receive(&step, Act::DryRun).unwrap().unwrap();
        match prepare(&desk, &[hook], &step, Act::DryRun, &controls).await {
            Ok(handler) => run(&handler, Step::new(step, None, controls.clone()), &controls).await,
            Err(outcome) => outcome,
        }
    }

    #[tokio::test]
    async fn a_dry_run_calls_a_check_and_no_other_hook_without_a_handler_for_dry_runs() {
        let failed = || Outcome::Failed("no right to switch".into());
        let hook = |phase| Hook::new(phase, move |_| async move { failed() });
        assert_eq!(outcome_of_a_dry_run(hook(Phase::Check), Phase::Check).await, failed());
        assert_eq!(outcome_of_a_dry_run(hook(Phase::Drain), Phase::Drain).await, Outcome::NotApplicable);
        let own = hook(Phase::Check).dry_run(|_| async {});
        assert_eq!(outcome_of_a_dry_run(own, Phase::Check).await, Outcome::Done);
    }
}
