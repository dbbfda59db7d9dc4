//! Asks the other voters for their leader while this replica has none.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::imds_report::health;
use crate::replica::input_source::InputSource;
use allclear_core::model::command::bounded;
use allclear_core::model::id::VmName;
use allclear_core::model::isolation::PeerAnswer;
use allclear_wire::pb::allclear::cluster::v1 as wire;
use allclear_wire::pb::allclear::cluster::v1::contact_client::ContactClient;

const ASK_EVERY: Duration = Duration::from_millis(500);
/// A later answer is ignored.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Asks the voters whenever there is no leader, until `stop`.
pub(super) async fn ask_around(inputs: &InputSource, stop: &CancellationToken) {
    let mut raft_status = inputs.cluster.consensus.status();
    let mut asking = async || {
        raft_status.wait_for(|raft_status| !raft_status.has_leader()).await.ok()?;
        ask_the_voters(inputs).await;
        Some(())
    };
    while stop.run_until_cancelled(asking()).await.flatten().is_some() {}
}

/// Asks all voters concurrently, so that a silent voter delays no other answer. Ends when this replica has a leader.
async fn ask_the_voters(inputs: &InputSource) {
    let cluster = &inputs.cluster;
    let mut turns = interval(ASK_EVERY);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut asked = FuturesUnordered::new();
    loop {
        tokio::select! {
            _ = turns.tick() => {
                if cluster.consensus.status().borrow().has_leader() {
                    return;
                }
                let voters = cluster.consensus.members().voters.into_iter();
                asked.extend(voters.filter(|voter| VmName::new(voter) != cluster.node.name).map(|voter| ask(inputs, voter)));
            }
            Some(()) = asked.next() => {}
        }
    }
}

/// Asks one voter. A voter without an address in the configuration cannot be asked.
async fn ask(inputs: &InputSource, voter: String) {
    let cluster = &inputs.cluster;
    let Some(channel) = cluster.consensus.channel(&voter) else {
        return;
    };
    let request = wire::AskRequest { cluster: cluster.node.cluster.clone(), replica: cluster.node.name.to_string() };
    match timeout(ANSWER_WITHIN, ContactClient::new(channel).ask(request)).await {
        Ok(Ok(answer)) => {
            let wire::AskResponse { leader, channel, .. } = answer.into_inner();
            // A leader that lost its quorum may still reach some voters, but leads no cluster.
            let leader =
                leader.map(|leader| bounded(&leader)).filter(|leader| VmName::new(leader) != cluster.node.name);
            inputs
                .peers
                .record_answer(&VmName::new(&voter), PeerAnswer { leader, channel: health(channel.as_ref()).health });
        }
        Ok(Err(status)) => tracing::debug!(voter, %status, "leader query refused"),
        Err(_) => tracing::debug!(voter, "leader query not answered"),
    }
}
