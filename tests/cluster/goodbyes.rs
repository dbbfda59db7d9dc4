//! Workloads that send a goodbye, are replaced or are claimed twice while a step of the workload is due.

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::{Drain, Restore};
use allclear::wire::pb::allclear::workload::v1::from_workload::Message as Says;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use tonic::Code;

use super::cluster::Cluster;
use super::dialled::{Dialled, client, done, hello, hook, knows};
use super::sessions::{database, in_the_middle, outcomes, reboot};

fn goodbye(unregister: bool) -> Says {
    Says::Goodbye(pb::Goodbye { unregister })
}

/// The greeting of another process of the same workload.
fn second(known: Vec<pb::Known>) -> pb::Hello {
    pb::Hello { boot: "second".into(), lease_ms: Some(60_000), known, ..database(&[Drain, Restore]) }
}

async fn refused(cluster: &Cluster, hello: pb::Hello) -> tonic::Status {
    Dialled::try_at(&cluster.door(0), hello).await.err().expect("it was taken in")
}

#[tokio::test]
async fn a_workload_that_is_upgraded_in_the_middle_of_its_step_is_away_at_once_and_goes_on_where_it_was() {
    let leased = pb::Hello { lease_ms: Some(300_000), ..database(&[Drain, Restore]) };
    let (cluster, id, mut database, step) = in_the_middle(leased).await;
    database.say(goodbye(false)).await;
    assert_eq!(database.end().await.code(), Code::Ok);
    cluster.until(0, "without the workload", |status: &Status| !status.workloads[0].connected).await;
    // This process was upgraded too far.
    let known = || knows(&step.attempt, None);
    let newest = refused(&cluster, pb::Hello { versions: vec![2], ..second(known()) }).await;
    assert_eq!((newest.code(), newest.message()), (Code::InvalidArgument, "versions: this replica needs version 1"));
    let told = "db-0 refuses the registration of the workload database: versions: this replica needs version 1. The \
                workload takes part";
    let warns = |status: &Status| status.warnings.iter().any(|warning| warning.text.starts_with(told));
    cluster.until(0, "with a warning of the refusal", warns).await;
    let newer = pb::Hello { versions: vec![2, 1], ..second(known()) };
    let mut database = Dialled::at(&cluster.door(0), newer).await;
    assert_eq!(database.welcome.version, 1);
    assert!(!warns(&cluster.status(0).await.unwrap()), "it is registered");
    let Told::Deadline(reminder) = database.next().await.unwrap() else { panic!("it is not told what is open") };
    assert_eq!(reminder.attempt, step.attempt);
    database.ends(&step.attempt, done()).await;
    database.acknowledged(&step.attempt).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done"))]);
}

#[tokio::test]
async fn a_workload_with_calls_that_says_goodbye_is_away_at_once_and_its_next_process_goes_on() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let mut calls = client(&cluster.door(0)).await;
    let leased = pb::Hello { lease_ms: Some(300_000), ..database(&[Drain, Restore]) };
    let session = calls.register(leased).await.unwrap().into_inner().session;
    let poll = |session: &str| pb::PollRequest { session: session.into(), wait_ms: 20_000, ..Default::default() };
    let id = cluster.cloud.announce(reboot()).await;
    let messages = calls.poll(poll(&session)).await.unwrap().into_inner().messages;
    let Some(Told::Step(step)) = messages[0].message.clone() else { panic!("no step: {messages:?}") };
    let waiting = {
        let (mut calls, poll) = (calls.clone(), poll(&session));
        tokio::spawn(async move { calls.poll(poll).await })
    };
    cluster.until(0, "connected", |status: &Status| status.workloads[0].connected).await;
    let goodbye = pb::SayGoodbyeRequest { session: session.clone() };
    calls.say_goodbye(goodbye.clone()).await.unwrap();
    cluster.until(0, "without the workload", |status: &Status| !status.workloads[0].connected).await;
    // Neither a waiting nor a later poll brings the workload back.
    assert_eq!(waiting.await.unwrap().unwrap_err().code(), Code::NotFound);
    assert_eq!(calls.poll(poll(&session)).await.unwrap_err().code(), Code::NotFound);
    assert_eq!(calls.say_goodbye(goodbye).await.unwrap_err().code(), Code::NotFound);
    assert!(!cluster.status(0).await.unwrap().workloads[0].connected);
    let mut database = Dialled::at(&cluster.door(0), second(knows(&step.attempt, None))).await;
    let Told::Deadline(reminder) = database.next().await.unwrap() else { panic!("it is not told what is open") };
    assert_eq!(reminder.attempt, step.attempt);
    database.ends(&step.attempt, done()).await;
    database.acknowledged(&step.attempt).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done"))]);
}

/// A database may end its process with its `shutdown` hook, and then the report is the last message of the connection.
#[tokio::test]
async fn a_report_that_arrives_together_with_the_end_of_its_connection_counts() {
    const MANY: usize = 12;
    let cluster = Cluster::of(&["db-0"]).start().await;
    let mut all = Vec::new();
    for number in 0..MANY {
        // No lease ends while the replica is frozen, however long that is on a busy machine.
        let greeting = pb::Hello { lease_ms: Some(60_000), ..hello(&format!("w{number}"), vec![hook(Drain)]) };
        all.push(Dialled::at(&cluster.door(0), greeting).await);
    }
    let id = cluster.cloud.announce(reboot()).await;
    let mut steps = Vec::new();
    for database in &mut all {
        steps.push(database.step().await);
    }
    // The replica finds both at once.
    cluster.freeze(0);
    for (database, step) in all.iter().zip(&steps) {
        database.ends(&step.attempt, done()).await;
    }
    // The connections of this process are tasks of the same thread.
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    drop(all);
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    cluster.thaw(0);
    let are_ended = |event: &Event| event.hooks.iter().filter(|hook| hook.outcome.is_some()).count() == MANY;
    let event = cluster.until_event(0, &id, "with an outcome of each", are_ended).await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("done")); MANY], "{:?}", event.hooks);
}

#[tokio::test]
async fn of_two_processes_that_claim_a_workload_the_second_is_told_to_wait_until_the_first_is_gone() {
    let (cluster, id, mut first, step) = in_the_middle(database(&[Drain, Restore])).await;
    // The second process knows the step as well, as from a copy of the journal.
    let copied = || second(knows(&step.attempt, Some(done())));
    let taken = refused(&cluster, copied()).await;
    assert_eq!(taken.code(), Code::AlreadyExists, "{taken}");
    assert!(taken.message().contains("another session has the name database; stop that session"), "{taken}");
    first.is_only_answered(3).await;
    let known = cluster.event(0, &id).await.unwrap();
    assert_eq!(outcomes(&known), [("drain", "run", None)], "nobody else speaks for the first");
    drop(first);
    let mut second = Dialled::at(&cluster.door(0), second(vec![])).await;
    let asked = second.step().await;
    assert_eq!((asked.intent(), &asked.step), (pb::Intent::Confirm, &step.step));
    second.ends(&asked.attempt, done()).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("unknown")), ("drain", "confirm", Some("done"))]);
}

#[tokio::test]
async fn who_takes_its_registration_back_while_a_step_is_due_is_refused_and_stays_until_it_is_put_back() {
    let (cluster, id, mut database, step) = in_the_middle(database(&[Drain, Restore])).await;
    database.say(goodbye(true)).await;
    let refusal = database.end().await;
    assert_eq!(refusal.code(), Code::FailedPrecondition, "{refusal}");
    assert!(
        refusal.message().contains(&id) && refusal.message().contains("run `allclear workload remove`"),
        "{refusal}"
    );
    let mut database = Dialled::at(&cluster.door(0), second(knows(&step.attempt, Some(done())))).await;
    database.acknowledged(&step.attempt).await;
    cluster.until_stage(0, &id, "started").await;
    let mut calls = client(&cluster.door(0)).await;
    let unforced = || pb::UnregisterRequest { workload: "database".into(), force: false };
    let refusal = calls.unregister(unforced()).await.unwrap_err();
    assert_eq!(refusal.code(), Code::FailedPrecondition, "it is owed a restore: {refusal}");
    cluster.cloud.finish(&id).await;
    database.does(Restore).await;
    cluster.closed_everywhere(&id).await;
    database.say(goodbye(true)).await;
    assert_eq!(database.end().await.code(), Code::Ok);
    cluster.until(0, "without workloads", |status: &Status| status.workloads.is_empty()).await;
}

#[tokio::test]
async fn a_registration_that_is_taken_back_by_force_leaves_its_step_in_doubt_and_its_event_waits_for_it_no_longer() {
    let (cluster, id, mut database, _) = in_the_middle(database(&[Drain, Restore])).await;
    let mut calls = client(&cluster.door(0)).await;
    calls.unregister(pb::UnregisterRequest { workload: "database".into(), force: true }).await.unwrap();
    assert!(matches!(database.next().await, Ok(Told::GoAway(_))));
    cluster.until(0, "without workloads", |status: &Status| status.workloads.is_empty()).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("unknown"))]);
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.hooks.len(), 1, "nobody is there to put it back: {event:#?}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_workload_that_never_comes_back_holds_its_event_until_an_operator_removes_its_registration() {
    let short = pb::Hello { lease_ms: Some(1_000), retain_ms: Some(1_000), ..database(&[Drain, Restore]) };
    let (cluster, id, database, _) = in_the_middle(short).await;
    let remove = |workload: &str| cluster.says(0, &["workload", "remove", workload, "--reason", "it was renamed"]);
    let (code, _, said) = remove("db-0/database");
    assert!(code == 4 && said.contains("is connected, and would register again"), "{code} {said}");
    let (code, _, said) = remove("db-0/other");
    assert!(code == 4 && said.contains("db-0/other: there is no such workload"), "{code} {said}");
    drop(database);
    let is_away = |status: &Status| status.events[0].blocker.as_ref().is_some_and(|it| it.disconnected.is_some());
    cluster.until(0, "a workload that is away", is_away).await;
    let explained = cluster.says(0, &["explain", &id]).1;
    assert!(explained.contains("allclear workload remove db-0/database --reason"), "{explained}");
    let (code, said, _) = remove("db-0/database");
    assert!(code == 0 && said.contains("db-0/database is no longer registered"), "{code} {said}");
    let owed = format!("db-0/database was prepared for event {id}, and its restore will not run");
    assert!(said.contains(&owed), "{said}");
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event)[0], ("drain", "run", Some("unknown")));
}
