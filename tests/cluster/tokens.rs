//! A session's token is valid for the user that received the token, for this workload, while the session lasts.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use allclear::wire::pb::allclear::operator::v1::Event;
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::Drain;
use allclear::wire::pb::allclear::workload::v1::outcome::Variant;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use allclear::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;
use serde_json::json;
use tonic::Code;
use tonic::transport::Channel;

use super::cluster::Cluster;
use super::dialled::{client, done, hello, hook};

const OWNER: u32 = 64_218;
const OTHER: u32 = 64_219;

type Calls = WorkloadsClient<Channel>;

async fn poll(calls: &mut Calls, session: &str) -> Code {
    let request = pb::PollRequest { session: session.into(), wait_ms: 0, role: 0 };
    calls.poll(request).await.map_or_else(|refusal| refusal.code(), |_| Code::Ok)
}

async fn report(calls: &mut Calls, session: &str, attempt: &str) -> Code {
    let news = News::Outcome(pb::Outcome { variant: Some(done()) });
    let report = pb::Report { attempt: attempt.into(), news: Some(news) };
    let request = pb::ReportRequest { session: session.into(), report: Some(report) };
    calls.report(request).await.map_or_else(|refusal| refusal.code(), |_| Code::Ok)
}

/// A report of an unsettled attempt is answered after 10 s, and the lease outlasts the 10 s.
fn database() -> pb::Hello {
    pb::Hello { lease_ms: Some(60_000), ..hello("database", vec![hook(Drain)]) }
}

#[tokio::test]
async fn a_token_that_is_replayed_or_of_another_workload_is_refused_and_nothing_is_settled_by_it() {
    let mut cluster = Cluster::of(&["db-0"]).start().await;
    let mut calls = client(&cluster.door(0)).await;
    let old = calls.register(database()).await.unwrap().into_inner().session;
    let neighbour = calls.register(hello("neighbour", vec![])).await.unwrap().into_inner().session;
    assert_ne!(old.split_once('.').unwrap().0, neighbour.split_once('.').unwrap().0);
    // The same process registers again, as after a lost answer.
    let current = calls.register(database()).await.unwrap().into_inner().session;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let step = loop {
        let request = pb::PollRequest { session: current.clone(), wait_ms: 2_000, role: 0 };
        let messages = calls.poll(request).await.unwrap().into_inner().messages;
        if let Some(Told::Step(step)) = messages.into_iter().next().and_then(|first| first.message) {
            break step;
        }
    };
    let renamed = format!("{}.database", neighbour.split_once('.').unwrap().0);
    for stolen in [old.as_str(), &renamed, ".database", "database", "", "0.database", &"x".repeat(2_000)] {
        assert_eq!(poll(&mut calls, stolen).await, Code::NotFound, "{stolen}");
        assert_eq!(report(&mut calls, stolen, &step.attempt).await, Code::NotFound, "{stolen}");
    }
    // The neighbour's own session, and the attempt of another workload.
    assert_eq!(report(&mut calls, &neighbour, &step.attempt).await, Code::InvalidArgument);
    let event = cluster.event(0, &id).await.unwrap();
    assert_eq!(event.hooks[0].outcome, None, "{event:?}");
    cluster.kill(0);
    cluster.start(0);
    cluster.ready().await;
    let mut calls = client(&cluster.door(0)).await;
    assert_eq!(poll(&mut calls, &current).await, Code::NotFound, "of an earlier life of the replica");
}

/// Run by the test below, as another user: requests another user's workload in every way.
#[tokio::test]
#[ignore = "is run by another test"]
async fn somebody_else_has_the_token() {
    let (Ok(door), Ok(token)) = (std::env::var("DOOR"), std::env::var("TOKEN")) else { return };
    let mut calls = client(door.as_ref()).await;
    let unregister = pb::UnregisterRequest { workload: "database".into(), force: true };
    let again = pb::Hello { lease_ms: Some(120_000), ..database() };
    let told = [
        poll(&mut calls, &token).await,
        report(&mut calls, &token, "any.1").await,
        calls.unregister(unregister).await.map_or_else(|refusal| refusal.code(), |_| Code::Ok),
        calls.register(again).await.map_or_else(|refusal| refusal.code(), |_| Code::Ok),
    ];
    println!("told: {told:?}");
}

fn ask_as(uid: u32, door: &std::path::Path, token: &str) -> String {
    let mut asking = Command::new(std::env::current_exe().unwrap());
    asking.args([crate::own_test!(somebody_else_has_the_token), "--exact", "--ignored", "--nocapture"]);
    let output = asking.env("DOOR", door).env("TOKEN", token).current_dir("/").uid(uid).gid(uid).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.lines().find_map(|line| line.split_once("told: ")).map(|(_, told)| told.to_owned()).unwrap_or(said)
}

#[tokio::test]
async fn another_user_who_may_dial_in_can_do_nothing_to_a_workload_with_its_token_or_without() {
    if !crate::left_out::is_root() {
        return;
    }
    let cluster = Cluster::of(&["db-0"]).also("workloads.allow_uids", "[64218, 64219]").start().await;
    let door = cluster.door(0);
    for (path, mode) in [(door.parent().unwrap(), 0o755), (door.as_path(), 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    // The owner registers; the forced unregister before is of a workload that does not exist yet.
    let owner = ask_as(OWNER, &door, "0.database");
    assert_eq!(owner, "[NotFound, NotFound, Ok, Ok]");
    let other = ask_as(OTHER, &door, "0.database");
    assert_eq!(other, "[NotFound, NotFound, PermissionDenied, PermissionDenied]");
    let told = format!("\"reason\":\"session\",\"who\":\"uid {OTHER}\"");
    assert!(cluster.log(0).contains(&told), "{}", cluster.log(0));

    // A token of root, the user with all permissions, used by another user.
    let mut calls = client(&door).await;
    let token = calls.register(hello("roots", vec![])).await.unwrap().into_inner().session;
    assert_eq!(poll(&mut calls, &token).await, Code::Ok);
    assert!(ask_as(OTHER, &door, &token).starts_with("[NotFound, NotFound"), "it is of another user");
    assert!(!cluster.log(0).contains(token.split_once('.').unwrap().0));
}

#[tokio::test]
async fn what_a_workload_says_in_several_lines_is_one_line_of_the_log_and_of_the_status() {
    let (cluster, id, database, step) = super::sessions::in_the_middle(database()).await;
    let forged = "no\n{\"level\":\"INFO\",\"message\":\"all is well\"}\r\u{1b}[2J\u{202e}lla";
    database.ends(&step.attempt, Variant::Failed(forged.into())).await;
    let says = |event: &Event| event.hooks[0].reason.is_some();
    let event = cluster.until_event(0, &id, "failed", says).await;
    assert_eq!(event.hooks[0].reason.as_deref(), Some("no {\"level\":\"INFO\",\"message\":\"all is well\"}  [2J lla"));
    let log = cluster.log(0);
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["message"] != "all is well"));
}
