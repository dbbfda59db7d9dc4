//! Workloads that do not keep to the protocol: each is told what is wrong, and none disturbs another.

use allclear::wire::pb::allclear::operator::v1::Status;
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::Drain;
use allclear::wire::pb::allclear::workload::v1::from_workload::Message as Says;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use serde_json::json;
use tokio_stream::StreamExt as _;
use tonic::Code;

use super::cluster::Cluster;
use super::dialled::{Dialled, client, done, hello, hook};

#[tokio::test]
async fn what_is_wrong_is_told_and_another_session_goes_on_undisturbed() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let door = cluster.door(0);
    let mut database = Dialled::at(&door, hello("database", vec![hook(Drain)])).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let step = database.step().await;
    let refused = async |hello| Dialled::try_at(&door, hello).await.err().expect("it was taken in");

    let double = refused(pb::Hello { boot: "another".into(), ..hello("database", vec![hook(Drain)]) }).await;
    assert_eq!(double.code(), Code::AlreadyExists, "{double}");
    let unknown = pb::Hook { phase: 42, ..pb::Hook::default() };
    let wrong = refused(pb::Hello { lease_ms: Some(1), ..hello("other", vec![hook(Drain), unknown]) }).await;
    assert_eq!(wrong.code(), Code::InvalidArgument, "{wrong}");
    assert!(wrong.message().contains("hooks[1].phase: 42") && wrong.message().contains("lease_ms: 1"), "{wrong}");
    let newer = refused(pb::Hello { versions: vec![2, 3], ..hello("other", vec![]) }).await;
    assert!(newer.message().starts_with("versions: "), "{newer}");
    let large = refused(hello(&"x".repeat(65 << 10), vec![])).await;
    assert!(large.message().contains("too large"), "{large}");

    let mut loud = Dialled::at(&door, hello("loud", vec![])).await;
    let huge = pb::Progress { text: "x".repeat(65 << 10), expected_end_in_ms: None };
    loud.report("x", News::Progress(huge)).await;
    let ended = loud.end().await;
    assert!(ended.message().contains("too large"), "{ended}");

    let mut calls = client(&door).await;
    let greeting = pb::FromWorkload { message: Some(Says::Hello(hello("flood", vec![]))) };
    let beat = || pb::FromWorkload { message: Some(Says::Heartbeat(pb::Heartbeat { role: 0 })) };
    let flood = tokio_stream::iter([greeting]).chain(tokio_stream::iter(std::iter::repeat_with(beat).take(5_000)));
    let mut flooding = calls.session(flood).await.unwrap().into_inner();
    let ended = loop {
        if let Err(status) = flooding.message().await {
            break status;
        }
    };
    assert_eq!(ended.code(), Code::ResourceExhausted, "{ended}");

    let silent = calls.session(tokio_stream::pending::<pb::FromWorkload>()).await.unwrap_err();
    assert_eq!(silent.code(), Code::DeadlineExceeded, "{silent}");
    let rude = pb::FromWorkload { message: Some(Says::Goodbye(pb::Goodbye { unregister: true })) };
    let rude = calls.session(tokio_stream::iter([rude])).await.unwrap_err();
    assert_eq!(rude.code(), Code::InvalidArgument, "{rude}");

    database.ends(&step.attempt, done()).await;
    database.acknowledged(&step.attempt).await;
    cluster.until_stage(0, &id, "started").await;
}

#[tokio::test]
async fn a_report_that_is_not_understood_is_answered_and_the_session_goes_on() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let mut database = Dialled::at(&cluster.door(0), hello("database", vec![hook(Drain)])).await;
    database.say(Says::Report(pb::Report { attempt: "E.1".into(), news: None })).await;
    let Told::Problem(problem) = database.next().await.unwrap() else { panic!("nothing is wrong") };
    assert_eq!(problem.place.as_deref(), Some("report"));
    // Nobody waits for it, so it need not be repeated.
    database.ends("E.1", done()).await;
    database.acknowledged("E.1").await;
}

#[tokio::test]
async fn many_that_dial_in_at_once_are_noted_together() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let door = cluster.door(0);
    let dialling = (0..30).map(|number| {
        let greeting = pb::Hello { role: pb::Role::Primary.into(), ..hello(&format!("w-{number}"), vec![]) };
        Dialled::at(&door, greeting)
    });
    let dialled = futures_util::future::join_all(dialling).await;
    let all =
        |status: &Status| status.workloads.iter().filter(|each| each.role == "primary" && each.connected).count() == 30;
    cluster.until(0, "aware of all", all).await;
    let notes = cluster.log(0).lines().filter(|line| line.contains("applied") && line.contains("\"note\"")).count();
    assert!((1..10).contains(&notes), "{notes} entries");
    drop(dialled);
}
