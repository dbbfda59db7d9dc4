//! Hooks that fail, are blocked, or never end.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::operators::{done, happened, refused, who};
use super::workload::hook;

#[tokio::test]
async fn a_hook_that_fails_and_holds_is_never_overruled_and_the_event_is_put_back_after_its_notice_ran_out() {
    let failing = hook("drain").exits(3, "three clients refuse to go").with("attempts = 1");
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("checkpoint"), failing, hook("shutdown"), hook("restore")])
        .also("policy.margin", "1s")
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "notice": 25_000 })).await;
    let held = cluster
        .until_event(1, &id, "held", |event| {
            event.blocker.as_ref().is_some_and(|blocker| blocker.code == "hook_failed")
        })
        .await;
    let blocker = held.blocker.unwrap();
    assert!(blocker.message.contains("drain hook of database on db-0"), "{}", blocker.message);
    assert!(blocker.message.contains("three clients refuse to go"), "{}", blocker.message);
    let started = cluster.until_stage(0, &id, "started").await;
    let missing = ["drain of database on db-0", "shutdown of database on db-0"];
    assert_eq!(started.missing_hooks, missing);
    let (code, line, _) = cluster.says(0, &["status", "--check"]);
    assert!(code == 2 && line.contains("CRITICAL") && line.contains(missing[0]), "{code}: {line}");
    for command in [&["status"][..], &["explain", &id]] {
        let (_, text, _) = cluster.says(0, command);
        assert!(text.contains("UNPREPARED") && text.contains(missing[0]), "{text}");
    }
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!((event.outcome.as_deref(), event.start_cause.as_deref()), (Some("completed"), Some("notice_expired")));
    assert_eq!(event.missing_hooks, [""; 0]);
    assert_eq!(cluster.hooks.begun(), ["checkpoint", "drain", "restore"]);
    assert_eq!(event.approvals, []);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_hook_runs_again_when_an_operator_has_mended_the_cause() {
    let waits = hook("drain").waits_for("room").with("timeout = \"10s\"").with("attempts = 1");
    let cluster = Cluster::with_hooks(vec![waits, hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let has_failed = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "hook_failed");
    cluster.until_event(1, &id, "failed", has_failed).await;
    // A replica without a leader for a moment offers nothing of this.
    let offers_in_order = async || {
        let (_, offered, _) = cluster.says(1, &["explain", &id]);
        let places = ["allclear retry", "allclear skip", "allclear approve"].map(|command| offered.find(command));
        places.iter().all(Option::is_some) && places.is_sorted()
    };
    cluster.until_true("a retry is offered first, then a skip, then an approval", offers_in_order).await;

    cluster.hooks.open("room");
    done(&cluster, 0, &["hold", &id, "--until", "2h", "--no-hooks", "--reason", "the disk is cleared"]);
    let retry = ["retry", &id[..8], "database/drain", "--reason", "the disk has room"];
    let out = done(&cluster, 2, &retry);
    let only = "db-0/database/drain runs again, only after you release the event, or at the end of the hold";
    assert!(out.contains(only) && out.contains("Azure starts the event before"), "{out}");
    let is_to_come = |event: &Event| event.hooks_to_come == ["drain of database on db-0"];
    cluster.until_event(1, &id, "the drain to come", is_to_come).await;
    // The hold outlasts the notice: the member would go down without its hooks.
    let is_critical = async || {
        let (code, line, _) = cluster.says(1, &["status", "--check"]);
        code == 2 && line.contains("the event is held, and no further hook of it begins")
    };
    cluster.until_true("a critical hold", is_critical).await;
    assert_eq!(cluster.hooks.ended(), [""; 0]);
    done(&cluster, 1, &["release", &id, "--reason", "the disk is clear"]);
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!((event.approvals.len(), event.approvals[0].reason.as_str()), (1, "prepared"));
    assert_eq!(cluster.hooks.ended(), ["drain"]);
    let what = format!("drain of database on db-0 to run again, by {}", who(2));
    assert!(happened(&event, [&what, "the disk has room"]), "{event:#?}");
    let late = refused(&cluster, 1, &retry);
    assert!(late.contains(&id), "{late}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_hook_that_may_fail_does_not_hold_the_event() {
    let failing = hook("drain").exits(3, "no").with("attempts = 2").with("on_failure = \"continue\"");
    let cluster = Cluster::with_hooks(vec![failing, hook("shutdown")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["drain", "drain", "shutdown"]);
    assert_eq!(event.approvals.len(), 1);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_hook_that_never_ends_is_stopped_at_its_deadline() {
    let endless = hook("drain").waits_for("never").with("timeout = \"1s\"").with("attempts = 1");
    let cluster = Cluster::with_hooks(vec![endless, hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    let event =
        cluster.until_event(1, &id, "stopped", |event| event.hooks.iter().any(|hook| hook.outcome.is_some())).await;
    assert_eq!(event.hooks[0].outcome.as_deref(), Some("timed_out"));
    cluster.cloud.cancel(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.outcome.as_deref(), Some("cancelled"));
    assert_eq!(cluster.hooks.ended(), ["restore"]);
}

#[tokio::test]
async fn a_hook_that_is_still_running_when_the_users_patience_ends_is_overruled() {
    let endless = hook("drain").waits_for("never");
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![endless, hook("restore")])
        .also("policy.user_budget", "2s")
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!(event.approvals[0].reason, "budget_spent");
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_restore_that_says_unknown_has_ended_and_is_tried_again_as_one_that_failed() {
    crate::left_out::long!();
    let doubtful = hook("restore").exits(13, "nobody can tell").with("attempts = 2");
    let cluster = Cluster::with_hooks(vec![hook("drain"), doubtful]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    // The restore is owed, regardless of the number of tries and of `attempts`.
    cluster.until_true("three restores", async || cluster.hooks.begun().len() >= 4).await;
    let owed = |status: &Status| {
        let mut members = status.members.iter().filter(|member| member.vm == "db-0");
        members.any(|member| {
            member.state == "returning" && member.owed.as_ref().is_some_and(|it| it.contains("nobody can tell"))
        })
    };
    cluster.until(1, "owing a restore", owed).await;
    done(&cluster, 1, &["workload", "restored", "db-0/database", "--reason", "it was started by hand"]);
    let event = cluster.closed_everywhere(&id).await;
    let outcomes: Vec<_> = event.hooks.iter().filter_map(|hook| hook.outcome.as_deref()).collect();
    assert_eq!(outcomes[..3], ["done", "unknown", "unknown"]);
}

#[tokio::test]
async fn what_an_event_that_is_cancelled_interrupts_is_taken_back_and_then_restored() {
    let endless = hook("drain").waits_for("never").can_undo();
    let cluster = Cluster::with_hooks(vec![hook("checkpoint").can_undo(), endless, hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["checkpoint", "drain"]).await;
    cluster.cloud.cancel(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.outcome.as_deref(), Some("cancelled"));
    assert_eq!(cluster.hooks.asked(), ["run checkpoint", "run drain", "undo drain", "run restore"]);
}

#[tokio::test]
async fn a_failover_that_failed_is_taken_back_while_the_event_is_held() {
    let failing = hook("failover").exits(3, "the candidate did not come up").with("attempts = 1").can_undo();
    let cluster = Cluster::with_hooks(vec![failing, hook("drain"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    let taken_back = |event: &allclear::wire::pb::allclear::operator::v1::Event| {
        let is_held = event.blocker.as_ref().is_some_and(|blocker| blocker.code == "hook_failed");
        is_held && event.hooks.len() == 2 && event.hooks.iter().all(|hook| hook.outcome.is_some())
    };
    let event = cluster.until_event(1, &id, "taken back", taken_back).await;
    assert_eq!(cluster.hooks.asked(), ["run failover", "undo failover"]);
    let undone = |what: &str| what.ends_with("undo: done");
    assert!(event.timeline.iter().any(|step| undone(&step.what)), "{:#?}", event.timeline);
    cluster.cloud.cancel(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.hooks.asked(), ["run failover", "undo failover", "run restore"]);
}

#[tokio::test]
async fn every_hook_that_holds_an_event_is_told() {
    let patient = |says| hook("drain").exits(75, says);
    let cluster = Cluster::of(&["db-0"])
        .workload("database", vec![patient("a backup is being made")])
        .workload("cache", vec![patient("it is still warming up")])
        .workload("queue", vec![hook("drain").exits(3, "no").with("attempts = 1")])
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 0 })).await;
    let all =
        ["database on db-0 is blocked: a backup is being made", "it is still warming up", "queue on db-0 failed: no"];
    let tells_all = |event: &Event| {
        let told: Vec<_> = event.blocker.iter().chain(&event.other_blockers).map(|blocker| &blocker.message).collect();
        all.iter().all(|each| told.iter().any(|message| message.contains(each)))
    };
    let event = cluster.until_event(0, &id, "held by all three", tells_all).await;
    assert_eq!(event.blocker.unwrap().code, "hook_failed", "what does not mend itself comes first");
    let (_, shown, _) = cluster.says(0, &["status"]);
    assert!(shown.contains(all[1]), "{shown}");
    done(&cluster, 0, &["hold", &id, "--until", "1h", "--reason", "hands off"]);
    let (_, shown, _) = cluster.says(0, &["explain", &id]);
    assert!(shown.contains("NOT APPROVED YET  (hook_failed)") && shown.contains("hands off"), "{shown}");
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}
