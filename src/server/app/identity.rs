//! The name and the endpoint of this replica, and the other replicas, from the configuration.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::config;
use crate::imds::{BadEndpoint, Endpoint, Timeouts};
use crate::replica::metrics::Metrics;
use allclear_core::model::id::VmName;

/// The pause between two queries for the VM's own name.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(2);

/// The pauses between two comparisons of the names, after an answer and without one.
const COMPARED_EVERY: Duration = Duration::from_hours(1);
const COMPARED_AGAIN_AFTER: Duration = Duration::from_secs(30);

/// A mistake only another configuration can repair: a restart would not help.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misconfigured(String);

/// The metadata endpoint of this VM.
pub(super) fn endpoint(metadata: &config::Metadata) -> Result<Endpoint, BadEndpoint> {
    Endpoint::new(&metadata.endpoint, metadata.api_version, Timeouts::default())
}

/// The name of this VM in events. Without the name nothing can be decided, so the query is repeated until an answer.
pub(super) async fn own_name(endpoint: &Endpoint) -> VmName {
    loop {
        match endpoint.instance().await {
            Ok(told) => return told.name,
            Err(why) => {
                tracing::warn!(%why, "name of the VM not received yet; set replica.name to start without the metadata service");
            }
        }
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
}

/// Compares the name of this replica with Azure's name of this VM, until `stop`.
pub(super) async fn watch_name(own: VmName, endpoint: Arc<Endpoint>, metrics: Arc<Metrics>, stop: CancellationToken) {
    let compared = async {
        loop {
            let told = endpoint.instance().await;
            let wait = if told.is_ok() { COMPARED_EVERY } else { COMPARED_AGAIN_AFTER };
            if let Ok(told) = told {
                metrics.vm_name.note(&own, told.name);
            }
            tokio::time::sleep(wait).await;
        }
    };
    stop.run_until_cancelled(compared).await;
}

/// The address of a replica without a listener for other replicas.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Name and address of every replica, in the order of the configuration. Without any, only this replica.
pub(super) fn members(cluster: &config::ClusterConfig, name: &VmName) -> Result<Vec<(String, String)>, Misconfigured> {
    if cluster.replicas.is_empty() {
        return Ok(vec![(name.to_string(), cluster.listen.unwrap_or(NOWHERE).to_string())]);
    }
    if !cluster.replicas.iter().any(|peer| peer.name == *name) {
        let known: Vec<_> = cluster.replicas.iter().map(|peer| peer.name.to_string()).collect();
        return Err(Misconfigured(format!(
            "the instance metadata names this VM {name}, and cluster.replicas does not list this name ({}); add the \
             name, or set replica.name to the name of this VM in events",
            known.join(", ")
        )));
    }
    Ok(cluster.replicas.iter().map(|peer| (peer.name.to_string(), peer.address.clone())).collect())
}
