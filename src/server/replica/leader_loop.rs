//! The leader's loop: waits, plans, and proposes the planned commands.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio_util::sync::CancellationToken;

use super::clock;
use super::cluster::ClusterHandle;
use super::input_source::InputSource;
use super::metrics::{Metrics, TakeoverLevel};
use super::view::warning::{events_beyond, implausible_notices, second_approvals};
use super::watchdog::{Loop, Watchdog};
use allclear_core::cluster_time::Trust;
use allclear_core::leadership::transfer_target;
use allclear_core::model::command::{ApplyResult, Command};
use allclear_core::model::id::{EventId, WorkloadName};
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::state::{HISTORY_LIMIT, State};
use allclear_core::model::time::Timestamp;
use allclear_core::plan::plan;
use allclear_core::schedule::constraints::dependency_cycles;

/// The longest wait while an event is open: deadlines pass without a notification.
const TICK: Duration = Duration::from_millis(50);
/// The longest wait while no event is open.
const IDLE_TICK: Duration = Duration::from_secs(1);
/// The limit of a leadership transfer: a leader unable to transfer leadership decides itself.
const HAND_OVER_WITHIN: Duration = Duration::from_secs(2);
const HAND_OVER_AGAIN_AFTER: Duration = Duration::from_secs(10);
/// The limit of commands waiting in memory.
const PROPOSED_AT_ONCE: usize = 128;

pub(super) async fn run_leader_loop(
    inputs: Arc<InputSource>,
    metrics: Arc<Metrics>,
    watchdog: Arc<Watchdog>,
    stop: CancellationToken,
) {
    let cluster = &inputs.cluster;
    let mut raft_status = cluster.consensus.status();
    let mut state = cluster.committed.clone();
    let mut contacts = inputs.peers.changes();
    let mut tried_to_go = None;
    let mut circles = Vec::new();
    let mut led = false;
    let mut warnings = None;
    // A silent voter is to be suspected in time.
    let idle_tick = IDLE_TICK.min(cluster.node.timing.takeover_after / 8);
    loop {
        let leads = raft_status.borrow_and_update().leads();
        inputs.peers.leading(leads);
        if leads && !led && is_takeover(cluster) {
            metrics.takeover(TakeoverLevel::LeaderSilent);
        }
        led = leads;
        state.mark_unchanged();
        contacts.mark_unchanged();
        log_warnings(cluster, leads, &mut warnings);
        if leads {
            cluster.time.lead();
            log_dependency_cycles(&cluster.state(), &mut circles);
            let turn = async {
                // Planned commands contain times.
                if cluster.time.trust() == Trust::Unknown {
                    return;
                }
                if !hand_over_if_due(&inputs, &metrics, &mut tried_to_go).await {
                    propose_planned(&inputs).await;
                }
            };
            if stop.run_until_cancelled(turn).await.is_none() {
                return;
            }
        }
        let is_busy = leads && !cluster.state().open.is_empty();
        let wait = watchdog.until_turn(if is_busy { TICK.min(idle_tick) } else { idle_tick });
        watchdog.arm(Loop::Drive, wait);
        tokio::select! {
            _ = raft_status.wait_for(|raft_status| raft_status.leads() != leads) => {}
            _ = state.changed() => {}
            _ = contacts.changed() => {}
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// This replica was elected because the leader known to the log was silent, and not by a transfer of leadership.
fn is_takeover(cluster: &ClusterHandle) -> bool {
    let is_another = cluster.state().leadership.as_ref().is_some_and(|known| known.by != cluster.node.name);
    is_another && cluster.consensus.leader_was_silent()
}

/// Logs cycles, once for each change.
fn log_dependency_cycles(state: &State, told: &mut Vec<WorkloadName>) {
    let circles: Vec<WorkloadName> = dependency_cycles(state).into_iter().cloned().collect();
    if !circles.is_empty() && circles != *told {
        let names: Vec<&str> = circles.iter().map(|name| name.0.as_str()).collect();
        let names = names.join(", ");
        tracing::warn!(workloads = names, "cycle of `after` ignored: these workloads do not wait for each other");
    }
    *told = circles;
}

/// Logs warnings once for each event, and once until there is room for all events: every replica records the warnings,
/// and the present leader logs the warnings.
fn log_warnings(cluster: &ClusterHandle, leads: bool, known: &mut Option<BTreeSet<String>>) {
    let state = cluster.state();
    if !cluster.reconciliation_known(&state) {
        return;
    }
    let found = second_approvals(&state, cluster.time.now()).into_iter().chain(events_beyond(&state));
    let found: Vec<_> = found.chain(implausible_notices(&state)).collect();
    // Warnings present at the beginning were logged by the leader of the time. The warning about missing room names no
    // event, and every new leader logs the warning.
    let events = found.iter().map(|warning| warning.event.clone()).filter(|event| !event.is_empty());
    let known = known.get_or_insert_with(|| events.collect());
    if known.len() > 2 * HISTORY_LIMIT {
        known.retain(|id| state.event(&EventId::new(id)).is_some());
    }
    // The warning about missing room is due again when room runs out again.
    if !found.iter().any(|warning| warning.event.is_empty()) {
        known.remove("");
    }
    for warning in found.into_iter().filter(|warning| leads || !warning.event.is_empty()) {
        if known.insert(warning.event.clone()) && leads {
            tracing::warn!(event = warning.event, "{}", warning.text);
        }
    }
}

/// True when another replica leads from now on.
async fn hand_over_if_due(inputs: &InputSource, metrics: &Metrics, tried: &mut Option<Timestamp>) -> bool {
    let cluster = &inputs.cluster;
    let Some(heir) = transfer_target(&cluster.state(), &inputs.planning_input()) else {
        return false;
    };
    let now = clock::monotonic();
    if tried.is_some_and(|tried| now.since(tried) < HAND_OVER_AGAIN_AFTER) {
        return false;
    }
    *tried = Some(now);
    let own = inputs.peers.of(std::slice::from_ref(&cluster.node.name), |at| at);
    let is_stalled = own.values().any(|own| own.imds == ImdsHealth::Stalled);
    let transfer = cluster.consensus.transfer_leadership(heir.as_str());
    match tokio::time::timeout(HAND_OVER_WITHIN, transfer).await {
        Ok(Ok(())) => {
            tracing::info!(%heir, "leadership transferred");
            if is_stalled {
                metrics.takeover(TakeoverLevel::ChannelStalled);
            }
            true
        }
        Ok(Err(error)) => {
            tracing::warn!(%heir, %error, "leadership not transferred");
            false
        }
        Err(_) => {
            tracing::warn!(%heir, "leadership transfer timed out");
            false
        }
    }
}

/// Proposes all planned commands at once, in this order: commands for several workloads cost a single write to disk.
async fn propose_planned(inputs: &InputSource) {
    let cluster = &inputs.cluster;
    let propose = async |command: Command| match cluster.propose(&command).await {
        Ok(ApplyResult::Applied) => tracing::debug!(command = command.as_str(), "command decided"),
        Ok(ApplyResult::Rejected(why)) => tracing::debug!(command = command.as_str(), %why, "command not decided"),
        Err(error) => tracing::debug!(command = command.as_str(), %error, "command not proposed"),
    };
    let due = plan(&cluster.state(), &inputs.planning_input());
    stream::iter(due.into_iter().map(propose)).buffered(PROPOSED_AT_ONCE).collect::<()>().await;
}
