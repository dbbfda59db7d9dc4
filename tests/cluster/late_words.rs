//! Reports of a workload about a step after the timeout, when silence has already counted as the answer.

use allclear::wire::pb::allclear::operator::v1::Event;
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::Drain;
use allclear::wire::pb::allclear::workload::v1::outcome::Variant;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;

use super::cluster::Cluster;
use super::dialled::{Dialled, done, knows};
use super::sessions::{database, in_the_middle, outcomes};

fn hasty() -> pb::Hello {
    let mut greeting = database(&[Drain]);
    greeting.hooks[0].timeout_ms = Some(1_000);
    greeting.hooks[0].attempts = Some(1);
    greeting
}

/// A step whose only attempt has timed out, and the confirm for this step.
async fn timed_out() -> (Cluster, String, Dialled, [pb::Step; 2]) {
    let (cluster, id, mut database, step) = in_the_middle(hasty()).await;
    let Told::Cancel(_) = database.next().await.unwrap() else { panic!("it is not told to stop") };
    let asked = is_asked(&mut database, &step).await;
    (cluster, id, database, [step, asked])
}

async fn is_asked(database: &mut Dialled, step: &pb::Step) -> pb::Step {
    let asked = database.step().await;
    assert_eq!((asked.intent(), &asked.step), (pb::Intent::Confirm, &step.step));
    asked
}

#[tokio::test]
async fn what_is_done_too_late_is_written_down_and_counts_when_it_is_asked_about() {
    let (cluster, id, mut database, [step, asked]) = timed_out().await;
    for attempt in [step.attempt, asked.attempt] {
        database.ends(&attempt, done()).await;
        database.acknowledged(&attempt).await;
    }
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("timed_out")), ("drain", "confirm", Some("done"))]);
    let is_told = |step: &allclear::wire::pb::allclear::operator::v1::Step| {
        step.what.contains("done, ignored because the outcome came too late")
    };
    assert!(event.timeline.iter().any(is_told), "{event:#?}");
}

#[tokio::test]
async fn so_is_what_is_told_only_when_the_workload_is_back() {
    let (cluster, id, database, [step, _]) = timed_out().await;
    drop(database);
    let greeting = pb::Hello { known: knows(&step.attempt, Some(done())), ..hasty() };
    let mut database = Dialled::at(&cluster.door(0), greeting).await;
    assert_eq!(database.welcome.acknowledged, [step.attempt.as_str()]);
    let asked = is_asked(&mut database, &step).await;
    database.ends(&asked.attempt, done()).await;
    cluster.until_stage(0, &id, "started").await;
}

#[tokio::test]
async fn what_failed_too_late_and_is_not_done_holds_its_event() {
    let (cluster, id, mut database, [step, asked]) = timed_out().await;
    database.ends(&step.attempt, Variant::Failed("it gave up".into())).await;
    database.acknowledged(&step.attempt).await;
    database.ends(&asked.attempt, Variant::NotDone(pb::Nothing {})).await;
    let is_held = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "hook_failed");
    let event = cluster.until_event(0, &id, "held", is_held).await;
    assert_eq!(outcomes(&event), [("drain", "run", Some("timed_out")), ("drain", "confirm", Some("not_done"))]);
    assert_eq!(cluster.cloud.posts().await.len(), 0);
}
