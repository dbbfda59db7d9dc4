//! Runs the `check` hooks of this VM's configured workloads outside of events: finds a changed right or password before
//! the next event.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::cluster::ClusterHandle;
use super::latest_answers::{Fault, LatestFaults};
use super::polls;
use crate::hooks::{HookEnvironment, Owner, ProbeHook};
use allclear_core::model::id::WorkloadName;
use allclear_core::model::workload::Member;
use allclear_core::schedule::checks::may_check;

/// The pause before the first check: the database may start together with the replica.
const FIRST_AFTER: Duration = Duration::from_mins(2);
/// The pause after a check with a fault, or after an interrupted check: a repair ends the warning soon.
const AGAIN_AFTER: Duration = Duration::from_mins(10);

/// A workload with `check` hooks.
#[derive(Clone, Debug)]
pub struct CheckProbe {
    pub owner: Owner,
    /// Never empty.
    pub hooks: Vec<ProbeHook>,
    pub every: Duration,
}

/// Runs until `stop` is cancelled.
pub(super) async fn run(
    cluster: Arc<ClusterHandle>,
    latest: Arc<LatestFaults>,
    surroundings: HookEnvironment,
    checked: Vec<CheckProbe>,
    stop: CancellationToken,
) {
    let polls =
        checked.into_iter().map(|workload| check_on(cluster.clone(), latest.clone(), surroundings.clone(), workload));
    polls::run_each(stop, polls).await;
}

async fn check_on(
    cluster: Arc<ClusterHandle>,
    latest: Arc<LatestFaults>,
    surroundings: HookEnvironment,
    checked: CheckProbe,
) {
    let member = Member { vm: cluster.node.name.clone(), workload: checked.owner.workload.clone() };
    let mut state = cluster.committed.clone();
    let mut pause = checked.every.min(FIRST_AFTER);
    loop {
        tokio::time::sleep(pause).await;
        if state.wait_for(|state| may_check(state, &member)).await.is_err() {
            return;
        }
        // An event interrupts the check, and the processes of the check end at once.
        let found = tokio::select! {
            biased;
            _ = state.wait_for(|state| !may_check(state, &member)) => None,
            found = check(&checked, &surroundings) => Some(found),
        };
        pause = if found == Some(Ok(())) { checked.every } else { checked.every.min(AGAIN_AFTER) };
        if let Some(found) = found {
            note(&cluster, &latest, &member.workload, found);
        }
    }
}

async fn check(checked: &CheckProbe, surroundings: &HookEnvironment) -> Result<(), String> {
    for hook in &checked.hooks {
        hook.ask(&checked.owner, surroundings).await?;
    }
    Ok(())
}

fn note(cluster: &ClusterHandle, latest: &LatestFaults, workload: &WorkloadName, found: Result<(), String>) {
    let known = latest.all().remove(workload).flatten();
    let fault = found.err().map(|why| {
        let since = known.as_ref().map_or_else(|| cluster.time.now(), |known| known.since);
        Fault { since, why }
    });
    match &fault {
        Some(fault) if known.as_ref() != Some(fault) => {
            tracing::warn!(%workload, why = fault.why, "the check of a workload found a fault");
        }
        None if known.is_some() => tracing::info!(%workload, "the check of a workload finds no fault any more"),
        _ => {}
    }
    latest.keep(workload, fault);
}
