//! The control interface: announcing, changing and driving events, the log, the speed.

use std::num::NonZeroU32;

use allclear::fake_cloud::Options;
use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_cloud::stage::{Stage, reboot};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_announced_changed_and_canceled() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage.announce(reboot("db-0")).await;
    let before = stage.get("db-0").await.events().remove(0);
    stage.expect(Method::PATCH, &format!("/events/{id}"), Some(json!({ "notice": "1h" }))).await;
    let after = stage.get("db-0").await.events().remove(0);
    assert_ne!(after["NotBefore"], before["NotBefore"]);
    stage.order(&format!("/events/{id}/cancel"), json!({})).await;
    assert_eq!(stage.get("db-0").await.events().len(), 0);
    assert_eq!(stage.event(&id).await["status"], "Cancelled");
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_started_and_finished_in_that_order_only() {
    let stage = Stage::open(&["db-0"]).await;
    let id = stage.announce(reboot("db-0")).await;
    let order = async |word: &str| stage.control(Method::POST, &format!("/events/{id}/{word}"), None).await.status;
    assert_eq!(order("finish").await, 409);
    assert_eq!(order("start").await, 200);
    let shown = stage.read("/state").await;
    assert_eq!((&shown["vms"][0]["name"], &shown["events"]), (&json!("db-0"), &json!([stage.event(&id).await])));
    assert_eq!(shown["events"][0]["started"]["cause"], "ordered");
    assert_eq!(order("start").await, 409);
    assert_eq!(order("cancel").await, 409);
    assert_eq!(order("finish").await, 200);
    assert_eq!(order("finish").await, 409);
    assert_eq!(order("explode").await, 404);
    let change = stage.control(Method::PATCH, &format!("/events/{id}"), Some(json!({ "notice": 1 }))).await;
    assert_eq!(change.status, 409);
    let nobody = stage.control(Method::POST, "/events/no-such/start", None).await;
    assert_eq!(nobody.status, 404);
    assert!(nobody.json()["error"].as_str().unwrap().contains("no-such"));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_log_tells_everything_and_goes_to_a_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.jsonl");
    let stage = Stage::with(Options { log: Some(path.clone()), ..Options::new(["db-0", "db-1"]) }).await;
    let id = stage.announce(reboot("db-0")).await;
    stage.get("db-0").await;
    stage.approve("db-1", &id).await;
    let log = stage.requests("").await;
    let [get, post] = &log[..] else { panic!("{log:?}") };
    assert_eq!(
        (&get["seq"], &get["vm"], &get["method"], &get["status"]),
        (&json!(1), &json!("db-0"), &json!("GET"), &json!(200))
    );
    assert_eq!(get["path"], "/metadata/scheduledevents?api-version=2020-07-01");
    assert_eq!(get["fault"], Value::Null);
    let at = get["at"].as_str().unwrap();
    assert!(at.len() == "2026-01-01T00:00:00.000Z".len() && at.ends_with('Z'), "{at}");
    assert_eq!(post["body"], json!({ "StartRequests": [{ "EventId": id }] }).to_string());
    assert_eq!(post["approval"], json!({ "events": [{ "id": id, "result": "accepted" }], "took_effect": true }));
    assert_eq!(stage.requests("?vm=DB-0").await.as_slice(), std::slice::from_ref(get));
    let lines = std::fs::read_to_string(&path).unwrap();
    let written: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written, log);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn time_runs_faster_for_what_is_written_and_not_for_numbers() {
    let speed = NonZeroU32::new(1_000).unwrap();
    let stage = Stage::with(Options { speed, ..Options::new(["db-0"]) }).await;
    let fast = json!({ "type": "Reboot", "vms": [0], "notice": "1m", "impact": "1m", "linger": "1m" });
    let slow = json!({ "type": "Reboot", "vms": [0], "notice": 600_000, "duration_s": 5 });
    let (fast, slow) = (stage.announce(fast).await, stage.announce(slow).await);
    stage.until(&format!("/events/{fast}"), "the end", |event| event["status"] == "Finished").await;
    let event = stage.event(&slow).await;
    assert_eq!((&event["status"], &event["duration_s"]), (&json!("Scheduled"), &json!(5)));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn some_events_are_shown_to_one_vm_only() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage
        .announce(json!({ "type": "Reboot", "source": "User", "vms": ["db-0"], "seen_by": [0], "notice": "15m" }))
        .await;
    assert_eq!(stage.get("db-0").await.events().len(), 1);
    assert_eq!(stage.get("db-1").await.events().len(), 0);
    assert_eq!(stage.approve("db-1", &id).await.status, 400, "it does not exist for that VM");
    assert_eq!(stage.approve("db-0", &id).await.status, 200);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn incarnations_start_again_when_told_and_the_array_stays() {
    let stage = Stage::open(&["db-0"]).await;
    let id = stage.announce(reboot("db-0")).await;
    assert_eq!(stage.get("db-0").await.json()["DocumentIncarnation"], 2);
    stage.order("/incarnation", json!({})).await;
    let again = stage.get("db-0").await;
    assert_eq!(again.json()["DocumentIncarnation"], 1);
    assert_eq!(again.events()[0]["EventId"], json!(id.to_uppercase()), "1 may already carry an event");
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_interface_describes_itself() {
    let stage = Stage::open(&["db-0"]).await;
    let reply = stage.control(Method::GET, "", None).await;
    assert!(reply.status == 200 && reply.text.contains("`POST /control/faults`"), "{reply:?}");
    stage.cloud.shutdown().await;
}
