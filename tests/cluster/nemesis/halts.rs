//! An operator's temporary hold or pause of approvals: sent to any replica that answers, and relied on once every voter
//! reportedly knows of the hold or pause.

use std::time::Duration;

use allclear::grpc::client::OperatorConnection;
use allclear::wire::pb::allclear::operator::v1::{
    End, HoldRequest, PauseRequest, ReleaseRequest, ResumeRequest, end::When,
};
use tokio::time::sleep;

use super::super::cluster::Cluster;
use super::gather::now;
use super::record::{Halt, Moment};

/// Longer than a desertion; the halt is released before, and not relied on for so long.
const LASTS_MS: u64 = 180_000;
const RELIED_ON_MS: Moment = 60_000;
/// The number of times that all replicas are asked.
const TRIES: usize = 20;
const AGAIN_AFTER: Duration = Duration::from_millis(300);

/// Pauses all approvals; `None` if no replica accepted the pause.
pub(super) async fn pause(cluster: &Cluster) -> Option<Halt> {
    for _ in 0..TRIES {
        for replica in &cluster.replicas {
            let request = PauseRequest { until: Some(end()), reason: "nothing for a while".into() };
            let Ok(mut asking) = OperatorConnection::connect(&replica.socket).await else { continue };
            let Ok(answer) = asking.change(async |client| client.pause(request).await).await else { continue };
            let is_known = answer.pause.is_some_and(|pause| pause.unacknowledged_by.is_empty());
            return Some(Halt { spared: answer.too_late_for, ..halt(None, is_known) });
        }
        sleep(AGAIN_AFTER).await;
    }
    None
}

/// Holds an event, which has to be seen first; `None` if no replica accepted the hold.
pub(super) async fn hold(cluster: &Cluster, event: &str) -> Option<Halt> {
    for _ in 0..TRIES {
        for replica in &cluster.replicas {
            let request =
                HoldRequest { event: event.into(), until: Some(end()), reason: "not this one".into(), no_hooks: false };
            let Ok(mut asking) = OperatorConnection::connect(&replica.socket).await else { continue };
            let Ok(answer) = asking.change(async |client| client.hold(request).await).await else { continue };
            let is_known = answer.hold.is_some_and(|hold| hold.unacknowledged_by.is_empty());
            return Some(halt(Some(event.to_owned()), is_known));
        }
        sleep(AGAIN_AFTER).await;
    }
    None
}

/// A halt that a voter may not know of is never relied on.
fn halt(event: Option<String>, is_known: bool) -> Halt {
    let from = if is_known { now() } else { Moment::MAX };
    Halt { event, from, to: now() + RELIED_ON_MS, spared: Vec::new() }
}

/// Releases the halt; from now on the halt is not relied on.
pub(super) async fn end_of(cluster: &Cluster, halt: &mut Halt) {
    halt.to = halt.to.min(now());
    for _ in 0..TRIES {
        for replica in &cluster.replicas {
            let Ok(mut asking) = OperatorConnection::connect(&replica.socket).await else { continue };
            let reason = "go on".to_owned();
            let is_done = match halt.event.clone() {
                None => asking.change(async |client| client.resume(ResumeRequest { reason }).await).await.is_ok(),
                Some(event) => {
                    let request = ReleaseRequest { event, reason };
                    asking.change(async |client| client.release(request).await).await.is_ok()
                }
            };
            if is_done {
                return;
            }
        }
        sleep(AGAIN_AFTER).await;
    }
}

fn end() -> End {
    End { when: Some(When::AfterMs(LASTS_MS)) }
}
