//! Membership changes by the operator's commands, sent to any replica.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::workload::hook;

/// The rows of `member list --json`, as reported by one replica.
pub(super) fn members(cluster: &Cluster, asked: usize) -> Vec<Value> {
    let (code, out, err) = cluster.says(asked, &["member", "list", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    serde_json::from_str::<Value>(&out).unwrap()["members"].as_array().unwrap().clone()
}

fn row<'m>(members: &'m [Value], name: &str) -> &'m Value {
    members.iter().find(|member| member["name"] == name).unwrap()
}

/// On a loaded machine a change may be interrupted, may take longer than the command waits, or may meet a leader whose
/// heartbeats are late: a repetition is harmless.
pub(super) fn done(cluster: &Cluster, asked: usize, arguments: &[&str]) -> String {
    for attempt in 1.. {
        let (code, out, err) = cluster.says(asked, arguments);
        let is_repeated = attempt > 1 && code == 4 && err.contains("is not a member");
        if code == 0 && err.is_empty() || is_repeated {
            return out;
        }
        let waits = ["has no quorum", "is not up to date, or does not answer"];
        let is_late = code == 1 || code == 4 && waits.iter().any(|why| err.contains(why));
        assert!(is_late && attempt < 60, "{arguments:?}: {code} {err}");
        std::thread::sleep(Duration::from_millis(500));
    }
    unreachable!()
}

fn refused(cluster: &Cluster, asked: usize, arguments: &[&str]) -> String {
    let (code, out, err) = cluster.says(asked, arguments);
    assert_eq!((code, out.as_str()), (4, ""), "{arguments:?}: {err}");
    err
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lost_its_disk_is_removed_and_added_and_then_votes_and_handles_an_event() {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", vec![hook("drain"), hook("restore")]);
    let mut cluster = plan.may_lose(2, "database").start().await;
    let leader = cluster.leader(0).await;
    let (lost, third) = ((leader + 1) % 3, (leader + 2) % 3);
    let name = format!("db-{lost}");
    let before = row(&members(&cluster, third), &name).clone();
    assert_eq!(
        (&before["voter"], &before["reachable"], &before["leader"]),
        (&json!(true), &json!(true), &json!(false))
    );
    let address = before["address"].as_str().unwrap().to_owned();
    cluster.kill(lost);
    cluster.lose_disk(lost);
    cluster.start(lost);

    // The replica would have to wait for its vote.
    cluster.until(lost, "a learner", |status| status.role == "learner" && status.quorum).await;
    let listed = members(&cluster, third);
    let row_of_lost = listed.iter().find(|row| row["name"] == name && row["voter"] == true).unwrap();
    assert_eq!(row_of_lost["reachable"], false);
    let why = row_of_lost["unreachable_because"].as_str().unwrap();
    assert!(why.contains("its disk was lost") && why.contains("takes over the vote automatically"), "{row_of_lost}");
    let why = refused(&cluster, third, &["member", "add", &name, &address]);
    assert!(why.contains(&format!("remove {name} first")), "{why}");

    done(&cluster, third, &["member", "remove", &format!("_DB-{lost}")]);
    let left = cluster.until(leader, "one less", |status| status.replicas.iter().any(|replica| !replica.member)).await;
    let gone = left.replicas.iter().find(|replica| !replica.member).unwrap();
    assert_eq!((gone.name.as_str(), gone.configured, gone.voter), (name.as_str(), true, false));
    let why = refused(&cluster, lost, &["member", "add", &name, &address]);
    assert!(why.contains("use a member instead"), "{why}");
    assert_eq!(done(&cluster, third, &["member", "add", &name, &address]), format!("{name} is a voter\n"));
    cluster.ready().await;
    let votes = async || {
        let after = row(&members(&cluster, lost), &name).clone();
        (&after["voter"], &after["reachable"]) == (&json!(true), &json!(true))
    };
    cluster.until_true("a voter that answers", votes).await;
    let after = row(&members(&cluster, lost), &name).clone();
    assert_ne!(after["node"], before["node"], "it came back under its old vote");
    assert!(cluster.log(leader).contains("uid "), "who asked is not in the log");

    // Of three voters two are left, so neither a leader nor the event is decided without the vote of `lost`.
    cluster.kill(leader);
    let led =
        |status: &Status| status.quorum && status.leader.as_ref().is_some_and(|led| *led != format!("db-{leader}"));
    cluster.until(lost, "led by another", led).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": lost })).await;
    let event = cluster.until_stage(lost, &id, "started").await;
    assert_eq!(event.hooks.iter().map(|hook| hook.on.as_str()).collect::<Vec<_>>(), [name.as_str()]);
    cluster.start(leader);
    cluster.ready().await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_goes_where_the_operator_wants_and_the_leader_can_be_removed() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    let leader = cluster.leader(0).await;
    let other = (leader + 1) % 3;
    let told = done(&cluster, other, &["leader", "transfer", &format!("_DB-{other}")]);
    assert_eq!(told, format!("db-{other} leads\n"));
    cluster.until(leader, "led by it", |status| status.leader.as_ref() == Some(&format!("db-{other}"))).await;
    let told: Value = serde_json::from_str(&done(&cluster, leader, &["leader", "transfer", "--json"])).unwrap();
    let next = cluster.place_of(told["leader"].as_str().unwrap());
    assert_ne!(next, other, "it stayed where it was");
    let why = refused(&cluster, other, &["leader", "transfer", "db-7"]);
    assert!(why.contains("db-7 is not a voter"), "{why}");

    let name = format!("db-{next}");
    assert!(done(&cluster, next, &["member", "remove", &name]).contains(&name));
    let listed = members(&cluster, other);
    assert_eq!(listed.len(), 2);
    assert_eq!(listed.iter().filter(|member| member["leader"] == true).count(), 1, "{listed:?}");
    let told = |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("was removed"));
    cluster.until(next, "told that it was removed", told).await;
    let text = done(&cluster, other, &["status"]);
    assert!(text.contains("configured, but no member"), "{text}");
    let warned = |status: &Status| {
        let texts: Vec<&str> = status.warnings.iter().map(|warning| warning.text.as_str()).collect();
        texts.iter().any(|text| text.contains(&format!("an operator removed {name}")) && text.contains("still runs"))
    };
    cluster.until(other, "told of what is left", warned).await;
    let why = refused(&cluster, other, &["member", "remove", "db-7"]);
    assert!(why.contains("db-7 is not a member"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_with_a_new_name_joins_and_a_dead_one_makes_room_for_it() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).newcomer("db-3").start().await;
    cluster.start(3);
    let waits =
        |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("formed without db-3"));
    let advice = cluster.until(3, "told what to do", waits).await.outside_because.unwrap();
    let address = advice.split("add db-3 ").nth(1).unwrap().trim_end_matches('`').to_owned();
    // The certificate alone makes no member, so `db-3` cannot request its own addition.
    let why = refused(&cluster, 3, &["member", "add", "db-3", &address]);
    assert!(why.contains("use a member instead"), "{why}");
    assert_eq!(done(&cluster, 0, &["member", "add", "db-3", &address]), "db-3 is a voter\n");
    let joined = |status: &Status| status.replicas.get(3).is_some_and(|replica| replica.reachable);
    let status = cluster.until(0, "aware of it", joined).await;
    let shown = &status.replicas[3];
    assert_eq!((shown.name.as_str(), shown.voter, shown.member, shown.configured), ("db-3", true, true, false));
    assert!(done(&cluster, 0, &["status"]).contains("a member, but not in cluster.replicas"));

    let dead = (cluster.leader(0).await + 1) % 3;
    let asked = (dead + 1) % 3;
    cluster.kill(dead);
    done(&cluster, asked, &["member", "remove", &format!("db-{dead}")]);
    assert_eq!(members(&cluster, 3).len(), 3);
    // After the restart the replica's log still contains its vote, but no member counts the vote any more.
    cluster.start(dead);
    let told = |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("was removed"));
    cluster.until(dead, "told that it was removed", told).await;
    assert_eq!(members(&cluster, asked).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_is_not_removed_when_the_quorum_would_go_with_it() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    let leader = cluster.leader(0).await;
    let (dead, alive) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.kill(dead);
    let why = refused(&cluster, alive, &["member", "remove", &format!("db-{alive}")]);
    assert!(why.contains("there would be no quorum") && why.contains(&format!("db-{dead}")), "{why}");
    assert_eq!(members(&cluster, leader).len(), 3);
    assert_eq!(row(&members(&cluster, leader), &format!("db-{dead}"))["reachable"], false);
    done(&cluster, alive, &["member", "remove", &format!("db-{dead}")]);
    assert_eq!(members(&cluster, leader).len(), 2);

    // A single replica decides nothing any more, and commands do not ask for long.
    cluster.kill(alive);
    cluster.until(leader, "alone", |status| !status.quorum).await;
    let why = refused(&cluster, leader, &["member", "remove", &format!("db-{alive}")]);
    assert!(why.contains("quorum"), "{why}");
    assert_eq!(cluster.says(alive, &["member", "list"]).0, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_added_member_is_prepared_and_approves_though_no_other_configuration_names_it() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .newcomer("db-3")
        .workload("database", vec![hook("drain"), hook("restore")])
        .start()
        .await;
    cluster.start(3);
    let waits =
        |status: &Status| status.outside_because.as_ref().is_some_and(|why| why.contains("formed without db-3"));
    let advice = cluster.until(3, "told what to do", waits).await.outside_because.unwrap();
    let address = advice.split("add db-3 ").nth(1).unwrap().trim_end_matches('`').to_owned();
    done(&cluster, 0, &["member", "add", "db-3", &address]);
    let registered = |status: &Status| status.workloads.iter().any(|each| each.vm == "db-3" && each.connected);
    cluster.until(0, "aware of its workload", registered).await;
    cluster.ready().await;
    // Only `db-3` sees the event, an event of its own VM.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 3, "seen_by": [3] })).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.hooks.iter().map(|hook| hook.on.as_str()).collect::<Vec<_>>(), ["db-3"]);
    assert_eq!(event.approvals.iter().map(|each| each.approver.as_str()).collect::<Vec<_>>(), ["db-3"]);
    cluster.cloud.finish(&id).await;
    cluster.until_stage(0, &id, "closed").await;
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removed_replica_does_not_count_as_lost_in_the_budget() {
    // If a leader lost leadership for a moment on a loaded machine, the dead replica would get time to report.
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .also("cluster.election_timeout", "2s")
        .workload("database", vec![hook("drain"), hook("restore")])
        .start()
        .await;
    let leader = cluster.leader(0).await;
    let (dead, affected) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.kill(dead);
    let silent = |status: &Status| status.replicas.iter().any(|replica| !replica.reachable);
    cluster.until(leader, "aware of the silence", silent).await;
    let counts = |status: &Status| status.members.iter().any(|member| member.state == "unknown");
    cluster.until(leader, "counting the silent one as out", counts).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    let waits = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "budget");
    cluster.until_event(leader, &id, "held by the budget", waits).await;
    done(&cluster, affected, &["member", "remove", &format!("db-{dead}")]);
    cluster.until_stage(leader, &id, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn those_who_stay_poll_as_far_apart_as_they_can_also_after_a_restart() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).also("metadata.poll_interval", "1s").start().await;
    cluster.ready().await;
    let apart = async |cluster: &Cluster, a, b, wanted: i64| {
        let holds = async || (cluster.cloud.polls_apart(a, b).await - wanted).abs() < 80;
        cluster.until_true("polls at even distances", holds).await;
    };
    apart(&cluster, "db-1", "db-0", 333).await;
    apart(&cluster, "db-2", "db-0", 667).await;
    done(&cluster, 0, &["member", "remove", "db-1"]);
    apart(&cluster, "db-2", "db-0", 500).await;
    cluster.kill(2);
    cluster.start(2);
    cluster.a_few_polls_later().await;
    cluster.a_few_polls_later().await;
    apart(&cluster, "db-2", "db-0", 500).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_is_not_given_to_a_replica_that_was_well_when_somebody_led_before_and_is_dead() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    cluster.ready().await;
    for heir in ["db-2", "db-0", "db-1"] {
        if cluster.leader(0).await != cluster.place_of(heir) {
            done(&cluster, 0, &["leader", "transfer", heir]);
        }
        cluster.until(0, "led by another", |status| status.leader.as_deref() == Some(heir)).await;
        cluster.ready().await;
    }
    cluster.kill(1);
    // The event takes down the current leader and the only other running replica.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "User", "vms": [0, 2] })).await;
    cluster.until_stage(0, &id, "started").await;
    for place in [0, 2] {
        assert!(!cluster.log(place).contains("leadership not transferred"), "db-{place} tried to");
    }
}
