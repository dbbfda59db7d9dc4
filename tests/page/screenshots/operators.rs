//! Requests of operators: a pause, a drill.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::super::workload::hook;
use super::{Album, database};

#[tokio::test(flavor = "multi_thread")]
async fn of_a_pause() {
    let Some(album) = Album::of().await else { return };
    let cluster = database(vec![hook("drain")]).start().await;
    cluster.says(1, &["pause", "--until", "1h", "--reason", "the network is rebuilt"]);
    cluster.until(0, "paused", |status| status.paused.is_some()).await;
    album.take(&cluster, 0, "paused-nothing_open", &["paused"]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.seen_by_all(&id).await;
    album.take_blocker(&cluster, 0, &id, "paused").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_drill() {
    let Some(album) = Album::of().await else { return };
    let drain = hook("drain").waits_for("gate");
    let cluster = database(vec![hook("checkpoint"), drain, hook("restore")]).start().await;
    let drill = cluster.asks(1, "drill", &["Reboot", "--vm", "db-1"]);
    let is_drill = |event: &Event| event.drill.is_some();
    let status: Status = cluster.until(0, "drilling", |status| status.events.iter().any(is_drill)).await;
    let id = status.events[0].id.clone();
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    album.take_blocker(&cluster, 0, &id, "hook_running-drill").await;
    cluster.hooks.open("gate");
    let ended = tokio::task::spawn_blocking(move || drill.wait_with_output().unwrap()).await.unwrap();
    let said = [ended.stderr, ended.stdout].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
    album.write("drill", &format!("$ allclear drill --config FILE Reboot --vm db-1\n{said}"));
    album.take(&cluster, 0, "drill-over", &["No maintenance is announced", "drilled"]).await;
}
