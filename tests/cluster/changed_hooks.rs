//! A replica is restarted with other hooks while an event is being prepared.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::members::database_on;
use super::workload::{Hook, hook};

/// Three members without a known primary.
async fn cluster(hooks: Vec<Hook>) -> Cluster {
    Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).may_lose(1, "database").start().await
}

/// Restarts a replica with another configuration.
async fn started_otherwise(cluster: &mut Cluster, place: usize, change: impl Fn(&str) -> String) {
    cluster.stop(place);
    let file = cluster.configuration(place);
    let written = std::fs::read_to_string(&file).unwrap();
    let changed = change(&written);
    assert_ne!(written, changed);
    std::fs::write(file, changed).unwrap();
    cluster.start(place);
    cluster.ready().await;
}

/// The text of the table of the first hook of a phase.
fn table_of(written: &str, phase: &str) -> String {
    let (_, after) = written.split_once(&format!("[[workload.hook]]\nphase = \"{phase}\"\n")).unwrap();
    let end = after.find("[[").unwrap_or(after.len());
    format!("[[workload.hook]]\nphase = \"{phase}\"\n{}", &after[..end])
}

/// Adds a different hook of the phase before the existing hooks.
fn with_one_more(written: &str, phase: &str) -> String {
    let first = table_of(written, phase);
    let other = first.replace("env = { ", "env = { NEW = \"1\", ");
    written.replacen(&first, &format!("{other}{first}"), 1)
}

async fn announced(cluster: &Cluster) -> String {
    cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0, "notice": "10m" })).await
}

async fn ends_well(cluster: &Cluster, id: &str) -> Event {
    cluster.until_stage(1, id, "started").await;
    cluster.cloud.finish(id).await;
    let event = cluster.closed_everywhere(id).await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    event
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_is_new_is_run_and_those_that_were_done_are_not_run_again() {
    let mut cluster = cluster(vec![hook("drain"), hook("shutdown").waits_for("gate"), hook("restore")]).await;
    let id = announced(&cluster).await;
    cluster.until_true("the shutdown", async || cluster.hooks.begun() == ["drain", "shutdown"]).await;
    started_otherwise(&mut cluster, 0, |written| with_one_more(written, "drain")).await;
    cluster.hooks.open("gate");
    ends_well(&cluster, &id).await;
    assert_eq!(cluster.hooks.asked(), ["run drain", "run shutdown", "run drain", "run restore"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_was_changed_is_due_again_unless_it_has_kept_its_name() {
    let named = hook("shutdown").with("name = \"server\"");
    let last = hook("shutdown").waits_for("gate");
    let mut cluster = cluster(vec![hook("drain"), named, last, hook("restore")]).await;
    let id = announced(&cluster).await;
    cluster.until_true("the last", async || cluster.hooks.begun() == ["drain", "shutdown", "shutdown"]).await;
    started_otherwise(&mut cluster, 0, |written| {
        let changed = written.replacen("env = { FOLDER", "env = { CHANGED = \"1\", FOLDER", 1);
        let server = table_of(written, "shutdown");
        changed.replacen(&server, &server.replace("env = { ", "env = { CHANGED = \"2\", "), 1)
    })
    .await;
    cluster.hooks.open("gate");
    let event = ends_well(&cluster, &id).await;
    assert_eq!(
        cluster.hooks.asked(),
        ["run drain", "run shutdown", "run shutdown", "run drain", "run restore"],
        "{event:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_is_renamed_is_restored_by_its_old_hooks_before_the_new_one_is_prepared() {
    let mut cluster = cluster(vec![hook("drain"), hook("shutdown").waits_for("gate"), hook("restore")]).await;
    let id = announced(&cluster).await;
    cluster.until_true("the shutdown", async || cluster.hooks.begun() == ["drain", "shutdown"]).await;
    started_otherwise(&mut cluster, 0, |written| {
        // The variables distinguish new runs from old runs.
        let renamed = written.replacen("name = \"database\"\n", "name = \"orders\"\n", 1);
        renamed.replace("env = { ", "env = { NEW = \"1\", ")
    })
    .await;
    cluster.hooks.open("gate");
    let event = ends_well(&cluster, &id).await;
    let run: Vec<_> = event.hooks.iter().map(|hook| (hook.workload.as_str(), hook.phase.as_str())).collect();
    let expected = [
        ("database", "drain"),
        ("database", "shutdown"),
        ("database", "restore"),
        ("orders", "drain"),
        ("orders", "shutdown"),
        ("orders", "restore"),
    ];
    assert_eq!(run, expected, "{event:#?}");
    let restored = &event.hooks[2];
    assert_eq!(restored.outcome.as_deref(), Some("done"), "{restored:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_is_removed_while_its_vm_is_away_is_restored_afterwards() {
    let mut cluster = cluster(vec![hook("drain"), hook("restore")]).await;
    let id = announced(&cluster).await;
    cluster.until_stage(1, &id, "started").await;
    started_otherwise(&mut cluster, 0, |written| written.split_once("[[workload]]").unwrap().0.to_owned()).await;
    let owes = |status: &Status| database_on(status, "db-0").state == "out_of_service";
    cluster.until(1, "what is owed to the removed workload", owes).await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.asked(), ["run drain", "run restore"], "{event:#?}");
    assert_eq!(event.hooks[1].outcome.as_deref(), Some("done"), "{event:#?}");
    // The hooks of the removed workload are forgotten when nothing is owed any more.
    let kept = cluster.folder.path().join("0.data/hooks/.hooks.json");
    cluster.until_true("forgotten", async || std::fs::read_to_string(&kept).unwrap() == "[]").await;
}
