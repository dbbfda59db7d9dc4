//! Somebody else on the same machine: this program, or the real one, as another user.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use allclear::wire::pb::allclear::workload::v1::PollRequest;
use allclear::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;
use tonic::transport::Endpoint;

use super::calls::{Door, call, methods};
use super::cluster::Cluster;

/// Users and a group that no system has.
pub(crate) const STRANGER: u32 = 65_531;
pub(crate) const ALLOWED: u32 = 65_532;
pub(crate) const GROUP: u32 = 65_530;

/// Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(30);
/// What every gRPC server has; each is asked for something.
const EXPECTED: [&str; 2] =
    ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"];

/// Of each call whether it was answered, or how it was refused: code and message.
pub(crate) type Answers = BTreeMap<String, Option<(String, String)>>;

pub(crate) fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        println!("SKIPPED: only root can be somebody else");
    }
    is_root
}

/// Every call there is, as whoever this process is.
pub(crate) async fn every_call(address: &str) -> Answers {
    let declared = methods().into_iter().map(|(_, path)| path);
    let mut answers = Answers::new();
    for path in declared.chain(EXPECTED.map(str::to_owned)) {
        let channel = Endpoint::from_shared(address.to_owned()).unwrap().connect_lazy();
        let refusal = call(channel, &path, vec![Vec::new()], LIMIT).await;
        let told = refusal.map(|status| (format!("{:?}", status.code()), status.message().to_owned()));
        answers.insert(path, told);
    }
    answers
}

/// The calls that are declared for this door, or for the others.
pub(crate) fn calls_of(doors: &[Door]) -> Vec<String> {
    methods().into_iter().filter(|(door, _)| doors.contains(door)).map(|(_, path)| path).collect()
}

/// One of this program's own tests as another user, and what it printed.
fn plays(uid: u32, gid: u32, test: &str, variables: &[(&str, &str)]) -> String {
    let mut playing = Command::new(std::env::current_exe().unwrap());
    playing.args([test, "--exact", "--ignored", "--nocapture"]).envs(variables.iter().copied());
    let output = playing.current_dir("/").uid(uid).gid(gid).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every call there is, as another user.
pub(crate) fn every_call_as(uid: u32, gid: u32, address: &str) -> Answers {
    let said = plays(uid, gid, crate::own_test!(somebody_else_calls), &[("ADDRESS", address)]);
    let answers = said.lines().find_map(|line| line.strip_prefix("ANSWERS ")).expect("it tells");
    serde_json::from_str(answers).unwrap()
}

#[tokio::test]
#[ignore = "is run by other tests, as somebody else"]
async fn somebody_else_calls() {
    let Ok(address) = std::env::var("ADDRESS") else { return };
    println!("\nANSWERS {}", serde_json::to_string(&every_call(&address).await).unwrap());
}

/// A question for what a session has to be told, as another user.
pub(crate) fn polls_as(uid: u32, gid: u32, door: &Path, session: &str) -> String {
    let variables = [("DOOR", door.to_str().unwrap()), ("SESSION", session)];
    plays(uid, gid, crate::own_test!(somebody_else_polls), &variables)
}

#[tokio::test]
#[ignore = "is run by another test, as somebody else"]
async fn somebody_else_polls() {
    let (Ok(door), Ok(session)) = (std::env::var("DOOR"), std::env::var("SESSION")) else { return };
    let channel = Endpoint::from_shared(format!("unix://{door}")).unwrap().connect().await.unwrap();
    let polled = WorkloadsClient::new(channel).poll(PollRequest { session, ..PollRequest::default() }).await;
    println!("\npolled: {polled:?}");
}

/// The program as another user. One that does not end is ended, and then its status is 124.
pub(crate) fn runs_as(uid: u32, arguments: &[&str]) -> Output {
    let mut program = Command::new("/usr/bin/timeout");
    program
        .args(["30", env!("CARGO_BIN_EXE_allclear")])
        .args(arguments)
        .env_clear()
        .current_dir("/")
        .uid(uid)
        .gid(uid)
        .output()
        .unwrap()
}

/// How often a replica refused somebody.
pub(crate) async fn refused(cluster: &Cluster, door: &str, reason: &str) -> usize {
    let (code, text) = cluster.page(0, "/metrics").await;
    assert_eq!(code, 200, "{text}");
    let series = format!("allclear_access_refusals_total{{door=\"{door}\",reason=\"{reason}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}

/// The lines in which a replica's log tells of it.
pub(crate) fn told(cluster: &Cluster, door: &str, reason: &str) -> Vec<serde_json::Value> {
    let log = cluster.log(0);
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let is_it = |line: &serde_json::Value| line["door"] == door && line["reason"] == reason;
    lines.filter(|line| line["message"] == "call refused" && is_it(line)).collect()
}
