//! A client for the real service runs unchanged, except for the address.

use std::process::Stdio;

use serde_json::json;
use tokio::process::Command;

use crate::fake_cloud::stage::{LIMIT, Stage};

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_cloud/client.py");

async fn run_client(endpoint: &str, vm: &str) -> String {
    let child = Command::new("python3")
        .args([CLIENT, endpoint, vm])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap_or_else(|error| panic!("cannot run python3 ({error}): install python3, this test needs it"));
    let ended = tokio::time::timeout(LIMIT * 2, child.wait_with_output()).await.expect("the client ends");
    let output = ended.expect("the client's output");
    let (said, complained) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "the client failed; it said\n{said}\nand complained\n{complained}");
    said.into_owned()
}

fn short_reboot() -> serde_json::Value {
    json!({ "type": "Reboot", "source": "User", "vms": ["db-1"], "notice": "15m",
            "start_delay": 100, "impact": 1500, "linger": 500 })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_real_service_sees_approves_and_sees_the_end() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage.announce(short_reboot()).await;
    let said = run_client(&stage.endpoint("db-1"), "db-1").await;
    let lines: Vec<&str> = said.lines().collect();
    let [scheduled, approved, started, gone] = lines[..] else { panic!("unexpected lines: {said}") };
    assert!(scheduled.starts_with("Scheduled Reboot User ") && scheduled.ends_with(" GMT"), "{said}");
    assert_eq!([approved, started, gone], ["approved", "Started Reboot User -", "gone"]);
    let event = stage.event(&id).await;
    assert_eq!((event["status"].as_str(), event["accepted"]["by"].as_str()), (Some("Finished"), Some("db-1")));
    assert_eq!(event["started"]["cause"], "approved");
    let posts = stage.requests("?method=POST").await;
    let [post] = &posts[..] else { panic!("{posts:?}") };
    assert_eq!((&post["approval"]["took_effect"], &post["status"]), (&json!(true), &json!(200)));
    stage.cloud.shutdown().await;
}
