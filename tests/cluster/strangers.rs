//! Workloads that violate the protocol: each receives the reason, and none disturbs another.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::Drain;
use allclear::wire::pb::allclear::workload::v1::from_workload::Message as Says;
use allclear::wire::pb::allclear::workload::v1::outcome::Variant;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use allclear::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::Endpoint;

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
    for part in ["hooks[1].phase: this version does not know the value 42", "lease_ms: 1"] {
        assert!(wrong.message().contains(part), "{wrong}");
    }
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

/// Run by the test below, as another user.
#[tokio::test]
#[ignore = "is run by another test"]
async fn somebody_else_asks() {
    let Ok(door) = std::env::var("DOOR") else { return };
    let refusal = Dialled::try_at(door.as_ref(), hello("database", vec![])).await.err();
    println!("refused: {refusal:?}");
}

#[tokio::test]
async fn only_root_the_own_user_and_those_of_the_configuration_may_dial_in() {
    if !crate::left_out::is_root() {
        return;
    }
    let cluster = Cluster::of(&["db-0"]).also("workloads.allow_uids", "[65533]").start().await;
    let door = cluster.door(0);
    // Modes as open as an administrator could set.
    for (path, mode) in [(door.parent().unwrap(), 0o755), (door.as_path(), 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    for (uid, expected) in [(65533, "refused: None"), (65534, "uid 65534 may not register here")] {
        let mut asking = Command::new(std::env::current_exe().unwrap());
        asking.args([crate::own_test!(somebody_else_asks), "--exact", "--ignored", "--nocapture"]);
        let output = asking.env("DOOR", &door).current_dir("/").uid(uid).gid(uid).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected), "{said} {output:?}");
    }
}

#[tokio::test]
async fn a_report_that_is_not_understood_is_answered_and_the_session_goes_on() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let mut database = Dialled::at(&cluster.door(0), hello("database", vec![hook(Drain)])).await;
    database.say(Says::Report(pb::Report { attempt: "E.1".into(), news: None })).await;
    let Told::Problem(problem) = database.next().await.unwrap() else { panic!("nothing is wrong") };
    assert_eq!(problem.place.as_deref(), Some("report"));
    // No event waits for the attempt, so the report need not be repeated.
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
    let notes = cluster
        .log(0)
        .lines()
        .filter(|line| line.contains("applied") && line.contains("\"update_conditions\""))
        .count();
    assert!((1..10).contains(&notes), "{notes} entries");
    drop(dialled);
}

#[tokio::test]
async fn a_workload_that_does_not_read_is_sent_away_while_its_neighbour_goes_on() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let door = cluster.door(0);
    let mut neighbour = Dialled::at(&door, hello("neighbour", vec![hook(Drain)])).await;
    // The stream window has room for the welcome, and hardly more.
    let narrow = Endpoint::from_shared(format!("unix://{}", door.display())).unwrap().initial_stream_window_size(300);
    let (says, messages) = mpsc::channel(1);
    let greeting = Says::Hello(hello("database", vec![]));
    says.send(pb::FromWorkload { message: Some(greeting) }).await.unwrap();
    let mut client = WorkloadsClient::new(narrow.connect().await.unwrap());
    let _unread = client.session(ReceiverStream::new(messages)).await.unwrap().into_inner();
    let double = pb::Hello { boot: "another".into(), ..hello("database", vec![]) };
    let taken = Dialled::try_at(&door, double.clone()).await.err().expect("it was taken in");
    assert_eq!(taken.code(), Code::AlreadyExists, "{taken}");
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let step = neighbour.step().await;
    // The workload keeps requesting answers: the lease never expires by itself.
    let asking = tokio::spawn(async move {
        let beat = || pb::FromWorkload { message: Some(Says::Heartbeat(pb::Heartbeat { role: 0 })) };
        while says.send(beat()).await.is_ok() {
            sleep(Duration::from_millis(25)).await;
        }
    });
    Dialled::at(&door, double).await;
    asking.abort();
    neighbour.ends(&step.attempt, done()).await;
    neighbour.acknowledged(&step.attempt).await;
    cluster.until_stage(0, &id, "started").await;
}

#[tokio::test]
async fn what_is_said_at_length_is_cut_before_it_is_kept() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let once = pb::Hook { attempts: Some(1), ..hook(Drain) };
    let mut database = Dialled::at(&cluster.door(0), hello("database", vec![once])).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let step = database.step().await;
    let long = "x".repeat(60_000);
    let progress = pb::Progress { text: long.clone(), expected_end_in_ms: None };
    database.report(&step.attempt, News::Progress(progress)).await;
    let is_told = |event: &Event| event.hooks[0].progress.is_some();
    let event = cluster.until_event(0, &id, "with progress", is_told).await;
    assert!(event.hooks[0].progress.as_ref().unwrap().len() <= 1024, "{event:#?}");
    database.ends(&step.attempt, Variant::Failed(long)).await;
    database.acknowledged(&step.attempt).await;
    let is_held = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "hook_failed");
    let event = cluster.until_event(0, &id, "held", is_held).await;
    assert!(event.blocker.unwrap().message.len() < 1200 && event.hooks[0].reason.as_ref().unwrap().len() <= 1024);
}
