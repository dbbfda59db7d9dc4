//! Polls the readiness of this VM's configured workloads, and proposes changes to the log.
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::clock;
use super::cluster::ClusterHandle;
use super::latest_answers::{Fault, LatestFaults, LatestReadiness};
use super::polls;
use crate::hooks::{HookEnvironment, Owner, ProbeHook};
use allclear_core::model::command::{Command, UpdateConditions};
use allclear_core::model::state::State;
use allclear_core::model::workload::{Condition, Member, Origin, Readiness};
use allclear_core::readiness::ReadinessHistory;

/// The pause before an unrecorded readiness is polled and proposed again.
const NOTE_AGAIN_AFTER: Duration = Duration::from_secs(1);

const NOTED_WITHIN: Duration = Duration::from_secs(1);

/// A workload whose readiness is polled.
#[derive(Clone, Debug)]
pub struct ReadinessProbe {
    pub owner: Owner,
    /// The workload is ready when all hooks report ready; never empty.
    pub hooks: Vec<ProbeHook>,
    pub every: Duration,
}

/// Runs until `stop` is cancelled.
pub(super) async fn run(
    cluster: Arc<ClusterHandle>,
    latest: (Arc<LatestReadiness>, Arc<LatestFaults>),
    surroundings: HookEnvironment,
    asked: Vec<ReadinessProbe>,
    stop: CancellationToken,
) {
    let polls =
        asked.into_iter().map(|workload| ask_on(cluster.clone(), latest.clone(), surroundings.clone(), workload));
    polls::run_each(stop, polls).await;
}

async fn ask_on(
    cluster: Arc<ClusterHandle>,
    (latest, unready): (Arc<LatestReadiness>, Arc<LatestFaults>),
    surroundings: HookEnvironment,
    asked: ReadinessProbe,
) {
    let member = Member { vm: cluster.node.name.clone(), workload: asked.owner.workload.clone() };
    let mut state = cluster.committed.clone();
    let mut answers = ReadinessHistory::default();
    loop {
        // The event that keeps the member out of service polls the member on return.
        while state.borrow_and_update().slots.contains_key(&member) {
            answers = ReadinessHistory::default();
            if state.changed().await.is_err() {
                return;
            }
        }
        let asked_at = clock::monotonic();
        let answer = ask(&asked, &surroundings).await;
        let mut pause = asked.every;
        if !cluster.state().slots.contains_key(&member)
            && let Some(readiness) = answers.hear(answer.is_ok())
        {
            latest.keep(&member.workload, readiness);
            let why = answer.as_ref().err().cloned();
            unready.keep(&member.workload, why.map(|why| Fault { since: cluster.time.now(), why }));
            if !note(&cluster, &member, readiness, &answer).await {
                pause = pause.min(NOTE_AGAIN_AFTER);
            }
        }
        let again = asked_at.plus(pause);
        tokio::select! {
            () = tokio::time::sleep(again.since(clock::monotonic())) => {}
            _ = state.wait_for(|state| state.slots.contains_key(&member)) => {}
        }
    }
}

async fn ask(asked: &ReadinessProbe, surroundings: &HookEnvironment) -> Result<(), String> {
    for hook in &asked.hooks {
        hook.ask(&asked.owner, surroundings).await?;
    }
    Ok(())
}

/// False when the readiness could not be recorded in the log.
async fn note(cluster: &ClusterHandle, member: &Member, readiness: Readiness, answer: &Result<(), String>) -> bool {
    let Some(note) = due(&cluster.state(), member, readiness) else { return true };
    // A leader that has lost the quorum waits for the quorum; the poller goes on meanwhile.
    let noted = tokio::time::timeout(NOTED_WITHIN, cluster.propose(&note)).await;
    let is_noted = matches!(noted, Ok(Ok(_)));
    if is_noted {
        match answer {
            Ok(()) => tracing::info!(workload = %member.workload, "workload reported ready"),
            Err(why) => tracing::warn!(workload = %member.workload, why, "workload reported not ready"),
        }
    }
    is_noted
}

/// The command for a readiness not in the log yet. The session of a session workload shows the workload's presence.
fn due(state: &State, member: &Member, readiness: Readiness) -> Option<Command> {
    let replica = state.replicas.get(&member.vm)?;
    let known = replica.condition(&member.workload);
    let is_ours = replica.workload(&member.workload)?.origin == Origin::Configured;
    let is_due = is_ours && known.readiness != readiness && !state.slots.contains_key(member);
    let conditions = vec![(member.workload.clone(), Condition { readiness, ..known })];
    is_due.then_some(Command::UpdateConditions(UpdateConditions { conditions }))
}
