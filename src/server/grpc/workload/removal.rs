//! The end of a registration, by its workload or by an operator.

use tokio::time::timeout;
use tonic::Status;

use super::RECORDED_WITHIN;
use crate::hooks::session::Sessions;
use crate::replica::cluster::ClusterHandle;
use allclear_core::model::command::{ApplyResult, Command, DeregisterSession, Rejection};
use allclear_core::model::id::WorkloadName;
use allclear_core::model::state::State;

/// Ends the session of the workload, and removes its registration.
pub(in crate::grpc) async fn deregister(
    cluster: &ClusterHandle,
    sessions: &Sessions,
    name: &WorkloadName,
    forced: bool,
) -> Result<(), Status> {
    sessions.mark_expired(name);
    let delist = Command::DeregisterSession(DeregisterSession { workload: name.clone(), forced });
    let is_listed = |state: &State| {
        let own = state.replicas.get(&cluster.node.name);
        own.is_some_and(|own| own.sessions.contains_key(name))
    };
    let delisting = async {
        let verdict = cluster.record(&delist).await;
        if !matches!(verdict, ApplyResult::Rejected(Rejection::NotNow)) {
            let _ = cluster.committed.clone().wait_for(|state| !is_listed(state)).await;
        }
        verdict
    };
    match timeout(RECORDED_WITHIN, delisting).await {
        Ok(ApplyResult::Rejected(Rejection::NotNow)) => {
            return Err(Status::failed_precondition(format!(
                "an event that was announced meanwhile needs {name}: the registration ends after the event"
            )));
        }
        Ok(_) => {}
        Err(_) => {
            return Err(Status::unavailable(
                "there is no quorum: the deregistration is recorded as soon as a quorum is back",
            ));
        }
    }
    tracing::info!(workload = %name, "session workload deregistered");
    sessions.deregister(name);
    Ok(())
}
