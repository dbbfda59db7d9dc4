//! Replicas that are killed, frozen or all gone, in the middle of an event.

use std::time::{Duration, Instant};

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use nix::sys::signal::Signal;
use serde_json::json;

use super::cluster::{Cluster, signal_process};
use super::dialled::{Dialled, done, knows};
use super::sessions::{database, outcomes};
use super::workload::hook;

#[tokio::test]
async fn a_hook_goes_on_when_the_leader_and_its_own_replica_are_killed_and_one_approval_is_given() {
    let mut cluster =
        Cluster::with_hooks(vec![hook("checkpoint"), hook("drain").waits_for("gate"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    let began = Instant::now();
    cluster.kill(leader);
    let led_by_another =
        |status: &Status| status.quorum && status.leader.as_ref().is_some_and(|name| *name != format!("db-{leader}"));
    cluster.until(other, "led by another", led_by_another).await;
    println!("a new leader after {:?}", began.elapsed());
    cluster.start(leader);
    cluster.ready().await;
    cluster.kill(affected);
    cluster.start(affected);
    cluster.ready().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0, "approved while a hook ran");
    cluster.hooks.open("gate");
    cluster.until_stage(other, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain", "restore"], "a hook ran twice");
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_leader_whose_own_vm_is_to_go_hands_over_before_it_prepares() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": leader })).await;
    let other = (leader + 1) % 3;
    let own_vm_is_safe = |status: &Status| status.leader.as_ref().is_some_and(|name| *name != format!("db-{leader}"));
    cluster.until(other, "led by one that stays", own_vm_is_safe).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    cluster.seen_by_all(&id).await;
    cluster.hooks.open("gate");
    let event = cluster.until_stage(other, &id, "started").await;
    assert_ne!(event.approvals[0].approver, format!("db-{leader}"));
    assert_ne!(cluster.leader(other).await, leader);
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn settled_hooks_do_not_run_again_when_all_replicas_are_killed_and_started_again() {
    let mut cluster =
        Cluster::with_hooks(vec![hook("checkpoint"), hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 1 })).await;
    let settled = |event: &Event| event.hooks.len() == 2 && event.hooks[0].outcome.as_deref() == Some("done");
    cluster.until_event(0, &id, "half prepared", settled).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    for place in 0..3 {
        cluster.kill(place);
    }
    cluster.hooks.open("gate");
    for place in 0..3 {
        cluster.start(place);
    }
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain", "restore"], "a hook ran twice");
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_leader_that_was_frozen_posts_nothing_new() {
    crate::left_out::long!();
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    // The leader has everything ready for the approval, but is frozen.
    cluster.freeze(leader);
    cluster.hooks.open("gate");
    let event = cluster.until_stage(other, &id, "started").await;
    assert_ne!(event.approvals.last().unwrap().approver, format!("db-{leader}"));
    cluster.thaw(leader);
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn an_affected_machine_that_hangs_is_not_waited_for_when_a_user_reboots_it() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("drain"), hook("restore")])
        .also("cluster.takeover_after", "3s")
        .start()
        .await;
    let affected = (cluster.leader(0).await + 1) % 3;
    cluster.freeze(affected);
    let other = (affected + 1) % 3;
    cluster
        .until(other, "aware of the silence", |status| status.replicas.iter().any(|replica| !replica.reachable))
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    let event = cluster.until_stage(other, &id, "started").await;
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(cluster.hooks.begun(), [""; 0]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    cluster.thaw(affected);
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
}

#[tokio::test]
async fn a_replica_that_answers_again_after_the_approval_begins_no_failover_of_the_event() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("failover"), hook("restore")])
        .also("cluster.takeover_after", "3s")
        .start()
        .await;
    let affected = (cluster.leader(0).await + 1) % 3;
    let other = (affected + 1) % 3;
    // The hook is assigned to the replica before its silence is known.
    cluster.freeze(affected);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    let event = cluster.until_stage(other, &id, "started").await;
    assert_eq!(outcomes(&event), [("failover", "run", None)], "the hook has to be assigned: {event:#?}");
    cluster.thaw(affected);
    let is_settled = |event: &Event| !event.hooks.is_empty() && event.hooks.iter().all(|hook| hook.outcome.is_some());
    let event = cluster.until_event(affected, &id, "without an open hook", is_settled).await;
    assert_eq!(outcomes(&event), [("failover", "run", Some("cancelled"))]);
    assert_eq!(cluster.hooks.begun(), [""; 0]);
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
}

#[tokio::test]
async fn a_failover_of_a_session_goes_on_when_its_replica_is_back_after_the_start_of_the_event() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).also("cluster.takeover_after", "3s").start().await;
    let affected = (cluster.leader(0).await + 1) % 3;
    let hooks = [pb::Phase::Failover, pb::Phase::Restore];
    let mut first = Dialled::at(&cluster.door(affected), database(&hooks)).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    let step = first.step().await;
    cluster.kill(affected);
    cluster.until_stage((affected + 1) % 3, &id, "started").await;
    cluster.start(affected);
    let known = knows(&step.attempt, None);
    let mut second = Dialled::at(&cluster.door(affected), pb::Hello { known, ..database(&hooks) }).await;
    let told = second.next().await.unwrap();
    assert!(matches!(&told, Told::Deadline(reminder) if reminder.attempt == step.attempt), "{told:?}");
    second.ends(&step.attempt, done()).await;
    second.acknowledged(&step.attempt).await;
    let has_outcome = |event: &Event| event.hooks.iter().all(|hook| hook.outcome.is_some());
    let event = cluster.until_event((affected + 1) % 3, &id, "with the outcome", has_outcome).await;
    assert_eq!(outcomes(&event), [("failover", "run", Some("done"))]);
}

#[tokio::test]
async fn a_leader_that_hears_nobody_posts_nothing_and_starts_no_hook() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("checkpoint"), hook("drain").waits_for("gate"), hook("shutdown")])
        .also("metadata.stall_after", "2s")
        .start()
        .await;
    let leader = cluster.leader(0).await;
    // The other replicas get empty documents, so that the leader would not transfer leadership to these replicas.
    for other in [(leader + 1) % 3, (leader + 2) % 3] {
        let vm = format!("db-{other}");
        cluster.cloud.fault(json!({ "vm": vm, "fault": { "kind": "empty" }, "on": "get" })).await;
    }
    let sees_alone = |status: &Status| status.replicas.iter().filter(|each| each.metadata == "stalled").count() == 2;
    cluster.until(leader, "the only one that sees", sees_alone).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    let others = [(leader + 1) % 3, (leader + 2) % 3];
    for other in others {
        cluster.freeze(other);
    }
    cluster.hooks.open("gate");
    cluster.until(leader, "aware of it", |status| !status.quorum).await;
    cluster.until_true("the drain's end", async || cluster.hooks.ended() == ["checkpoint", "drain"]).await;
    let before = cluster.cloud.polls(&format!("db-{leader}")).await;
    cluster.until_true("more polls", async || cluster.cloud.polls(&format!("db-{leader}")).await >= before + 3).await;
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain"]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    for other in others {
        cluster.thaw(other);
    }
    cluster.until_stage(others[0], &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["checkpoint", "drain", "shutdown"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

/// The replica that is named first as approver of an event. All other replicas have the event in their documents, too.
async fn claimed_by(cluster: &Cluster, asked: usize, id: &str) -> usize {
    let named = |event: &Event| !event.approvals.is_empty();
    let event = cluster.until_event(asked, id, "claimed", named).await;
    cluster.place_of(&event.approvals[0].approver)
}

#[tokio::test]
async fn an_approver_that_is_cut_off_between_its_claim_and_its_post_posts_nothing() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let leader = cluster.leader(0).await;
    let affected = (leader + 1) % 3;
    let others = [affected, (leader + 2) % 3];
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    // The approver's fresh document is slow, and the approver loses all other replicas meanwhile.
    let slow = json!({ "kind": "slow", "ms": 2500 });
    cluster.cloud.fault(json!({ "vm": format!("db-{leader}"), "fault": slow, "on": "get" })).await;
    cluster.hooks.open("gate");
    assert_eq!(claimed_by(&cluster, leader, &id).await, leader);
    for other in others {
        cluster.freeze(other);
    }
    cluster.until(leader, "alone", |status| !status.quorum).await;
    let before = cluster.cloud.polls(&format!("db-{leader}")).await;
    cluster.until_true("its next poll", async || cluster.cloud.polls(&format!("db-{leader}")).await > before).await;
    assert_eq!(cluster.cloud.posts().await.len(), 0, "it posted what it could not confirm");
    cluster.cloud.clear_faults().await;
    for other in others {
        cluster.thaw(other);
    }
    cluster.until_stage(others[0], &id, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn an_approver_whose_claim_has_lapsed_leaves_the_post_to_the_next() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("drain").waits_for("gate")])
        .also("cluster.claim_lease", "1s")
        .start()
        .await;
    let leader = cluster.leader(0).await;
    // The event stays Scheduled for a while, so that nothing would stop a second post.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": (leader + 1) % 3, "start_delay": 8000 })).await;
    cluster.seen_by_all(&id).await;
    let slow = json!({ "kind": "slow", "ms": 2500 });
    cluster.cloud.fault(json!({ "vm": format!("db-{leader}"), "fault": slow, "on": "get" })).await;
    cluster.hooks.open("gate");
    assert_eq!(claimed_by(&cluster, leader, &id).await, leader);
    let event = cluster.until_approved(leader, &id).await;
    // On a busy machine the claim of the next may lapse, too.
    assert_ne!(event.approvals[1].approver, format!("db-{leader}"));
    cluster.until_stage(leader, &id, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn an_approver_that_is_killed_after_its_post_does_not_repeat_it_by_itself() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    // The answer takes long, and the approver is killed before the answer arrives.
    cluster.cloud.fault(json!({ "fault": { "kind": "slow", "ms": 3000 }, "on": "post", "times": 1 })).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "start_delay": 1500 })).await;
    let approver = claimed_by(&cluster, 0, &id).await;
    cluster.until_true("its post", async || cluster.cloud.posts().await.len() == 1).await;
    cluster.kill(approver);
    cluster.start(approver);
    cluster.until_stage((approver + 1) % 3, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    // A claim is withdrawn when the event is observed as started before the claim's post.
    let posted = event.approvals.iter().filter(|approval| approval.outcome.as_deref() != Some("withdrawn")).count();
    assert_eq!(cluster.cloud.posts().await.len(), posted, "each post is on record");
    assert!(cluster.cloud.posts().await.len() <= 2);
}

#[tokio::test]
async fn a_hook_that_ended_while_all_replicas_were_down_has_not_vanished() {
    let mut cluster = Cluster::with_hooks(vec![
        hook("failover").waits_for("gate").with("timeout = \"2s\"").with("attempts = 1"),
        hook("restore"),
    ])
    .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.until_event(0, &id, "failing over", |event| event.hooks.len() == 1).await;
    cluster.until_true("the failover", async || cluster.hooks.begun() == ["failover"]).await;
    for place in 0..3 {
        cluster.kill(place);
    }
    let killed = Instant::now();
    cluster.hooks.open("gate");
    cluster.until_true("its end", async || cluster.hooks.ended() == ["failover"]).await;
    // Longer than any replica would have waited for the hook.
    cluster.until_true("its deadline", async || killed.elapsed() > Duration::from_secs(9)).await;
    for place in 0..3 {
        cluster.start(place);
    }
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.hooks[0].outcome.as_deref(), Some("done"));
    assert_eq!(cluster.hooks.begun(), ["failover"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_leader_that_is_stopped_hands_over_and_an_approver_finishes_its_post() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    let leader = cluster.leader(0).await;
    let other = (leader + 1) % 3;
    cluster.cloud.fault(json!({ "fault": { "kind": "slow", "ms": 1500 }, "on": "post" })).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": other })).await;
    let approver = claimed_by(&cluster, other, &id).await;
    cluster.until_true("its post", async || cluster.cloud.posts().await.len() == 1).await;
    let (took, status) = cluster.stop(approver);
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    cluster.start(approver);
    cluster.ready().await;
    let leader = cluster.leader(0).await;
    let (took, status) = cluster.stop(leader);
    assert!(status.success(), "{status}");
    assert!(took < Duration::from_secs(5), "{took:?}");
    cluster.start(leader);
    cluster.until_stage(other, &id, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_hook_that_does_not_die_is_not_started_beside_itself() {
    // The supervisor has to stop before it can end the hook itself.
    let stubborn = hook("drain").waits_for("gate").with("timeout = \"10s\"").with("attempts = 3");
    let cluster = Cluster::with_hooks(vec![stubborn, hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let supervisors = cluster.supervisors();
    assert_eq!(supervisors.len(), 1, "{supervisors:?}");
    for supervisor in &supervisors {
        signal_process(*supervisor, Signal::SIGSTOP);
    }
    let expired = |event: &Event| event.hooks.len() > 1;
    let event = cluster.until_event(0, &id, "tried again", expired).await;
    assert_eq!(event.hooks[0].outcome.as_deref(), Some("unknown"));
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.hooks.begun(), ["drain"], "it ran beside itself");
    for supervisor in supervisors {
        signal_process(supervisor, Signal::SIGCONT);
    }
    cluster.until_true("its next turn", async || cluster.hooks.begun().len() > 1).await;
}
