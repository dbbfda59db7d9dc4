//! A whole event, and hooks that run, wait, request more time and fail.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use allclear::wire::pb::allclear::workload::v1 as pb;
use serde_json::json;

use super::super::cluster::Cluster;
use super::super::dialled::{self, Dialled};
use super::super::workload::hook;
use super::{Album, database};

#[tokio::test(flavor = "multi_thread")]
async fn of_a_life() {
    let Some(album) = Album::of().await else { return };
    let drain = hook("drain").expects(50).waits_for("gate");
    let cluster = database(vec![hook("failover"), drain, hook("restore").waits_for("back")]).start().await;
    album.take(&cluster, 0, "nothing", &["No maintenance is announced", "primary"]).await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "15m",
                        "description": "Virtual machine is being redeployed because of degraded hardware." });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    album.take_blocker(&cluster, 0, &id, "hook_running").await;
    cluster.says(0, &["hold", &id, "--until", "1h", "--reason", "the backup has to end first"]);
    cluster.hooks.open("gate");
    album.take_blocker(&cluster, 0, &id, "hold").await;
    cluster.says(0, &["hold", &id, "--until", "2m", "--reason", "the backup has nearly ended"]);
    album.take_blocker(&cluster, 0, &id, "hold-ends_soon").await;
    cluster.says(0, &["release", &id, "--reason", "it has ended"]);
    album.take(&cluster, 0, "started", &["is under way"]).await;
    let other = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 2 })).await;
    cluster.seen_by_all(&other).await;
    album.take_blocker(&cluster, 0, &other, "budget").await;
    cluster.cloud.finish(&id).await;
    album.take(&cluster, 0, "restoring", &["is over and being restored"]).await;
    cluster.hooks.open("back");
    cluster.until_stage(0, &other, "started").await;
    cluster.cloud.finish(&other).await;
    album.take(&cluster, 0, "history", &["No maintenance is announced", "completed"]).await;
}

/// The picture for `deploy/docs`: an event of the platform waits for the failover of a primary.
#[tokio::test(flavor = "multi_thread")]
async fn of_the_documents() {
    let Some(album) = Album::of().await else { return };
    let failover = hook("failover").expects(50).waits_for("gate");
    let hooks = vec![hook("checkpoint"), failover, hook("restore")];
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("postgresql", hooks).with_primary("db-1");
    let cluster = plan.start().await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "15m",
                        "description": "Virtual machine is being redeployed because of degraded hardware." });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    super::waits_for(&cluster, 0, &id, "hook_running").await;
    album.take_top(&cluster, 0, &["failover hook of postgresql on db-1"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_what_an_administrator_asked_for() {
    let Some(album) = Album::of().await else { return };
    let cluster = database(vec![hook("failover"), hook("drain").waits_for("gate")]).start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.seen_by_all(&id).await;
    album.take_blocker(&cluster, 0, &id, "hook_running-asked_for").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hook_that_asks_for_patience() {
    let Some(album) = Album::of().await else { return };
    let failover = hook("failover").exits(75, "no standby is within 16 MB of the primary");
    let cluster = database(vec![failover, hook("drain")]).start().await;
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": 1, "notice": "15m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    album.take_blocker(&cluster, 0, &id, "hook_blocked").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_workload_that_went_away() {
    let Some(album) = Album::of().await else { return };
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    let drain = dialled::hello("cache", vec![dialled::hook(pb::Phase::Drain)]);
    drop(Dialled::at(&cluster.door(1), pb::Hello { lease_ms: Some(1_000), ..drain }).await);
    let is_away = |status: &Status| status.workloads.iter().any(|workload| !workload.connected);
    cluster.until(0, "aware that it is away", is_away).await;
    for (name, source) in [("hook_blocked-away", "Platform"), ("hook_blocked-away_asked_for", "User")] {
        let order = json!({ "type": "Reboot", "source": source, "vm": 1, "notice": "15m" });
        let id = cluster.cloud.announce(order).await;
        cluster.seen_by_all(&id).await;
        album.take_blocker(&cluster, 0, &id, name).await;
        cluster.cloud.cancel(&id).await;
        cluster.closed_everywhere(&id).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_hook_whose_replica_does_not_answer() {
    let Some(album) = Album::of().await else { return };
    // otherwise a user-initiated event would not wait for its hooks
    let plan = database(vec![hook("drain")]).also("cluster.takeover_after", "10m");
    let mut cluster = plan.start().await;
    cluster.kill(1);
    cluster.until(0, "aware of it", |status| status.quorum && !status.replicas[1].reachable).await;
    for (name, source) in [("hook_waiting", "Platform"), ("hook_waiting-asked_for", "User")] {
        let order = json!({ "type": "Reboot", "source": source, "vm": 1, "notice": "15m" });
        let id = cluster.cloud.announce(order).await;
        cluster.until_event(0, &id, "seen by both", |event| event.seen_by.len() == 2).await;
        album.take_blocker(&cluster, 0, &id, name).await;
        cluster.cloud.cancel(&id).await;
        cluster.until_stage(0, &id, "closed").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_failures() {
    let Some(album) = Album::of().await else { return };
    let failing = hook("drain").exits(1, "no standby is within 16 MB of the primary").with("attempts = 2");
    let mut cluster = database(vec![hook("checkpoint"), failing]).start().await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "15m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    album.take_blocker(&cluster, 0, &id, "hook_failed").await;
    cluster.kill(2);
    album.take(&cluster, 0, "one-lost", &["db-2 is unreachable"]).await;
    cluster.kill(1);
    album.take_blocker(&cluster, 0, &id, "no_quorum").await;
    cluster.kill(0);
    album.browser.until_it_says(&["The connection to db-0 is lost."]).await;
    album.browser.picture(&album.folder.join("not-connected-phone.png")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_notice_that_is_over() {
    let Some(album) = Album::of().await else { return };
    let failing = hook("drain").exits(1, "no standby is within 16 MB of the primary").with("attempts = 1");
    let cluster = database(vec![failing]).start().await;
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": 1, "notice": "15m", "late": "1h" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    super::waits_for(&cluster, 0, &id, "hook_failed").await;
    cluster.cloud.change(&id, json!({ "notice": "1s" })).await;
    let is_over = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.until.is_none());
    cluster.until_event(0, &id, "past its notice", is_over).await;
    album.take_blocker(&cluster, 0, &id, "hook_failed-notice_over").await;
}
