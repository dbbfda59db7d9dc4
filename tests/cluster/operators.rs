//! Commands of operators, sent to any replica: holds, pauses, approvals and skipped hooks.

use std::io::Write as _;
use std::process::{Command, Stdio};

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::{Value, json};

use super::cluster::{Cluster, OPERATOR};
use super::workload::hook;

const ALL: [&str; 3] = ["db-0", "db-1", "db-2"];

/// Leadership may be transferred during a command; after an unclear outcome an operator checks, and sends the command
/// again.
fn ask(cluster: &Cluster, place: usize, arguments: &[&str]) -> (i32, String, String) {
    let mut said = cluster.says(place, arguments);
    for _ in 0..10 {
        if said.0 != 1 {
            break;
        }
        said = cluster.says(place, arguments);
    }
    said
}

pub(crate) fn done(cluster: &Cluster, place: usize, arguments: &[&str]) -> String {
    let (code, out, err) = ask(cluster, place, arguments);
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}: {out}");
    out
}

pub(crate) fn refused(cluster: &Cluster, place: usize, arguments: &[&str]) -> String {
    let (code, out, err) = ask(cluster, place, arguments);
    assert_eq!((code, out.as_str()), (4, ""), "{arguments:?}: {err}");
    err
}

/// The timeline's name for the caller of a replica.
pub(crate) fn who(place: usize) -> String {
    format!("{OPERATOR} (uid {}) on db-{place}", nix::unistd::geteuid())
}

pub(crate) fn waits_for(event: &Event, code: &str) -> bool {
    event.blocker.as_ref().is_some_and(|blocker| blocker.code == code)
}

pub(crate) fn happened(event: &Event, parts: [&str; 2]) -> bool {
    event.timeline.iter().any(|step| parts.iter().all(|part| step.what.contains(part)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_event_is_prepared_and_approved_only_when_it_is_released() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let leader = cluster.leader(0).await;
    let (follower, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let why = "the backup has to end first";
    let out = done(&cluster, follower, &["hold", &id, "--until", "1h", "--reason", why]);
    assert!(out.contains("is held until"), "{out}");
    cluster.hooks.open("gate");
    for place in 0..3 {
        let is_known = |event: &Event| event.hold.as_ref().is_some_and(|hold| hold.unacknowledged_by.is_empty());
        let is_done = |event: &Event| event.hooks[0].outcome.as_deref() == Some("done");
        let held = |event: &Event| waits_for(event, "hold") && is_known(event) && is_done(event);
        let event = cluster.until_event(place, &id, "held", held).await;
        let blocker = event.blocker.unwrap();
        assert!(blocker.message.contains(why) && blocker.message.contains(&who(follower)), "{}", blocker.message);
        assert_eq!(blocker.until, event.not_before, "the hold lasts longer, and cannot keep the platform from it");
    }
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0);

    let out = done(&cluster, other, &["release", &id, "--reason", "it has ended"]);
    assert!(out.contains("released"), "{out}");
    cluster.until_stage(follower, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert!(happened(&event, [&format!("held by {}", who(follower)), why]), "{event:#?}");
    assert!(happened(&event, [&format!("released by {}", who(other)), "it has ended"]), "{event:#?}");
    assert_eq!((event.approvals.len(), event.approvals[0].reason.as_str()), (1, "prepared"));
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    let (_, out, _) = cluster.says(0, &["explain", &id]);
    assert!(out.contains(why) && out.contains("it has ended"), "{out}");
    let closed = refused(&cluster, 0, &["hold", &id, "--until", "1h", "--reason", "too late"]);
    assert!(closed.contains("is closed"), "{closed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_ends_by_itself() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.until_stage(1, &id, "preparing").await;
    let out = done(&cluster, 1, &["hold", &id, "--until", "8s", "--reason", "let me look", "--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    cluster.hooks.open("gate");
    let event = cluster.until_stage(2, &id, "started").await;
    let until = told["hold"]["until"].as_str().unwrap();
    assert!(event.approvals[0].claimed_at.as_str() >= until, "held until {until}: {event:#?}");
    assert_eq!(event.hold, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_approvals_are_paused_nothing_is_approved_by_anybody() {
    let cluster = Cluster::with_hooks(vec![hook("drain"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let follower = (leader + 1) % 3;
    let out = done(&cluster, follower, &["pause", "--until", "1h", "--reason", "the network is rebuilt", "--json"]);
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["pause"]["by"], &told["too_late_for"]), (&json!(who(follower)), &json!([])));
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    for place in 0..3 {
        cluster.until_event(place, &id, "paused", |event: &Event| waits_for(event, "paused")).await;
        let status: Value = serde_json::from_str(&cluster.page(place, "/v1/status").await.1).unwrap();
        let paused = (&status["paused"]["by"], &status["paused"]["reason"]);
        assert_eq!(paused, (&json!(who(follower)), &json!("the network is rebuilt")));
        assert!(status["paused"]["until"].is_string(), "{status}");
    }
    cluster.a_few_polls_later().await;
    assert_eq!((cluster.hooks.begun().len(), cluster.cloud.posts().await.len()), (0, 0), "nobody is taken away");
    let revision = cluster.event(0, &id).await.unwrap().revision.to_string();
    let asked = ["approve", &id, "--revision", &revision, "--reason", "it cannot wait"];
    let why = refused(&cluster, 0, &asked);
    assert!(why.contains("approvals are paused") && why.contains("the network is rebuilt"), "{why}");

    assert!(cluster.page(0, "/v1/status").await.1.contains("the network is rebuilt"));
    done(&cluster, 0, &["resume", "--reason", "the network is back"]);
    let status: Value = serde_json::from_str(&cluster.page(0, "/v1/status").await.1).unwrap();
    assert_eq!(status["paused"], Value::Null);
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert!(happened(&event, ["all approvals paused by", "the network is rebuilt"]), "{event:#?}");
    assert!(happened(&event, ["approvals resumed by", "the network is back"]), "{event:#?}");
    assert_eq!(cluster.status(2).await.unwrap().paused, None);
    let none = refused(&cluster, 2, &["resume", "--reason", "once more"]);
    assert!(none.contains("no pause is in force"), "{none}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_approves_what_they_have_seen_though_a_hook_hangs() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("never"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0 })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let is_running = |event: &Event| !event.hooks.is_empty();
    let revision = cluster.until_event(1, &id, "with its hook", is_running).await.revision;
    let current = format!("revision {revision} now");
    for stale in [&["approve", &id, "--reason", "why"][..], &["approve", &id, "--reason", "why", "--revision", "1"]] {
        let why = refused(&cluster, 1, stale);
        assert!(why.contains(&current), "{why}");
    }
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    let revision = revision.to_string();
    let why = "the customer agreed";
    let out = done(&cluster, 1, &["approve", &id, "--revision", &revision, "--reason", why]);
    assert!(out.contains("approved"), "{out}");
    cluster.until_stage(2, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.hooks[0].outcome.as_deref(), Some("cancelled"), "{event:#?}");
    assert_eq!((event.approvals.len(), event.approvals[0].reason.as_str()), (1, "operator"));
    assert!(happened(&event, [&format!("approved by {} as of revision {revision}", who(1)), why]), "{event:#?}");
    assert_eq!(cluster.hooks.ended(), ["restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

/// Runs a command at a terminal, and gives this answer.
pub(crate) fn at_a_terminal(cluster: &Cluster, place: usize, command: &str, answer: &str) -> (Option<i32>, String) {
    let line =
        format!("{} {command} --endpoint {}", env!("CARGO_BIN_EXE_allclear"), cluster.replicas[place].socket.display());
    let mut script = Command::new("script");
    let script = script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env("LOGNAME", OPERATOR);
    let mut script = script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    writeln!(script.stdin.take().unwrap(), "{answer}").unwrap();
    let output = script.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn at_a_terminal_an_approval_says_what_it_skips_and_asks() {
    let cluster = Cluster::of(&ALL)
        .workload("database", vec![hook("drain").exits(3, "no room").with("attempts = 1"), hook("restore")])
        .with_primary("db-0")
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_event(1, &id, "failed", |event| waits_for(event, "hook_failed")).await;
    let command = format!("approve {id} --reason accepted");
    let (code, said) = at_a_terminal(&cluster, 1, &command, "n");
    for part in ["no room", "skips what is left of: db-0/database/drain", "db-0 holds the primary of databases"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(code == Some(1) && said.contains("nothing is approved"), "{said}");
    assert_eq!(cluster.cloud.posts().await.len(), 0);
    let (code, said) = at_a_terminal(&cluster, 1, &command, "y");
    assert_eq!(code, Some(0), "{said}");
    let event = cluster.until_stage(2, &id, "started").await;
    assert_eq!((event.approvals.len(), event.approvals[0].reason.as_str()), (1, "operator"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_is_skipped_is_stopped_and_not_waited_for() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("never"), hook("shutdown"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vms": ["db-0", "db-1"] })).await;
    cluster.until_true("both drains", async || cluster.hooks.begun() == ["drain", "drain"]).await;
    let skip = |hook: &'static str| ["skip", id.as_str(), hook, "--reason", "the clients are gone"];
    let unclear = refused(&cluster, 2, &skip("database/drain"));
    assert!(unclear.contains("db-0/database/drain, db-1/database/drain"), "{unclear}");
    let unknown = refused(&cluster, 2, &skip("database/failover"));
    assert!(unknown.contains("needs no hook") && unknown.contains("db-1/database/shutdown"), "{unknown}");
    let owed = refused(&cluster, 2, &skip("db-0/database/restore"));
    assert!(owed.contains("needs no hook"), "before the return: {owed}");
    for name in ["db-0/database/drain", "db-1/database/drain"] {
        let out = done(&cluster, 2, &skip(name));
        assert!(out.contains(&format!("skipped {name}")), "{out}");
    }
    let event = cluster.until_stage(0, &id, "started").await;
    assert!(happened(&event, [&format!("skipped by {}", who(2)), "the clients are gone"]), "{event:#?}");
    assert_eq!(event.approvals[0].reason, "prepared");
    let cancelled = |event: &Event| {
        event.hooks.iter().filter(|hook| hook.phase == "drain").all(|hook| hook.outcome.as_deref() == Some("cancelled"))
    };
    cluster.until_event(0, &id, "without running drains", cancelled).await;
    assert_eq!(cluster.hooks.ended(), ["shutdown", "shutdown"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_approved_already_is_not_held_and_a_pause_says_so() {
    let cluster = Cluster::of(&ALL).start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "start_delay": 3_600_000 })).await;
    cluster.until_approved(1, &id).await;
    let late = refused(&cluster, 1, &["hold", &id, "--until", "1h", "--reason", "too late"]);
    assert!(late.contains("is approved already: an approval cannot be withdrawn"), "{late}");
    let out = done(&cluster, 1, &["pause", "--until", "1h", "--reason", "nothing more today"]);
    assert!(out.contains(&format!("too late for {id}")), "{out}");
    let (code, _, err) = cluster.says(1, &["hold", "nobody-knows", "--until", "1h", "--reason", "which?"]);
    assert_eq!(code, 1);
    assert!(err.contains("nobody-knows"), "{err}");
    let endless = refused(&cluster, 1, &["pause", "--until", "31d", "--reason", "for ever"]);
    assert!(endless.contains("30 days"), "{endless}");
    let (code, _, err) = cluster.says(1, &["pause", "--until", "soon", "--reason", "when?"]);
    assert_eq!(code, 2, "{err}");
    let empty = refused(&cluster, 1, &["pause", "--until", "1h", "--reason", " "]);
    assert!(empty.contains("the reason is missing"), "{empty}");
}

#[tokio::test(flavor = "multi_thread")]
async fn voters_that_have_not_acknowledged_a_pause_are_named_until_they_have() {
    let cluster = Cluster::of(&ALL).start().await;
    let leader = cluster.leader(0).await;
    let (frozen, asked) = ((leader + 1) % 3, (leader + 2) % 3);
    cluster.freeze(frozen);
    let out = done(&cluster, asked, &["pause", "--until", "1h", "--reason", "who hears me?"]);
    let name = format!("db-{frozen}");
    let said = out.lines().find(|line| line.starts_with("not acknowledged yet by"));
    assert_eq!(said, Some(&*format!("not acknowledged yet by {name}")), "of three, none approves by itself: {out}");
    let names = |status: &allclear::wire::pb::allclear::operator::v1::Status| {
        status.paused.as_ref().map(|paused| paused.unacknowledged_by.clone())
    };
    for place in [leader, asked] {
        let only = Some(vec![name.clone()]);
        cluster.until(place, "paused, but for one", |status| names(status) == only).await;
    }
    cluster.thaw(frozen);
    for place in 0..3 {
        cluster.until(place, "paused for everybody", |status| names(status) == Some(Vec::new())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_pair_the_secondary_approves_nothing_that_is_held_before_the_hold_ends() {
    crate::left_out::long!();
    let mut cluster = Cluster::of(&["db-0", "db-1"]).also("cluster.takeover_after", "2s").start().await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    done(&cluster, leader, &["pause", "--until", "1h", "--reason", "so that there is time to hold it"]);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    cluster.until_event(leader, &id, "paused", |event| waits_for(event, "paused")).await;
    done(&cluster, leader, &["hold", &id, "--until", "25s", "--reason", "wait for the backup"]);
    done(&cluster, secondary, &["resume", "--reason", "it is held"]);
    let is_known = |event: &Event| event.hold.as_ref().is_some_and(|hold| hold.unacknowledged_by.is_empty());
    let held = |event: &Event| waits_for(event, "hold") && is_known(event);
    let held = cluster.until_event(secondary, &id, "held", held).await;
    let until = held.hold.unwrap().until;
    cluster.kill(leader);
    let refuses = |event: &Event| {
        let said = event.blocker.as_ref().filter(|blocker| blocker.code == "no_quorum");
        said.is_some_and(|said| {
            said.message.contains("the event is held by") && said.message.contains("wait for the backup")
        })
    };
    let event = cluster.until_event(secondary, &id, "left alone", refuses).await;
    assert_eq!(event.blocker.unwrap().until.as_ref(), Some(&until));
    let event = cluster.until_approved(secondary, &id).await;
    let approval = &event.approvals[0];
    assert_eq!(approval.reason, "takeover");
    assert!(approval.claimed_at >= until, "held until {until}: {event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_operators_are_refused_with_the_reason() {
    let mut cluster = Cluster::with_hooks(vec![hook("drain").waits_for("never")]).await;
    // An event of a follower, so that leadership stays: during a transfer there is briefly no quorum either.
    let leader = cluster.leader(0).await;
    let alone = (leader + 1) % 3;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": alone })).await;
    cluster.until_stage(alone, &id, "preparing").await;
    cluster.kill(leader);
    cluster.kill((leader + 2) % 3);
    let event = cluster.until_event(alone, &id, "alone", |event| waits_for(event, "no_quorum")).await;
    let revision = event.revision.to_string();
    let asked: [&[&str]; 3] = [
        &["approve", &id, "--revision", &revision, "--reason", "now"],
        &["hold", &id, "--until", "1h", "--reason", "not now"],
        &["resume", "--reason", "go on"],
    ];
    for arguments in asked {
        let why = refused(&cluster, alone, arguments);
        assert!(why.contains("too few replicas reach each other"), "{why}");
    }
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_moved_leadership_and_why_is_in_the_timeline() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 2 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let leader = cluster.leader(2).await;
    let heir = format!("db-{}", i32::from(leader == 0));
    for unknown in [["leader", "transfer", "db-9"], ["member", "remove", "db-9"]] {
        refused(&cluster, 2, &unknown);
    }
    done(&cluster, 2, &["leader", "transfer", &heir, "--reason", "its disk is slow"]);
    let moved = format!("{} requested: transfer of leadership to {heir}", who(2));
    let is_told = |event: &Event| happened(event, [&moved, "its disk is slow"]);
    let event = cluster.until_event(2, &id, "with the transfer", is_told).await;
    assert!(!happened(&event, ["requested", "db-9"]), "nothing was changed: {event:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_with_days_of_notice_is_prepared_when_an_operator_wants_it() {
    let cluster = Cluster::with_hooks(vec![hook("failover"), hook("drain"), hook("restore")]).await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 0, "notice": "72h" });
    let id = cluster.cloud.announce(order).await;
    cluster.until_event(1, &id, "put off", |event| waits_for(event, "too_early")).await;
    let (_, offered, _) = cluster.says(1, &["explain", &id]);
    let place = |command: &str| offered.find(command).unwrap_or_else(|| panic!("{command}: {offered}"));
    assert!(place("allclear prepare") < place("allclear approve"), "{offered}");
    let late = refused(&cluster, 1, &["prepare", &id, "--at", "72h", "--reason", "why"]);
    assert!(late.contains("on without this command"), "{late}");
    done(&cluster, 1, &["prepare", &id, "--at", "24h", "--reason", "the quiet hour"]);
    let event = cluster.until_event(2, &id, "still put off", |event| waits_for(event, "too_early")).await;
    assert_eq!(event.hooks_to_come, ["failover of database on db-0", "drain of database on db-0"]);
    let in_a_day = |event: &Event| {
        event.blocker.as_ref().is_some_and(|it| it.message.contains("wants the preparation to start at"))
    };
    assert!(in_a_day(&event) && cluster.hooks.begun() == [""; 0], "{event:#?}");

    let out = done(&cluster, 2, &["hold", &id, "--until", "1h", "--reason", "not tomorrow"]);
    assert!(out.contains(&format!("taken back by this hold: the early preparation that {}", who(1))), "{out}");
    done(&cluster, 2, &["release", &id, "--reason", "today"]);
    let out = done(&cluster, 1, &["prepare", &id[..8], "--reason", "nobody works now"]);
    assert!(out.contains("the preparation starts early"), "{out}");
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.ended(), ["failover", "drain"]);
    assert_eq!((event.approvals.len(), event.approvals[0].reason.as_str()), (1, "prepared"));
    assert!(happened(&event, [&format!("on, by {}", who(1)), "nobody works now"]), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
