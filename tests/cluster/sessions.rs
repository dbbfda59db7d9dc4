//! Workloads that connect, disconnect and reconnect, in the middle of an event.

use allclear::core::model::state::WORKLOAD_LIMIT;
use allclear::wire::pb::allclear::operator::v1::{Event, Status, Workload};
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::{Checkpoint, Drain, Failover, Restore};
use allclear::wire::pb::allclear::workload::v1::outcome::Variant;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use serde_json::json;
use tonic::Code;

use super::cluster::Cluster;
use super::dialled::{Dialled, client, done, hello, hook, knows};
use super::workload;

const ALONE: &[&str] = &["db-0"];

pub(crate) fn database(hooks: &[pb::Phase]) -> pb::Hello {
    hello("database", hooks.iter().copied().map(hook).collect())
}

pub(crate) fn reboot() -> serde_json::Value {
    json!({ "type": "Reboot", "vm": 0 })
}

/// A single replica, and a workload that has received its only step.
pub(crate) async fn in_the_middle(mut hello: pb::Hello) -> (Cluster, String, Dialled, pb::Step) {
    hello.lease_ms.get_or_insert(3_000);
    let cluster = Cluster::of(ALONE).start().await;
    let mut database = Dialled::at(&cluster.door(0), hello).await;
    let id = cluster.cloud.announce(reboot()).await;
    let step = database.step().await;
    (cluster, id, database, step)
}

pub(crate) fn outcomes(event: &Event) -> Vec<(&str, &str, Option<&str>)> {
    event.hooks.iter().map(|hook| (hook.phase.as_str(), hook.intent.as_str(), hook.outcome.as_deref())).collect()
}

#[tokio::test]
async fn a_workload_that_dials_in_is_prepared_in_order_and_put_back() {
    let cluster = Cluster::of(ALONE).start().await;
    let greeting = pb::Hello { group: Some("databases".into()), ..database(&[Failover, Checkpoint, Restore]) };
    let mut database = Dialled::at(&cluster.door(0), greeting).await;
    assert_eq!((database.welcome.vm.as_str(), database.welcome.version), ("db-0", 1));
    assert_eq!((database.welcome.lease_ms, database.welcome.problems.len()), (10_000, 0));
    database.becomes(pb::Role::Primary).await;
    let is_shown = |status: &Status| {
        let shown = |each: &Workload| {
            each.connected && each.role == "primary" && each.phases == ["checkpoint", "failover", "restore"]
        };
        status.workloads.iter().any(shown)
    };
    cluster.until(0, "aware of the primary", is_shown).await;

    let id = cluster.cloud.announce(reboot()).await;
    let first = database.does(Checkpoint).await;
    let event = first.event.clone().unwrap();
    assert_eq!(
        (event.id.as_str(), event.r#type.as_str(), event.resources.as_slice()),
        (id.as_str(), "Reboot", &["db-0".into()][..])
    );
    assert_eq!(
        (first.intent(), first.vm.as_str(), first.group.as_deref()),
        (pb::Intent::Run, "db-0", Some("databases"))
    );
    assert!((1..=60_000).contains(&first.time_left_ms) && first.members[0].affected, "{first:?}");
    let second = database.does(Failover).await;
    assert!(second.fence.unwrap().sequence > first.fence.unwrap().sequence);
    assert_ne!(second.step, first.step);
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    database.does(Restore).await;
    let event = cluster.closed_everywhere(&id).await;
    let run = |phase| (phase, "run", Some("done"));
    assert_eq!(outcomes(&event), [run("checkpoint"), run("failover"), run("restore")]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn progress_is_shown_and_more_time_is_granted_and_told() {
    let mut greeting = database(&[Drain]);
    greeting.hooks[0].timeout_ms = Some(20_000);
    let (cluster, id, mut database, step) = in_the_middle(greeting).await;
    let progress = pb::Progress { text: "3 of 7".into(), expected_end_in_ms: Some(15_000) };
    database.report(&step.attempt, News::Progress(progress)).await;
    let says = |event: &Event| event.hooks[0].progress.as_deref() == Some("3 of 7");
    let before = cluster.until_event(0, &id, "with progress", says).await;
    assert!(before.hooks[0].expected_end.is_some());
    database.report(&step.attempt, News::Extension(pb::Extension { needs_ms: 60_000 })).await;
    let Told::Deadline(deadline) = database.next().await.unwrap() else { panic!("no deadline") };
    assert!((20_001..=60_000).contains(&deadline.time_left_ms), "{deadline:?}");
    let has_more = |event: &Event| event.hooks[0].deadline > before.hooks[0].deadline;
    cluster.until_event(0, &id, "with more time", has_more).await;
    database.ends(&step.attempt, done()).await;
    cluster.until_stage(0, &id, "started").await;
}

#[tokio::test]
async fn a_workload_that_lost_its_stream_goes_on_within_its_lease() {
    let (cluster, id, database, step) = in_the_middle(database(&[Drain])).await;
    drop(database);
    // Another process, which found the attempt in the journal of the first process.
    let greeting = pb::Hello { boot: "second".into(), known: knows(&step.attempt, None), ..self::database(&[Drain]) };
    let mut database = Dialled::at(&cluster.door(0), greeting).await;
    let Told::Deadline(reminder) = database.next().await.unwrap() else { panic!("it is not told what is open") };
    assert_eq!(reminder.attempt, step.attempt);
    database.ends(&step.attempt, done()).await;
    database.acknowledged(&step.attempt).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done"))]);
}

#[tokio::test]
async fn what_ran_beyond_the_lease_is_unknown_and_confirmed_when_the_workload_is_back() {
    let greeting = pb::Hello { lease_ms: Some(1_000), ..database(&[Drain]) };
    let (cluster, id, database, step) = in_the_middle(greeting).await;
    drop(database);
    let unknown = |event: &Event| event.hooks[0].outcome.as_deref() == Some("unknown");
    cluster.until_event(0, &id, "in doubt", unknown).await;
    let is_away = |status: &Status| status.workloads.iter().any(|each| !each.connected);
    cluster.until(0, "aware that it is away", is_away).await;
    let mut database = Dialled::at(&cluster.door(0), self::database(&[Drain])).await;
    let asked = database.step().await;
    assert_eq!((asked.intent(), &asked.step), (pb::Intent::Confirm, &step.step));
    database.ends(&asked.attempt, done()).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("unknown")), ("drain", "confirm", Some("done"))]);
}

#[tokio::test]
async fn a_replica_that_was_killed_takes_up_what_its_workload_knows() {
    let (mut cluster, id, mut database, step) = in_the_middle(database(&[Drain])).await;
    cluster.kill(0);
    assert_ne!(database.end().await.code(), tonic::Code::Ok);
    cluster.start(0);
    let greeting = pb::Hello { known: knows(&step.attempt, None), ..self::database(&[Drain]) };
    let mut database = Dialled::at(&cluster.door(0), greeting).await;
    cluster.ready().await;
    let Told::Deadline(reminder) = database.next().await.unwrap() else { panic!("it is not taken up") };
    assert_eq!(reminder.attempt, step.attempt);
    database.ends(&step.attempt, done()).await;
    database.acknowledged(&step.attempt).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done"))]);
}

#[tokio::test]
async fn a_replica_that_is_stopped_sends_its_workloads_away_and_takes_them_up_again() {
    let (mut cluster, id, mut database, step) = in_the_middle(database(&[Drain])).await;
    let (took, status) = cluster.stop(0);
    assert!(status.success() && took < std::time::Duration::from_secs(5), "{status} after {took:?}");
    let said = database.next().await;
    assert!(matches!(said, Ok(Told::GoAway(_))), "{said:?}");
    cluster.start(0);
    // The attempt ended while the replica was stopped.
    let greeting = pb::Hello { known: knows(&step.attempt, Some(done())), ..self::database(&[Drain]) };
    let mut database = Dialled::at(&cluster.door(0), greeting).await;
    database.acknowledged(&step.attempt).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done"))]);
}

#[tokio::test]
async fn what_nobody_knows_after_a_replica_was_killed_is_confirmed_and_not_sent_again() {
    let (mut cluster, id, database, _) = in_the_middle(database(&[Drain])).await;
    cluster.kill(0);
    drop(database);
    cluster.start(0);
    let mut database = Dialled::at(&cluster.door(0), self::database(&[Drain])).await;
    let asked = database.step().await;
    assert_eq!(asked.intent(), pb::Intent::Confirm);
    database.ends(&asked.attempt, Variant::NotDone(pb::Nothing {})).await;
    database.acknowledged(&asked.attempt).await;
    database.does(Drain).await;
    let event = cluster.until_stage(0, &id, "started").await;
    let expected = [("run", Some("unknown")), ("confirm", Some("not_done")), ("run", Some("done"))];
    assert_eq!(outcomes(&event), expected.map(|(intent, outcome)| ("drain", intent, outcome)));
}

#[tokio::test]
async fn what_puts_back_is_sent_again_when_nobody_knows_it() {
    let (mut cluster, id, mut database, step) = in_the_middle(database(&[Drain, Restore])).await;
    database.ends(&step.attempt, done()).await;
    database.acknowledged(&step.attempt).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let first = database.step().await;
    cluster.kill(0);
    drop(database);
    cluster.start(0);
    let mut database = Dialled::at(&cluster.door(0), self::database(&[Drain, Restore])).await;
    let again = database.does(Restore).await;
    assert_eq!(again.attempt, first.attempt);
    cluster.closed_everywhere(&id).await;
}

#[tokio::test]
async fn a_step_goes_on_while_the_leader_is_killed() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let mut database = Dialled::at(&cluster.door(affected), database(&[Drain])).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": affected })).await;
    let step = database.step().await;
    cluster.kill(leader);
    let led_by_another =
        |status: &Status| status.quorum && status.leader.as_ref().is_some_and(|name| *name != format!("db-{leader}"));
    cluster.until(other, "led by another", led_by_another).await;
    database.ends(&step.attempt, done()).await;
    database.acknowledged(&step.attempt).await;
    let event = cluster.until_stage(other, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done"))]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_workload_that_registers_while_an_event_is_open_is_prepared_too() {
    let configured = vec![workload::hook("drain").waits_for("gate")];
    let cluster = Cluster::of(ALONE).workload("cache", configured).start().await;
    let id = cluster.cloud.announce(reboot()).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let mut database = Dialled::at(&cluster.door(0), database(&[Checkpoint])).await;
    let step = database.step().await;
    assert_eq!(step.event.as_ref().map(|event| &event.id), Some(&id));
    database.hears_of(&id).await;
    cluster.hooks.open("gate");
    cluster.until_true("the drain's end", async || cluster.hooks.ended() == ["drain"]).await;
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0, "approved before the newcomer was prepared");
    database.ends(&step.attempt, done()).await;
    cluster.until_stage(0, &id, "started").await;
}

#[tokio::test]
async fn a_cancelled_event_stops_what_runs_and_has_it_put_back() {
    let (cluster, id, mut database, step) = in_the_middle(database(&[Drain, Restore])).await;
    cluster.cloud.cancel(&id).await;
    let Told::Cancel(cancel) = database.next().await.unwrap() else { panic!("it is not told to stop") };
    assert_eq!(cancel.attempt, step.attempt);
    database.ends(&step.attempt, Variant::Cancelled(pb::Nothing {})).await;
    database.acknowledged(&step.attempt).await;
    database.does(Restore).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("cancelled")), ("restore", "run", Some("done"))]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}

#[tokio::test]
async fn what_is_not_done_at_its_deadline_is_told_to_stop_and_has_timed_out() {
    let mut greeting = database(&[Drain]);
    greeting.hooks[0].timeout_ms = Some(1_000);
    greeting.hooks[0].can_confirm = false;
    greeting.hooks[0].on_failure = pb::OnFailure::Continue.into();
    greeting.hooks[0].attempts = Some(1);
    let (cluster, id, mut database, step) = in_the_middle(greeting).await;
    let Told::Cancel(cancel) = database.next().await.unwrap() else { panic!("it is not told to stop") };
    assert_eq!(cancel.attempt, step.attempt);
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("timed_out"))]);
    // The report is too late to count, which the workload is told, and need not be repeated.
    database.ends(&step.attempt, done()).await;
    assert_eq!(database.acknowledged(&step.attempt).await.as_deref(), Some("timed_out"));
}

#[tokio::test]
async fn what_is_due_waits_for_a_workload_that_is_away_or_the_configured_one_stands_in() {
    let stands_in = vec![workload::hook("drain")];
    for (on_absent, stands) in [(pb::OnAbsent::Hold, false), (pb::OnAbsent::Command, true)] {
        let cluster = Cluster::of(ALONE).workload("database", stands_in.clone()).start().await;
        let greeting = || pb::Hello {
            group: Some("databases".into()),
            lease_ms: Some(1_000),
            on_absent: on_absent.into(),
            ..database(&[Checkpoint])
        };
        drop(Dialled::at(&cluster.door(0), greeting()).await);
        let phases = |status: &Status| status.workloads.iter().map(|each| each.phases.clone()).collect::<Vec<_>>();
        let expected = if stands { "drain" } else { "checkpoint" };
        let is_away = |status: &Status| {
            phases(status) == [[expected]] && (stands || status.workloads.iter().all(|each| !each.connected))
        };
        cluster.until(0, "aware that it is away", is_away).await;
        let id = cluster.cloud.announce(reboot()).await;
        if !stands {
            let waits = |event: &Event| {
                let away = "the checkpoint hook of database on db-0 waits: the workload has not been connected";
                event.blocker.as_ref().is_some_and(|it| it.code == "hook_blocked" && it.message.starts_with(away))
            };
            cluster.until_event(0, &id, "waiting", waits).await;
            Dialled::at(&cluster.door(0), greeting()).await.does(Checkpoint).await;
        }
        cluster.until_stage(0, &id, "started").await;
        assert_eq!(cluster.hooks.ended(), if stands { vec!["drain"] } else { vec![] });
    }
}

#[tokio::test]
async fn a_script_that_asks_does_the_same_without_a_stream() {
    let cluster = Cluster::of(ALONE).start().await;
    let mut calls = client(&cluster.door(0)).await;
    let session = calls.register(database(&[Drain])).await.unwrap().into_inner().session;
    let poll = |wait_ms| pb::PollRequest { session: session.clone(), wait_ms, role: pb::Role::Replica.into() };
    let id = cluster.cloud.announce(reboot()).await;
    let step = loop {
        let messages = calls.poll(poll(2_000)).await.unwrap().into_inner().messages;
        if let Some(Told::Step(step)) = messages.into_iter().next().and_then(|first| first.message) {
            break step;
        }
    };
    let forgetting = |force| pb::UnregisterRequest { workload: "database".into(), force };
    let refused = calls.unregister(forgetting(false)).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::FailedPrecondition, "{refused}");
    let news = |news| {
        let report = pb::Report { attempt: step.attempt.clone(), news: Some(news) };
        pb::ReportRequest { session: session.clone(), report: Some(report) }
    };
    let progress = pb::Progress { text: "half".into(), expected_end_in_ms: None };
    assert!(!calls.report(news(News::Progress(progress))).await.unwrap().into_inner().committed);
    let outcome = News::Outcome(pb::Outcome { variant: Some(done()) });
    let told = calls.report(news(outcome)).await.unwrap().into_inner();
    assert_eq!(told, pb::ReportResponse { committed: true, outcome: Some("done".into()) });
    let contradiction = News::Outcome(pb::Outcome { variant: Some(Variant::Failed("after all".into())) });
    let told = calls.report(news(contradiction)).await.unwrap().into_inner();
    assert_eq!(told.outcome.as_deref(), Some("done"), "the first outcome counts");
    let messages = calls.poll(poll(5_000)).await.unwrap().into_inner().messages;
    assert!(matches!(messages[0].message, Some(Told::Acknowledged(_))), "{messages:?}");
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done"))]);
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    calls.unregister(forgetting(false)).await.unwrap();
    cluster.until(0, "without workloads", |status| status.workloads.is_empty()).await;
    assert_eq!(calls.poll(poll(0)).await.unwrap_err().code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn whoever_watches_is_told_of_events_as_they_change() {
    let cluster = Cluster::of(ALONE).start().await;
    let mut calls = client(&cluster.door(0)).await;
    let mut events = calls.watch_events(pb::WatchEventsRequest {}).await.unwrap().into_inner();
    assert_eq!(events.message().await.unwrap().unwrap().events, []);
    let id = cluster.cloud.announce(reboot()).await;
    while events.message().await.unwrap().unwrap().events.iter().all(|event| event.id != id || event.stage != "started")
    {
    }
    cluster.cloud.finish(&id).await;
    while !events.message().await.unwrap().unwrap().events.is_empty() {}
}

#[tokio::test]
async fn whoever_comes_later_is_told_what_is_open_and_a_session_what_affects_its_vm() {
    let cluster = Cluster::of(ALONE).start().await;
    let ours = cluster.cloud.announce(reboot()).await;
    let theirs = cluster.cloud.announce(json!({ "type": "Reboot", "vm": "elsewhere" })).await;
    cluster.until(0, "aware of both", |status| status.events.len() == 2).await;
    let ids = |events: &[pb::Event]| events.iter().map(|event| event.id.clone()).collect::<Vec<_>>();
    let mut calls = client(&cluster.door(0)).await;
    let mut both = vec![ours.clone(), theirs.clone()];
    both.sort();
    // No watcher was connected at the announcements, nor between these two calls.
    for _ in 0..2 {
        let mut events = calls.watch_events(pb::WatchEventsRequest {}).await.unwrap().into_inner();
        assert_eq!(ids(&events.message().await.unwrap().unwrap().events), both);
    }
    let database = Dialled::at(&cluster.door(0), database(&[Drain])).await;
    assert_eq!(ids(&database.welcome.events), std::slice::from_ref(&ours));
    cluster.cloud.cancel(&theirs).await;
    let mut events = calls.watch_events(pb::WatchEventsRequest {}).await.unwrap().into_inner();
    while ids(&events.message().await.unwrap().unwrap().events) != std::slice::from_ref(&ours) {}
}

#[tokio::test]
async fn a_workload_beyond_the_limit_is_refused_and_told_why_until_there_is_room() {
    let cluster = Cluster::of(ALONE).start().await;
    let door = cluster.door(0);
    let mut dialled = vec![Dialled::at(&door, hello("w0", Vec::new())).await];
    let known = cluster.status(0).await.unwrap().workloads.len();
    for number in known..WORKLOAD_LIMIT {
        dialled.push(Dialled::at(&door, hello(&format!("w{number}"), Vec::new())).await);
    }
    let refused = Dialled::try_at(&door, database(&[Drain])).await.err().unwrap();
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
    let why = "64 workloads are registered at this replica, which is the limit; unregister workloads that no longer \
               run";
    assert_eq!(refused.message(), why);
    let gone = pb::UnregisterRequest { workload: format!("w{}", WORKLOAD_LIMIT - 1), force: false };
    client(&door).await.unregister(gone).await.unwrap();
    assert!(Dialled::try_at(&door, database(&[Drain])).await.is_ok());
}
