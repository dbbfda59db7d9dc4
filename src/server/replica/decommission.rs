//! Removes replicas whose VM was deleted from the cluster, as the leader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::input_source::InputSource;
use crate::consensus::RaftStatus;
use allclear_core::model::id::VmName;
use allclear_core::plan::decommission::departing;

const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Runs until `stop` is cancelled. A removal that would cost the quorum now is tried again.
pub(super) async fn run(inputs: Arc<InputSource>, stop: CancellationToken) {
    let cluster = &inputs.cluster;
    let mut said: BTreeMap<VmName, String> = BTreeMap::new();
    let mut raft_status = cluster.consensus.status();
    let mut next_look = async || {
        drop(raft_status.wait_for(RaftStatus::leads).await);
        tokio::time::sleep(LOOK_EVERY).await;
    };
    while stop.run_until_cancelled(next_look()).await.is_some() {
        let departing =
            if cluster.leads() { departing(&cluster.state(), &inputs.planning_input()) } else { Vec::new() };
        said.retain(|name, _| departing.contains(name));
        for name in departing {
            let members = cluster.consensus.members();
            let mut spelled = members.voters.iter().chain(&members.learners);
            let Some(member) = spelled.find(|member| VmName::new(member) == name) else { continue };
            let removing = cluster.consensus.remove_member(member);
            match stop.run_until_cancelled(removing).await {
                None => return,
                Some(Ok(())) => tracing::info!(replica = %name, "replica removed: its VM was deleted"),
                Some(Err(error)) => {
                    let error = error.to_string();
                    if said.get(&name) != Some(&error) {
                        tracing::warn!(replica = %name, error, "replica not removed, although its VM was deleted");
                    }
                    said.insert(name, error);
                }
            }
        }
    }
}
