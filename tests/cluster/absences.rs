//! Absence of session workloads: how long a registration is retained, and how events proceed without the workload.

use allclear::wire::pb::allclear::operator::v1::Status;
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::{Checkpoint, Drain, Restore};

use super::cluster::Cluster;
use super::dialled::Dialled;
use super::sessions::{database, outcomes, reboot};

fn brief(hello: pb::Hello) -> pb::Hello {
    pb::Hello { lease_ms: Some(1_000), ..hello }
}

fn is_away(status: &Status) -> bool {
    status.workloads.len() == 1 && !status.workloads[0].connected
}

#[tokio::test]
async fn a_registration_is_kept_as_long_as_it_asked_for_and_waits_for_nobody_after_that() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let greeting = || brief(pb::Hello { retain_ms: Some(2_000), ..database(&[Drain]) });
    drop(Dialled::at(&cluster.door(0), greeting()).await);
    cluster.until(0, "aware that it is away", is_away).await;
    // A workload stays registered if reconnected in time.
    let database = Dialled::at(&cluster.door(0), greeting()).await;
    cluster.until(0, "aware that it is back", |status| status.workloads[0].connected).await;
    drop(database);
    cluster.until(0, "without workloads", |status| status.workloads.is_empty()).await;
    let id = cluster.cloud.announce(reboot()).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.approvals[0].reason, "nothing_to_prepare");
}

#[tokio::test]
async fn a_workload_that_may_be_skipped_is_not_waited_for_and_what_was_done_to_it_is_put_back() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let greeting =
        || brief(pb::Hello { on_absent: pb::OnAbsent::Skip.into(), ..database(&[Checkpoint, Drain, Restore]) });
    let mut database = Dialled::at(&cluster.door(0), greeting()).await;
    let id = cluster.cloud.announce(reboot()).await;
    database.does(Checkpoint).await;
    // The workload receives the drain step; the drain's outcome stays unknown.
    database.step().await;
    drop(database);
    cluster.until(0, "aware that it is away", is_away).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    // A confirm may have been sent before the absence was in the log.
    let ran: Vec<_> = outcomes(&event).into_iter().filter(|(_, intent, _)| *intent == "run").collect();
    assert_eq!(ran, [("checkpoint", "run", Some("done")), ("drain", "run", Some("unknown"))]);
    cluster.cloud.finish(&id).await;
    cluster.until_stage(0, &id, "restoring").await;
    Dialled::at(&cluster.door(0), greeting()).await.does(Restore).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(outcomes(&event).last(), Some(&("restore", "run", Some("done"))));
}

#[tokio::test]
async fn a_workload_that_is_away_from_the_beginning_and_may_be_skipped_holds_nothing() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let greeting = brief(pb::Hello { on_absent: pb::OnAbsent::Skip.into(), ..database(&[Drain, Restore]) });
    drop(Dialled::at(&cluster.door(0), greeting).await);
    cluster.until(0, "aware that it is away", is_away).await;
    let id = cluster.cloud.announce(reboot()).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(outcomes(&event), []);
}
