//! What an operator writes: the beginning of an id, a name, and the choice of events in a list.

use std::process::Command;

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::operators::{done, happened, refused, who};
use super::workload::hook;

/// The ids that a command lists, in order.
fn listed(cluster: &Cluster, place: usize, arguments: &[&str]) -> Vec<String> {
    let (code, out, err) = cluster.says(place, &[&["events", "--json"], arguments].concat());
    assert_eq!((code, err.as_str()), (0, ""), "{arguments:?}");
    let list: Value = serde_json::from_str(&out).unwrap();
    list["events"].as_array().unwrap().iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_found_by_the_beginning_of_its_id_and_who_asks_is_kept() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let [first, second, third] = ["a11c0001-0000", "a11c0001-ffff", "b0b0c0de-0000"];
    for (vm, id) in [first, second, third].iter().enumerate() {
        cluster.cloud.announce(json!({ "id": id, "type": "Freeze", "vm": vm, "notice": "1h" })).await;
    }
    for place in 0..3 {
        cluster.until(place, "aware of all", |status| status.events.len() == 3).await;
    }
    let (code, out, err) = cluster.says(1, &["explain", "B0B0", "--json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap()["id"], third);
    in_each_format(&cluster, "b0b0", third);
    assert_eq!(cluster.page(1, "/v1/events/b0b0c0de").await.0, 200);

    // Several events begin so; nothing is guessed, and nothing is done.
    let why = refused(&cluster, 1, &["hold", "a11c", "--until", "1h", "--reason", "a backup runs"]);
    assert!(why.contains("2 events begin with \"a11c\"") && why.contains(first) && why.contains(second), "{why}");
    let (status, problem) = cluster.page(1, "/v1/events/a11c0001").await;
    assert!(status == 404 && problem.contains("write more of the id"), "{problem}");
    // A shorter beginning selects nothing.
    let (code, _, err) = cluster.says(1, &["hold", "b0b", "--until", "1h", "--reason", "a backup runs"]);
    assert!(code == 1 && err.contains("\"b0b\" is too short for an event: write at least 4 letters"), "{err}");

    let hold = ["hold", "a11c0001-f", "--until", "1h", "--reason", "a backup runs", "--as", "Ada L."];
    let (code, told, err) = cluster.says(1, &hold);
    assert!(code == 0 && told.contains(&format!("{second} starts all the same: its notice ends at")), "{told}{err}");
    let event = cluster.until_event(2, second, "held", |event| event.hold.is_some()).await;
    let ada = format!("Ada L. (uid {}) on db-1", nix::unistd::geteuid());
    assert_eq!(event.hold.as_ref().map(|hold| hold.by.as_str()), Some(ada.as_str()));
    done(&cluster, 2, &["release", "a11c0001-f", "--reason", "it has ended"]);
    let event = cluster.until_event(0, second, "released", |event| event.hold.is_none()).await;
    assert!(happened(&event, [&format!("released by {}", who(2)), "it has ended"]), "{event:#?}");
    let (code, _, err) = cluster.says(1, &["resume", "--reason", "x", "--as", "two\nlines"]);
    assert!(code == 2 && err.contains("--as"), "{err}");
}

/// The formats of one answer.
fn in_each_format(cluster: &Cluster, event: &str, id: &str) {
    let told = |format: &str| done(cluster, 1, &["events", "--vm", "db-2", "--output", format]);
    let json: Value = serde_json::from_str(&told("json")).unwrap();
    assert_eq!(json["events"][0]["id"], id);
    let yaml = told("yaml");
    assert!(yaml.starts_with("---\nevents:\n  - ") && yaml.contains(&format!("    id: \"{id}\"\n")), "{yaml}");
    assert!(told("table").lines().any(|line| line.contains(id) && !line.contains('"')));
    let (code, _, err) = cluster.says(1, &["explain", event, "--json", "--output", "yaml"]);
    assert!(code == 2 && err.contains("cannot be used with"), "{err}");
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_listed_by_vm_by_type_and_by_what_went_wrong() {
    let cluster = Cluster::with_hooks(vec![hook("drain").exits(3, "no room")]).await;
    let fails = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "notice": "1h" })).await;
    let freeze =
        cluster.cloud.announce(json!({ "type": "Freeze", "vm": 1, "notice": "1h", "source": "Platform" })).await;
    let failed = |event: &Event| event.hooks.iter().any(|hook| hook.outcome.as_deref() == Some("failed"));
    cluster.until_event(2, &fails, "failed", failed).await;
    cluster.until_event(2, &freeze, "seen", |_| true).await;
    assert_eq!(listed(&cluster, 2, &["--failed"]), [fails.as_str()]);
    assert_eq!(listed(&cluster, 2, &["--vm", "_DB-1"]), [freeze.as_str()]);
    assert_eq!(listed(&cluster, 2, &["--type", "reboot", "--limit", "5"]), [fails.as_str()]);
    assert_eq!(listed(&cluster, 2, &["--vm", "db-1", "--type", "Reboot"]), [""; 0]);
    // Started before its hooks had room to run, and listed after the end too.
    let early = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 2, "notice": "1h" })).await;
    cluster.seen_by_all(&early).await;
    cluster.cloud.start(&early).await;
    cluster.until_stage(2, &early, "started").await;
    cluster.cloud.finish(&early).await;
    cluster.closed_everywhere(&early).await;
    let mut found = listed(&cluster, 2, &["--failed"]);
    found.sort_unstable();
    let mut expected = [fails, early];
    expected.sort_unstable();
    assert_eq!(found, expected);

    // The endpoint of the environment, as a path and as other clients of gRPC write it.
    let socket = cluster.replicas[2].socket.display().to_string();
    for endpoint in [socket.clone(), format!("unix://{socket}")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_allclear"));
        let output = command.args(["status", "--json"]).env("ALLCLEAR_ENDPOINT", endpoint).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let output =
        Command::new(env!("CARGO_BIN_EXE_allclear")).args(["status", "--endpoint", "db-0:7421"]).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && told.contains("not a port"), "{told}");
}
