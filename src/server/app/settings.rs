//! Makes the settings of the replica and of consensus from the configuration.

use std::path::Path;
use std::time::Duration;

use super::credentials;
use crate::config::{self, Config, USUAL_SOCKET};
use crate::consensus;
use crate::grpc;
use crate::hooks::command::as_own_user;
use crate::replica::cluster::NodeFacts;
use crate::replica::policy_fingerprints;
use crate::replica::sanitize::quoted;
use allclear_core::model::id::VmName;
use allclear_core::ownership::Grants;
use allclear_core::planning_input::Timing;

/// The time before a new disk may rejoin under a voter's name: the previous disk may be disconnected this long, and
/// return.
const REJOIN_AFTER: Duration = Duration::from_mins(1);

pub(super) fn node_facts(config: &Config, name: &VmName, members: &[(String, String)]) -> NodeFacts {
    let socket = &config.operator.socket;
    NodeFacts {
        name: name.clone(),
        cluster: config.cluster.name.clone(),
        configured: members.iter().map(|(name, _)| VmName::new(name)).collect(),
        policy: config.policy.clone(),
        fingerprint: policy_fingerprints::fingerprint(&config.policy, &config.groups),
        timing: timing(config),
        grants: Grants { trusted: grpc::trusted_users(), ..config.registration.grants.clone() },
        endpoint: (socket != Path::new(USUAL_SOCKET)).then(|| socket.display().to_string()),
        doctor: format!("{}allclear doctor --config {}", as_own_user(), quoted(&config.file.display().to_string())),
    }
}

pub(super) fn consensus_options(
    config: &Config,
    name: &VmName,
    members: &[(String, String)],
) -> anyhow::Result<consensus::Options> {
    let shortest = config.cluster.election_timeout;
    // The name as spelled in the list of replicas: consensus compares names character by character.
    let spelled = members.iter().map(|(member, _)| member).find(|member| VmName::new(member) == *name);
    let replica = spelled.cloned().unwrap_or_else(|| name.to_string());
    let (insecure, tls) = (config.cluster.insecure, credentials::of(config, &replica)?);
    if insecure {
        tracing::warn!(
            "plain text allowed between replicas: every program that reaches cluster.listen can act as any replica"
        );
    }
    Ok(consensus::Options {
        cluster: config.cluster.name.clone(),
        environment: if tls.is_some() || insecure {
            consensus::Environment::default()
        } else {
            consensus::Environment::alone()
        },
        tls,
        replica,
        replicas: members.to_vec(),
        max_voters: config.cluster.max_voters,
        replace_after: config.cluster.replace_after,
        rejoin_after: rejoin_after(&config.cluster),
        data_dir: config.replica.data_dir.clone(),
        timing: consensus::RaftTiming {
            heartbeat: config.cluster.heartbeat,
            election_timeout: (shortest, shortest * 2),
            ..consensus::RaftTiming::default()
        },
        snapshot_every: consensus::SNAPSHOT_EVERY,
    })
}

/// Not before the other replicas know that the lost replica may have approved while isolated.
fn rejoin_after(cluster: &config::ClusterConfig) -> Duration {
    REJOIN_AFTER.min(cluster.replace_after).max(cluster.takeover_after)
}

fn timing(config: &Config) -> Timing {
    Timing {
        claim_lease: config.cluster.claim_lease,
        stale_after: config.metadata.stale_after,
        forget_after: config.metadata.forget_after,
        replace_after: config.cluster.replace_after,
        takeover_after: config.cluster.takeover_after,
    }
}
