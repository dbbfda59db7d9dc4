//! Callers at the sockets, also after another user has widened the modes of the sockets.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::Path;
use std::time::Instant;

use allclear::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;
use allclear::wire::pb::allclear::workload::v1::{Hello, PollRequest};
use tonic::transport::Endpoint;

use super::calls::Door;
use super::cluster::Cluster;
use super::somebody::{
    ALLOWED, Answers, GROUP, STRANGER, calls_of, every_call, every_call_as, polls_as, refused, runs_as, told,
};

fn open(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn at(socket: &Path) -> String {
    format!("unix://{}", socket.display())
}

/// All calls are refused, with this code and message.
fn all_refused(answers: &Answers, code: &str, message: &str) {
    assert!(answers.len() > 34, "{answers:#?}");
    for (path, answer) in answers {
        let refusal = answer.as_ref().unwrap_or_else(|| panic!("{path} is answered"));
        assert!(refusal.0 == code && refusal.1.contains(message), "{path}: {refusal:?}");
    }
}

fn code<'a>(answers: &'a Answers, path: &str) -> &'a str {
    answers[path].as_ref().map_or("answered", |(code, _)| code)
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_operators_socket_only_root_and_the_replicas_own_user_are_heard() {
    if !crate::left_out::is_root() {
        return;
    }
    let cluster = Cluster::of(&["db-0"]).start().await;
    let socket = cluster.replicas[0].socket.clone();
    let began = Instant::now();
    open(socket.parent().unwrap(), 0o755);
    let shown = socket.to_str().unwrap();
    let pause = ["pause", "--until", "1h", "--reason", "to harm", "--endpoint", shown];
    let closed = runs_as(STRANGER, &pause);
    assert_eq!(closed.status.code(), Some(3), "its mode lets nobody in: {closed:?}");
    assert_eq!(refused(&cluster, "operator", "user").await, 0);

    open(&socket, 0o666);
    let tried = runs_as(STRANGER, &pause);
    let said = String::from_utf8(tried.stderr).unwrap();
    assert!(tried.status.code() == Some(4) && said.contains("uid 65531 may not call this replica"), "{said}");
    all_refused(
        &every_call_as(STRANGER, STRANGER, &at(&socket)),
        "PermissionDenied",
        "uid 65531 may not call this replica",
    );
    assert!(cluster.status(0).await.unwrap().paused.is_none(), "nothing is paused");
    let calls = every_call_as(STRANGER, STRANGER, &at(&socket)).len();
    assert_eq!(refused(&cluster, "operator", "user").await, 1 + 2 * calls, "health and reflection count as well");

    let lines = told(&cluster, "operator", "user");
    let minutes = usize::try_from(began.elapsed().as_secs() / 60).unwrap();
    assert!((1..=1 + minutes).contains(&lines.len()), "once a minute: {lines:#?}");
    assert_eq!((&lines[0]["who"], &lines[0]["level"]), (&"uid 65531".into(), &"WARN".into()));
    assert_eq!(lines[0]["asked"], "/allclear.operator.v1.Operator/Pause");
    assert!(lines[0]["pid"].as_u64().is_some_and(|pid| pid > 1), "{lines:#?}");

    let (code, _, said) = cluster.says(0, &pause[..5]);
    assert_eq!(code, 0, "root is heard: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_workloads_socket_a_member_of_its_group_is_heard_only_where_it_is_configured() {
    if !crate::left_out::is_root() {
        return;
    }
    let cluster = Cluster::of(&["db-0"]).also("workloads.allow_uids", "[65532]").start().await;
    let door = cluster.door(0);
    open(door.parent().unwrap(), 0o755);
    chown(&door, None, Some(GROUP)).unwrap();
    all_refused(&every_call_as(ALLOWED, ALLOWED, &at(&door)), "Unavailable", "");
    assert_eq!(refused(&cluster, "workloads", "user").await, 0, "who is not of its group does not get that far");
    let answers = every_call_as(STRANGER, GROUP, &at(&door));
    all_refused(&answers, "PermissionDenied", "uid 65531 may not register here");
    assert_eq!(refused(&cluster, "workloads", "user").await, answers.len());
    assert_eq!(told(&cluster, "workloads", "user")[0]["who"], "uid 65531");

    let answers = every_call_as(ALLOWED, GROUP, &at(&door));
    for path in calls_of(&[Door::Workload]) {
        assert!(!["PermissionDenied", "Unimplemented"].contains(&code(&answers, &path)), "{path}: {answers:#?}");
    }
    for path in calls_of(&[Door::Operator, Door::Cluster]) {
        assert_eq!(code(&answers, &path), "Unimplemented", "{path}");
    }
    assert_eq!(code(&answers, "/grpc.health.v1.Health/Check"), "answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_and_workloads_are_kept_apart_also_for_root() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    for (socket, own) in [(cluster.replicas[0].socket.clone(), Door::Operator), (cluster.door(0), Door::Workload)] {
        let answers = every_call(&at(&socket)).await;
        for door in [Door::Operator, Door::Workload, Door::Cluster] {
            for path in calls_of(&[door]) {
                assert_eq!(code(&answers, &path) == "Unimplemented", door != own, "{path} at {own:?}: {answers:#?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_user_that_registered_it() {
    if !crate::left_out::is_root() {
        return;
    }
    let cluster = Cluster::of(&["db-0"]).also("workloads.allow_uids", "[65532]").start().await;
    let door = cluster.door(0);
    open(door.parent().unwrap(), 0o755);
    chown(&door, None, Some(GROUP)).unwrap();
    let mut own = WorkloadsClient::new(Endpoint::from_shared(at(&door)).unwrap().connect().await.unwrap());
    let hello = Hello { versions: vec![1], workload: "database".into(), boot: "first".into(), ..Hello::default() };
    let session = own.register(hello).await.unwrap().into_inner().session;
    let said = polls_as(ALLOWED, GROUP, &door, &session);
    assert!(said.contains("this session is over"), "{said}");
    assert_eq!(refused(&cluster, "workloads", "session").await, 1);
    assert_eq!(told(&cluster, "workloads", "session")[0]["who"], "uid 65532");
    let polled = own.poll(PollRequest { session, ..PollRequest::default() }).await;
    assert!(polled.is_ok(), "whose it is goes on: {polled:?}");
}
