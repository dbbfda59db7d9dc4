//! Another user on the machine: this program, or the real program, run as another user.

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

/// Users and a group that exist on no system.
pub(crate) const STRANGER: u32 = 65_531;
pub(crate) const ALLOWED: u32 = 65_532;
pub(crate) const GROUP: u32 = 65_530;

/// Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(2);
/// Calls common to every gRPC server; each of them is called.
const EXPECTED: [&str; 3] = [
    "/grpc.health.v1.Health/Check",
    "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
];

/// For each call `None` if answered, or the refusal: code and message.
pub(crate) type Answers = BTreeMap<String, Option<(String, String)>>;

/// Every existing call, as the user of this process.
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

/// Paths of the calls declared for the given doors.
pub(crate) fn calls_of(doors: &[Door]) -> Vec<String> {
    methods().into_iter().filter(|(door, _)| doors.contains(door)).map(|(_, path)| path).collect()
}

/// Runs one of this program's own tests as another user, and returns the printed output.
fn plays(uid: u32, gid: u32, test: &str, variables: &[(&str, &str)]) -> String {
    let mut playing = Command::new(std::env::current_exe().unwrap());
    playing.args([test, "--exact", "--ignored", "--nocapture"]).envs(variables.iter().copied());
    let output = playing.current_dir("/").uid(uid).gid(gid).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Every existing call, as another user.
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

/// Polls, as another user, for the messages of a session.
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

/// Runs the program as another user. A program that does not end is ended, and then its status is 124.
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

/// The number of calls refused by a replica.
pub(crate) async fn refused(cluster: &Cluster, door: &str, reason: &str) -> usize {
    let (code, text) = cluster.page(0, "/metrics").await;
    assert_eq!(code, 200, "{text}");
    let series = format!("allclear_access_refusals_total{{door=\"{door}\",reason=\"{reason}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series)).unwrap().parse().unwrap()
}

/// The log lines of a replica about these refusals.
pub(crate) fn told(cluster: &Cluster, door: &str, reason: &str) -> Vec<serde_json::Value> {
    let log = cluster.log(0);
    let lines = log.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let is_it = |line: &serde_json::Value| line["door"] == door && line["reason"] == reason;
    lines.filter(|line| line["message"] == "call refused" && is_it(line)).collect()
}
