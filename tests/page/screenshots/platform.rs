//! Events that policy defers or leaves to others, and the outcomes of posts.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::json;

use super::super::cluster::Cluster;
use super::super::workload::hook;
use super::{Album, database};

#[tokio::test(flavor = "multi_thread")]
async fn of_what_policy_leaves() {
    let Some(album) = Album::of().await else { return };
    let rule =
        "[[policy.rule]]\nname = \"freezes are for the night shift\"\ntype = [\"Freeze\"]\ntreatment = \"observe\"\n";
    let plan = database(vec![hook("drain")]).tables(vec![rule.into(); 4]).newcomer("web-0");
    let cluster = plan.start().await;
    for (name, vm, kind, notice) in
        [("too_early", 1, "Reboot", "3h"), ("observing", 1, "Freeze", "15m"), ("observing-foreign", 3, "Reboot", "15m")]
    {
        let order = json!({ "type": kind, "source": "Platform", "vm": vm, "notice": notice, "duration_s": 20,
                            "seen_by": [0, 1, 2] });
        let id = cluster.cloud.announce(order).await;
        cluster.until_event(0, &id, "seen", |event| event.seen_by.len() == 3).await;
        album.take_blocker(&cluster, 0, &id, name).await;
        cluster.cloud.cancel(&id).await;
        cluster.until_stage(0, &id, "closed").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_posts() {
    let Some(album) = Album::of().await else { return };
    let cluster = database(vec![hook("drain")]).start().await;
    cluster.cloud.fault(json!({ "on": "post", "fault": { "kind": "status", "status": 503 } })).await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "15m", "start_delay": 3_600_000 });
    let id = cluster.cloud.announce(order).await;
    album.take_blocker(&cluster, 0, &id, "post_failed").await;
    cluster.cloud.clear_faults().await;
    cluster.cloud.fault(json!({ "on": "post", "fault": { "kind": "hang" } })).await;
    album.take_blocker(&cluster, 0, &id, "posting").await;
    cluster.cloud.clear_faults().await;
    album.take_blocker(&cluster, 0, &id, "waiting_for_platform").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_channels_that_do_not_work() {
    let Some(album) = Album::of().await else { return };
    let plan = database(vec![hook("drain").waits_for("gate")]).also("metadata.stall_after", "3s");
    let cluster = plan.start().await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "15m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    cluster.cloud.fault(json!({ "on": "both", "fault": { "kind": "status", "status": 500 } })).await;
    let is_blind = |status: &Status| status.replicas.iter().all(|one| one.metadata == "stalled");
    cluster.until(0, "blind", is_blind).await;
    cluster.hooks.open("gate");
    album.take_blocker(&cluster, 0, &id, "no_healthy_channel").await;
}

/// Without further blockers the leader decides at once, except if the leader cannot commit.
#[tokio::test(flavor = "multi_thread")]
async fn of_a_leader_that_is_about_to_decide() {
    let Some(album) = Album::of().await else { return };
    let timing = [("election_timeout", "25s"), ("takeover_after", "2m")];
    let plan = timing
        .iter()
        .fold(Cluster::of(&["db-0", "db-1", "db-2"]), |plan, (key, value)| plan.also(&format!("cluster.{key}"), value));
    let cluster = plan.start().await;
    let leader = cluster.leader(0).await;
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    cluster.says(leader, &["pause", "--until", "5s", "--reason", "to look at"]);
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": others[0], "notice": "15m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    super::waits_for(&cluster, leader, &id, "paused").await;
    for place in others {
        cluster.freeze(place);
    }
    album.take_blocker(&cluster, leader, &id, "deciding").await;
}
