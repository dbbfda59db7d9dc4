//! The control interface: announcing, changing and driving events, the log, the speed, starting over.

use std::num::NonZeroU32;

use allclear::fake_cloud::Options;
use reqwest::Method;
use serde_json::{Value, json};

use crate::stage::{Stage, reboot};

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_announced_changed_and_canceled() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage.announce(reboot("db-0")).await;
    let before = stage.get("db-0").await.events().remove(0);
    let change = json!({ "notice": "1h", "vms": [0, "db-1"], "duration_s": 30 });
    stage.expect(Method::PATCH, &format!("/events/{id}"), Some(change)).await;
    let after = stage.get("db-0").await.events().remove(0);
    assert_ne!(after["NotBefore"], before["NotBefore"]);
    assert_eq!((&after["Resources"], &after["DurationInSeconds"]), (&json!(["db-0", "db-1"]), &json!(30)));
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
    assert_eq!(
        (&shown["vms"][0]["impacted"], &shown["events"][0]["started"]["cause"]),
        (&json!(true), &json!("ordered"))
    );
    assert_eq!(order("start").await, 409);
    assert_eq!(order("cancel").await, 409);
    assert_eq!(order("finish").await, 200);
    assert_eq!(order("finish").await, 409);
    assert_eq!(order("explode").await, 404);
    let change = stage.control(Method::PATCH, &format!("/events/{id}"), Some(json!({ "duration_s": 1 }))).await;
    assert_eq!(change.status, 409);
    let nobody = stage.control(Method::POST, "/events/no-such/start", None).await;
    assert_eq!(nobody.status, 404);
    assert!(nobody.json()["error"].as_str().unwrap().contains("no-such"));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_else_approves() {
    let stage = Stage::open(&["db-0"]).await;
    let id = stage.announce(reboot("db-0")).await;
    let answer = stage.order(&format!("/events/{id}/approve"), json!({ "by": "an administrator" })).await;
    assert_eq!(answer["result"], "accepted");
    let event = stage.event(&id).await;
    assert_eq!(event["accepted"]["by"], "an administrator");
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
    assert_eq!((&get["headers"]["metadata"], &get["fault"]), (&json!("true"), &Value::Null));
    let at = get["at"].as_str().unwrap();
    assert!(at.len() == "2026-01-01T00:00:00.000Z".len() && at.ends_with('Z'), "{at}");
    assert_eq!(post["body"], json!({ "StartRequests": [{ "EventId": id }] }).to_string());
    assert_eq!(post["approval"], json!({ "events": [{ "id": id, "result": "accepted" }], "took_effect": true }));
    assert_eq!(stage.requests("?after=1").await.len(), 1);
    assert_eq!(stage.requests("?vm=DB-0").await.len(), 1);
    stage.control(Method::DELETE, "/requests", None).await;
    assert_eq!(stage.requests("").await.len(), 0);
    stage.get("db-0").await;
    assert_eq!(stage.requests("").await[0]["seq"], 3, "numbers are never used again");
    let lines = std::fs::read_to_string(&path).unwrap();
    let written: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written[..2], log);
    assert_eq!(written.len(), 3);
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
async fn a_reset_cloud_is_as_it_was_in_the_beginning_but_for_its_ids() {
    let stage = Stage::open(&["db-0"]).await;
    let id = stage.announce(reboot("db-0")).await;
    stage.fault("db-0", "both", json!({ "kind": "refused" })).await;
    stage.expect(Method::PATCH, "/habits", Some(json!({ "habits": { "dates": "iso8601" } }))).await;
    stage.expect(Method::PATCH, "/platform", Some(json!({ "zonal": true }))).await;
    stage.order("/reset", json!({})).await;
    let fresh = Stage::open(&["db-0"]).await;
    let [mut shown, mut expected] = [stage.read("/state").await, fresh.read("/state").await];
    for whole in [&mut shown, &mut expected] {
        whole["now"] = Value::Null;
        whole["vms"][0]["endpoint"] = Value::Null;
        whole["vms"][0]["path_endpoint"] = Value::Null;
    }
    assert_eq!(shown, expected);
    assert_ne!(stage.announce(reboot("db-0")).await, id);
    stage.cloud.shutdown().await;
    fresh.cloud.shutdown().await;
}
