//! The output for operators during an event: over HTTP, and from the commands.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::evidence::measured_by;
use super::workload::hook;

#[tokio::test]
async fn every_replica_shows_the_same_event_over_http_and_to_the_commands() {
    let cluster = Cluster::with_hooks(vec![hook("failover"), hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["failover", "drain"]).await;

    // a leader that was elected meanwhile has to receive the report of db-2 first
    cluster.until(1, "told how db-2 fares", |status| status.replicas[2].metadata == "healthy").await;
    let status: Value = serde_json::from_str(&cluster.page(1, "/v1/status").await.1).unwrap();
    assert_eq!(status["replica"], "db-1");
    assert_eq!(status["quorum"], true);
    assert_eq!(status["paused"], Value::Null);
    assert_eq!(status["replicas"][2]["metadata"], "healthy");
    assert_eq!(status["workloads"][0]["phases"], json!(["failover", "drain", "restore"]));
    let event = &status["events"][0];
    assert_eq!((&event["id"], &event["type"], &event["source"]), (&json!(id), &json!("Redeploy"), &json!("User")));
    assert_eq!((&event["status"], &event["stage"]), (&json!("Scheduled"), &json!("preparing")));
    assert_eq!(event["duration_s"], -1);
    assert_eq!(event["blocker"]["code"], "hook_running");
    assert_eq!(event["hooks"][0]["outcome"], "done");
    assert_eq!(event["hooks"][1]["outcome"], Value::Null);

    let (code, out, err) = cluster.says(2, &["explain", &id]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.contains("the drain hook of database on db-0 runs on db-0"), "{out}");
    let (code, out, _) = cluster.says(0, &["status", "--json"]);
    assert_eq!(code, 0);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(told["events"][0]["hooks"], event["hooks"]);

    assert_eq!(cluster.page(0, "/livez").await, (200, "ok\n".into()));
    assert_eq!(cluster.page(0, "/readyz").await, (200, "ok\n".into()));
    assert_eq!(cluster.page(0, "/v1/events/nobody-knows").await.0, 404);
    let (code, _, err) = cluster.says(0, &["explain", "nobody-knows"]);
    assert_eq!(code, 1);
    assert!(err.contains("nobody-knows"), "{err}");

    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    measured_by(&cluster, 2, &id).await;
    let whole: Value = serde_json::from_str(&cluster.page(2, &format!("/v1/events/{id}")).await.1).unwrap();
    assert_eq!((&whole["outcome"], &whole["start_cause"]), (&json!("completed"), &json!("approved")));
    let list: Value = serde_json::from_str(&cluster.page(2, "/v1/events").await.1).unwrap();
    assert_eq!(list["events"][0], whole);
    let (_, out, _) = cluster.says(2, &["events"]);
    assert!(out.contains("closed, completed, started because: approved"), "{out}");
}

#[tokio::test]
async fn a_replica_without_a_quorum_says_so_and_is_not_ready() {
    let mut cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0 })).await;
    cluster.until_stage(0, &id, "preparing").await;
    cluster.kill(1);
    cluster.kill(2);
    let event = cluster
        .until_event(0, &id, "without a quorum", |event| {
            event.blocker.as_ref().is_some_and(|blocker| blocker.code == "no_quorum")
        })
        .await;
    assert_eq!(event.stage, "preparing");
    // the leader's last information about peers is old
    let alone = [(true, "healthy"), (false, "unknown"), (false, "unknown")];
    let is_alone = |status: &Status| {
        !status.quorum && status.replicas.iter().map(|each| (each.reachable, each.metadata.as_str())).eq(alone)
    };
    cluster.until(0, "without a quorum, and aware of who answers", is_alone).await;
    assert_eq!(cluster.page(0, "/readyz").await.0, 503);
    assert_eq!(cluster.page(0, "/livez").await.0, 200);
    let (code, _, err) = cluster.says(1, &["status"]);
    assert_eq!(code, 3);
    assert!(err.contains("no replica answers"), "{err}");
    cluster.hooks.open("gate");
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0, "posted without a quorum");
}

#[tokio::test]
async fn a_follower_of_a_leader_whom_too_few_answer_says_that_nothing_is_decided() {
    let plan = Cluster::of(&["db-0", "db-1", "db-2", "db-3"]);
    // an approved event needs no quorum any more
    let plan = plan.workload("database", vec![hook("drain").waits_for("gate")]);
    // a busy machine must not cost the leader the follower
    let mut cluster = plan.also("cluster.election_timeout", "1s").start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 0, "notice": "3h" })).await;
    cluster.until_stage(0, &id, "preparing").await;
    let leader = cluster.leader(0).await;
    let [follower, one, other] = [1, 2, 3].map(|more| (leader + more) % 4);
    cluster.kill(one);
    cluster.kill(other);
    let name = format!("db-{leader}");
    let knows = |status: &Status| !status.quorum && status.leader.as_ref() == Some(&name);
    cluster.until(follower, "aware that its leader has no quorum", knows).await;
    let (_, out, _) = cluster.says(follower, &["status"]);
    assert!(
        out.contains(&format!("CANNOT ACT FROM HERE: NO QUORUM, {name} leads and too few of 4 voters answer it")),
        "{out}"
    );
    let (_, metrics) = cluster.page(follower, "/metrics").await;
    assert!(metrics.contains("\nallclear_has_quorum 0\n"), "{metrics}");
    assert_eq!(cluster.page(follower, "/readyz").await.0, 503);
    let (_, out, _) = cluster.says(follower, &["explain", &id]);
    assert!(out.contains("(no_quorum)"), "{out}");
    cluster.start(one);
    cluster.until(follower, "led again", |status| status.quorum).await;
}

/// Runs a command that `explain` offers in a shell, verbatim.
fn type_what_is_offered(cluster: &Cluster, id: &str, command: &str) {
    let (_, out, _) = cluster.says(0, &["explain", id]);
    let offers = |line: &&str| line.strip_prefix("allclear ").is_some_and(|rest| rest.starts_with(command));
    let line = out.lines().map(str::trim).find(offers).unwrap_or_else(|| panic!("no {command} is offered:\n{out}"));
    let line = line.replacen("allclear", &format!("'{}'", env!("CARGO_BIN_EXE_allclear")), 1);
    let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_command_that_is_offered_can_be_typed_as_it_stands() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("never")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 0, "notice": "15m" })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    for command in ["hold", "release", "pause", "resume", "skip"] {
        type_what_is_offered(&cluster, &id, command);
    }
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    let drill = cluster.asks(1, "drill", &["Reboot", "--vm", "db-1"]);
    let status = cluster.until(0, "drilling", |status| !status.events.is_empty()).await;
    let id = status.events[0].id.clone();
    cluster.until_true("the rehearsal", async || cluster.hooks.begun().len() == 2).await;
    type_what_is_offered(&cluster, &id, "drill --end");
    cluster.until_stage(0, &id, "closed").await;
    tokio::task::spawn_blocking(move || drill.wait_with_output().unwrap()).await.unwrap();
}

/// Only the leader's policy chooses, so every replica reports a policy that differs.
#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_differs_from_the_others_is_told() {
    let margin = |span: &str| vec![("ALLCLEAR__POLICY__MARGIN", span.to_owned())];
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).environments(["5s", "7s", "5s"].map(margin).into());
    tell_of_the_second(&plan.start().await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_are_groups_that_differ() {
    let group = |most: u32| format!("[[group]]\nname = \"databases\"\nmax_unavailable = {most}\n");
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).tables([1, 2, 1].map(group).into());
    tell_of_the_second(&plan.start().await).await;
}

async fn tell_of_the_second(cluster: &Cluster) {
    for place in 0..3 {
        let is_told = |status: &Status| {
            let such = |text: &str| text.starts_with("the policy or the groups of db-1 differ");
            status.warnings.iter().any(|warning| such(&warning.text))
        };
        cluster.until(place, "told of the difference", is_told).await;
    }
}
