//! Runs the hook attempts that the log assigns to this replica and records their outcomes, as `replica::hooks`.

use allclear_core::schedule::attempts;
use std::time::Duration;

use super::ModelContext;
use crate::program::{Key, Program, ProgramTask};
use allclear_core::assignments::preferred_vms;
use allclear_core::model::attempt::{Attempt, Outcome};
use allclear_core::model::command::{Command, ExtendAttempt, FinishAttempt};
use allclear_core::model::event::Event;
use allclear_core::model::state::State;
use allclear_core::model::workload::{Intent, Member};
use allclear_core::procedure::executor::AssignedAttempt;

/// A disconnected session workload is not waited for longer than this.
const LEASE: Duration = Duration::from_secs(30);

/// Starts the attempt, records its outcome, or leaves the attempt running.
pub(super) fn drive_attempt(here: &ModelContext, assigned: AssignedAttempt<'_>) {
    let AssignedAttempt { event, attempt, restart_restore_if_lost, is_left_over } = assigned;
    let key = (event.announcement.id.clone(), attempt.id);
    let known = here.world.nodes[here.me].programs.borrow().get(&key).cloned();
    match known {
        Some(program) if program.is_running => {
            if here.knows_the_time() {
                let left = event.deadline_of(attempt).since(here.time());
                if attempts::is_overrun(event, attempt, here.time()) {
                    here.world.cancel_program(here.me, &key);
                }
                here.world.change_deadline(here.me, &key, left);
            }
        }
        Some(program) if restart_restore_if_lost && is_lost(here, &program) && !here.knows_the_time() => {}
        Some(program)
            if (restart_restore_if_lost || makes!(here.world.mutation, LostRunAgain))
                && is_lost(here, &program)
                && here.time() < attempt.deadline =>
        {
            here.world.nodes[here.me].programs.borrow_mut().remove(&key);
            start(here, event, attempt, key, false);
        }
        Some(program) => settle(here, key, program.outcome, program.is_twice),
        None => start(here, event, attempt, key, is_left_over),
    }
}

fn is_lost(here: &ModelContext, program: &Program) -> bool {
    let is_doubtful = matches!(program.outcome, Outcome::Unknown(_));
    program.is_lost || (is_doubtful && makes!(here.world.mutation, UnknownRunAgain))
}

/// Stops the attempt; an attempt that was never started is settled at once.
pub(super) fn stop(here: &ModelContext, AssignedAttempt { event, attempt, .. }: AssignedAttempt<'_>) {
    let key = (event.announcement.id.clone(), attempt.id);
    let known = here.world.nodes[here.me].programs.borrow().get(&key).cloned();
    match known {
        Some(program) if program.is_running => here.world.cancel_program(here.me, &key),
        Some(program) => settle(here, key, program.outcome, false),
        None => settle(here, key, Outcome::Cancelled, false),
    }
}

pub(super) fn knows(here: &ModelContext, event: &Event, attempt: &Attempt) -> bool {
    here.world.nodes[here.me].programs.borrow().contains_key(&(event.announcement.id.clone(), attempt.id))
}

/// Stops attempts that still run although settled in the log, and forgets recorded attempts.
pub(super) fn cleanup(here: &ModelContext, state: &State) -> bool {
    let known: Vec<(Key, bool)> =
        here.world.nodes[here.me].programs.borrow().iter().map(|(key, it)| (key.clone(), it.is_running)).collect();
    let mut is_busy = false;
    for (key, is_running) in known.into_iter().filter(|(key, _)| is_settled(state, key)) {
        if is_running {
            is_busy = true;
            here.world.cancel_program(here.me, &key);
        } else {
            here.world.nodes[here.me].programs.borrow_mut().remove(&key);
        }
    }
    here.process.busy.borrow_mut().retain(|key| !is_settled(state, key));
    is_busy
}

fn start(here: &ModelContext, event: &Event, attempt: &Attempt, key: Key, is_left_over: bool) {
    let state = here.state();
    let own = Member { vm: here.name().clone(), workload: attempt.member.workload.clone() };
    let id = state.hook_run_on(here.name(), &attempt.member, attempt.hook);
    let Some(workload) = id.and_then(|id| state.keeper(&own, id)) else {
        return settle(here, key, Outcome::Failed("there is no such hook".into()), false);
    };
    if workload.is_session() {
        let is_here = here.world.nodes[here.me].guest.borrow().as_ref().is_some_and(|guest| guest.is_here);
        // A previous run may have sent the attempt, unknown to this run.
        if is_left_over && is_here {
            return settle(here, key, Outcome::Unknown("its workload does not know it".into()), false);
        }
        if !is_here {
            let waited = here.time().since(attempt.begun_at);
            if waited >= LEASE {
                settle(here, key, Outcome::Unknown("its workload did not come".into()), false);
            }
            return;
        }
    }
    if is_beside_itself(here, &state, attempt) || !here.knows_the_time() || !begin(here, &key) {
        return;
    }
    let task = task(here, &state, event, attempt, key.clone());
    let (here, id) = (here.clone(), attempt.id);
    let tasks = here.world.clone();
    tasks.tasks.spawn(here.me, async move {
        let confirmed = makes!(here.world.mutation, HookUnconfirmed) || here.confirm().await.is_ok();
        let state = here.state();
        let open = state.open_event(&key.0).and_then(|event| Some((event, event.attempt(id)?)));
        let wanted = open.filter(|(event, attempt)| {
            attempt.outcome.is_none()
                && attempts::is_wanted(&state, event, attempt)
                && !attempts::is_too_late(event, attempt)
        });
        if let Some((event, attempt)) = wanted.filter(|_| confirmed) {
            let left = event.deadline_of(attempt).since(here.time());
            if left.is_zero() && !makes!(here.world.mutation, HookUnconfirmed) {
                here.process.busy.borrow_mut().remove(&key);
                return settle(&here, key, Outcome::TimedOut("it did not end by its deadline".into()), false);
            }
            here.world.start_program(here.me, ProgramTask { left, ..task });
        }
        here.process.busy.borrow_mut().remove(&key);
    });
}

fn task(here: &ModelContext, state: &State, event: &Event, attempt: &Attempt, key: Key) -> ProgramTask {
    ProgramTask {
        key,
        member: attempt.member.clone(),
        hook: attempt.hook,
        intent: attempt.intent,
        step: event.step_id(attempt),
        prefer: if attempt.intent == Intent::Run {
            preferred_vms(state, &here.planning_input(), &attempt.member)
        } else {
            Vec::new()
        },
        left: Duration::ZERO,
    }
}

fn is_beside_itself(here: &ModelContext, state: &State, attempt: &Attempt) -> bool {
    here.world.nodes[here.me].programs.borrow().iter().any(|(key, program)| {
        program.is_running
            && key.1 != attempt.id
            && program.task.member == attempt.member
            && program.task.hook == attempt.hook
            && state.event(&key.0).is_some()
    })
}

/// Records the outcome; the program is forgotten when this replica has applied the record.
fn settle(here: &ModelContext, key: Key, outcome: Outcome, is_twice: bool) {
    if !begin(here, &key) {
        return;
    }
    let outcome = in_time(here, &key, outcome);
    let (here, world) = (here.clone(), here.world.clone());
    world.tasks.spawn(here.me, async move {
        let (event, attempt) = key;
        here.record(&Command::FinishAttempt(FinishAttempt { event: event.clone(), attempt, outcome })).await;
        if is_twice {
            here.sleep(Duration::from_secs(2)).await;
            let outcome = Outcome::Failed("it says so once more, and something else".into());
            let _ = here.propose(&Command::FinishAttempt(FinishAttempt { event, attempt, outcome })).await;
        }
    });
}

/// An attempt that was stopped because the event shortened its time has timed out.
fn in_time(here: &ModelContext, key: &Key, outcome: Outcome) -> Outcome {
    let state = here.state();
    let is_overrun = state
        .event(&key.0)
        .and_then(|event| Some(attempts::is_overrun(event, event.attempt(key.1)?, here.time())))
        .unwrap_or(false);
    if outcome == Outcome::Cancelled && is_overrun {
        return Outcome::TimedOut("the event left it less time than there was when it began".into());
    }
    outcome
}

/// False if the attempt is being started or recorded already.
fn begin(here: &ModelContext, key: &Key) -> bool {
    here.process.busy.borrow_mut().insert(key.clone())
}

fn is_settled(state: &State, key: &Key) -> bool {
    let attempt = state.event(&key.0).and_then(|event| event.attempt(key.1));
    attempt.is_none_or(|attempt| attempt.outcome.is_some())
}

/// A running hook asks for a later deadline.
pub(crate) async fn ask_for_more_time(here: ModelContext, key: Key) {
    here.sleep(Duration::from_secs(2)).await;
    let (event, attempt) = key;
    if !here.knows_the_time() {
        return;
    }
    let deadline = here.time().plus(Duration::from_mins(2));
    let _ = here.propose(&Command::ExtendAttempt(ExtendAttempt { event, attempt, deadline })).await;
}
