//! Registers this replica's workloads in the log and reports its documents.

use std::time::Duration;

use super::host::ReplicaHost;
use crate::consensus::RequestError;
use allclear_core::cluster_time::Trust;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Group, Workload};

/// The pause before a report missing in the log is proposed again.
const REPORT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// Deferrable reports are proposed at multiples of this duration.
const REPORT_TOGETHER_EVERY: Duration = Duration::from_millis(500);

/// Registers this replica's workloads and reports the replica's document whenever the log has others. Begins once the
/// remains of a previous run are known.
pub(super) async fn run(mut host: ReplicaHost, workloads: Vec<Workload>, groups: Vec<Group>) {
    let stop = host.stop.clone();
    let known = stop.run_until_cancelled(host.left_over.wait_for(Option::is_some)).await;
    if known.is_none_or(|known| known.is_err()) {
        return;
    }
    let (cluster, observer) = (&host.cluster, &host.observer);
    let mut state = cluster.committed.clone();
    let mut polls = observer.polls();
    loop {
        state.mark_unchanged();
        polls.mark_unchanged();
        if observer.may_wait(cluster) {
            let _ = stop.run_until_cancelled(tokio::time::sleep(until_all_report(cluster.time.now()))).await;
        }
        let due = observer.due(cluster, &workloads, &groups);
        let again = due.is_some() || cluster.time.trust() == Trust::Unknown;
        if let Some(command) = due {
            match stop.run_until_cancelled(cluster.propose(&command)).await {
                Some(Ok(_)) => observer.spend(&command),
                Some(Err(error)) => {
                    tracing::debug!(%error, command = command.as_str(), "document not reported yet");
                    // The log may contain the command.
                    if matches!(error, RequestError::Unknown(_)) {
                        observer.spend(&command);
                    }
                }
                None => return,
            }
        }
        tokio::select! {
            _ = state.changed() => {}
            _ = polls.changed() => {}
            () = tokio::time::sleep(REPORT_AGAIN_AFTER), if again => {}
            () = stop.cancelled() => return,
        }
    }
}

/// The time until all replicas report together: each of many replicas appends all entries at the cost of a single
/// entry.
fn until_all_report(now: Timestamp) -> Duration {
    let every = i64::try_from(REPORT_TOGETHER_EVERY.as_millis()).unwrap_or(i64::MAX);
    Duration::from_millis((every - now.0.rem_euclid(every)).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_report_at_one_moment_and_never_at_once() {
        let waits = [0, 1, 499, 500, -1].map(|now| until_all_report(Timestamp(now)).as_millis());
        assert_eq!(waits, [500, 499, 1, 500, 1]);
    }
}
