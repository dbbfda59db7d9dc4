//! Conversions of the messages to and from workloads.

use allclear_core::model::command;
use std::time::Duration;

use super::WorkloadRpc;
use super::events::{self, ms};
use crate::hooks::session::{FromWorkload, ToWorkload};
use crate::hooks::{HookOutcome, HookTask, one_line};
use crate::replica::attempt_key;
use crate::replica::view::View;
use allclear_core::model::drill::Mode;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::state::State;
use allclear_core::model::workload::{Intent, Phase, Role};
use allclear_wire::pb::allclear::workload::v1 as pb;

/// The limit for an attempt's key, which contains an event's id of the platform's length.
pub(super) const MAX_ATTEMPT_BYTES: usize = 512;

/// The pause before a workload connects again after `GoAway`.
const DIAL_AGAIN_AFTER: Duration = Duration::from_millis(500);

pub(super) fn to_workload(message: pb::to_workload::Message) -> pb::ToWorkload {
    pb::ToWorkload { message: Some(message) }
}

pub(super) fn told(told: ToWorkload, state: &State, view: &View) -> pb::ToWorkload {
    use pb::to_workload::Message;
    to_workload(match told {
        ToWorkload::Step(task) => Message::Step(step(*task, state, view)),
        ToWorkload::Cancel { attempt, reason } => Message::Cancel(pb::Cancel { attempt, reason }),
        ToWorkload::Deadline { attempt, deadline } => Message::Deadline(pb::Deadline {
            attempt,
            time_left_ms: ms(deadline.left()),
            deadline_unix_ms: deadline.on_the_wall.0,
        }),
        ToWorkload::Acknowledged(attempt) => {
            Message::Acknowledged(pb::Acknowledged { outcome: attempt_key::outcome_word(state, &attempt), attempt })
        }
        ToWorkload::GoAway(reason) => Message::GoAway(go_away(&reason)),
    })
}

pub(super) fn go_away(reason: &str) -> pb::GoAway {
    pb::GoAway { reason: reason.to_owned(), after_ms: ms(DIAL_AGAIN_AFTER) }
}

fn step(task: HookTask, state: &State, view: &View) -> pb::Step {
    let names = |vms: &[allclear_core::model::id::VmName]| vms.iter().map(ToString::to_string).collect();
    pb::Step {
        members: members(&task, state),
        event: events::one(view, &task.event_id),
        attempt: task.attempt,
        ordinal: u32::try_from(task.place).unwrap_or(u32::MAX),
        step: task.step,
        fence: Some(pb::Fence { term: task.fence.term, sequence: task.fence.sequence }),
        intent: match task.intent {
            Intent::Run => pb::Intent::Run,
            Intent::Confirm => pb::Intent::Confirm,
            Intent::Undo => pb::Intent::Undo,
        }
        .into(),
        mode: match task.drill {
            None => pb::Mode::Live,
            Some(Mode::DryRun) => pb::Mode::DryRun,
            Some(Mode::Rehearsal) => pb::Mode::Rehearsal,
        }
        .into(),
        phase: match task.phase {
            Phase::Check => pb::Phase::Check,
            Phase::Checkpoint => pb::Phase::Checkpoint,
            Phase::Failover => pb::Phase::Failover,
            Phase::Drain => pb::Phase::Drain,
            Phase::Shutdown => pb::Phase::Shutdown,
            Phase::Restore => pb::Phase::Restore,
            Phase::Ready => pb::Phase::Ready,
        }
        .into(),
        vm: task.vm.to_string(),
        group: task.group.map(|group| group.0),
        avoid: names(&task.avoid),
        prefer: names(&task.prefer),
        time_left_ms: ms(task.deadline.left()),
        deadline_unix_ms: task.deadline.on_the_wall.0,
        traceparent: task.traceparent,
    }
}

fn members(task: &HookTask, state: &State) -> Vec<pb::Peer> {
    let is_one = |group: Option<&_>| group.is_some() && group == task.group.as_ref();
    let members = state.workloads().filter(|(_, workload)| is_one(workload.group.as_ref()));
    let peers = members.map(|(vm, workload)| {
        let condition = state.condition(&workload.on(vm)).unwrap_or_default();
        pb::Peer {
            vm: vm.to_string(),
            role: role(condition.role).into(),
            connected: condition.connected,
            affected: task.resources.contains(vm),
        }
    });
    peers.collect()
}

fn role(role: Role) -> pb::Role {
    match role {
        Role::Unknown => pb::Role::Unspecified,
        Role::Primary => pb::Role::Primary,
        Role::Replica => pb::Role::Replica,
    }
}

/// The attempt of a report with its content, or the place of a wrong value.
pub(super) fn said(
    report: pb::Report,
    workload: &WorkloadName,
    door: &WorkloadRpc,
) -> Result<(String, FromWorkload), pb::Problem> {
    use pb::report::News;
    let problem = |place: &str, message: &str| pb::Problem { place: Some(place.into()), message: message.into() };
    let is_unknown = || {
        let is_running = door.hooks.runner.sessions.has_attempt(workload, &report.attempt);
        !is_running && attempt_key::is_unknown(&door.cluster.state(), workload, &report.attempt)
    };
    if report.attempt.len() > MAX_ATTEMPT_BYTES || is_unknown() {
        return Err(problem(
            "report.attempt",
            "this workload has no such attempt: repeat the `attempt` of the Step, not its `step`",
        ));
    }
    let said = match report.news {
        Some(News::Progress(progress)) => FromWorkload::Progress {
            text: bounded(&progress.text),
            expected_end_in: progress.expected_end_in_ms.map(Duration::from_millis),
        },
        Some(News::Extension(extension)) => FromWorkload::MoreTime(Duration::from_millis(extension.needs_ms)),
        Some(News::Outcome(outcome)) => {
            let unknown = || problem("report.outcome", "the outcome is missing, or this version does not know it");
            FromWorkload::Ended(ended(outcome).ok_or_else(unknown)?)
        }
        None => return Err(problem("report", "progress, outcome and extension are missing: give one of them")),
    };
    Ok((report.attempt, said))
}

pub(super) fn ended(outcome: pb::Outcome) -> Option<HookOutcome> {
    use pb::outcome::Variant;
    Some(match outcome.variant? {
        Variant::Done(_) => HookOutcome::Done,
        Variant::NotApplicable(_) => HookOutcome::NotApplicable,
        Variant::NotDone(_) => HookOutcome::NotDone,
        Variant::Failed(reason) => HookOutcome::Failed(bounded(&reason)),
        Variant::Blocked(reason) => HookOutcome::Blocked(bounded(&reason)),
        Variant::Cancelled(_) => HookOutcome::Cancelled,
        Variant::Unknown(reason) => HookOutcome::Unknown(bounded(&reason)),
        Variant::Stale(_) => HookOutcome::Failed("the workload had received a newer attempt before".to_owned()),
    })
}

/// A workload's text, bounded for the log.
fn bounded(text: &str) -> String {
    one_line(&command::bounded(text))
}
