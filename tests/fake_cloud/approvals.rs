//! The effects of an approval, and the answers.

use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_cloud::stage::{Stage, reboot};

/// Stays Scheduled after the approval: other tenants of the host have not agreed.
fn waiting(vms: &Value) -> Value {
    json!({ "type": "Freeze", "vms": vms, "notice": "1h", "other_tenants": "1h" })
}

#[tokio::test(flavor = "multi_thread")]
async fn one_approval_counts_for_all_vms_and_the_next_changes_nothing() {
    let stage = Stage::open(&["db-0", "db-1", "db-2"]).await;
    let id = stage.announce(waiting(&json!(["db-0", "db-1"]))).await;
    // Any VM of the set may approve, in either case.
    assert_eq!(stage.approve("db-2", &id.to_lowercase()).await.status, 200);
    let first = stage.event(&id).await["accepted"].clone();
    assert_eq!(first["by"], "db-2");
    assert_eq!(stage.approve("db-0", &id).await.status, 200);
    let event = stage.event(&id).await;
    assert_eq!(event["accepted"], first);
    assert_eq!(event["status"], "Scheduled", "accepted is not started");
    let approvals = stage.read("/approvals").await["approvals"].clone();
    let told: Vec<_> = approvals.as_array().unwrap().iter().map(|entry| (&entry["by"], &entry["result"])).collect();
    assert_eq!(told, [(&json!("db-2"), &json!("accepted")), (&json!("db-0"), &json!("repeated"))]);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_event_starts_and_nobody_need_approve_at_not_before() {
    let stage = Stage::open(&["db-0"]).await;
    let approved = stage.announce(reboot("db-0")).await;
    stage.approve("db-0", &approved).await;
    let path = format!("/events/{approved}");
    let event = stage.until(&path, "the start", |event| event["status"] == "Started").await;
    assert_eq!(event["started"]["cause"], "approved");
    let waited = stage.announce(json!({ "type": "Reboot", "vms": [0], "notice": 300, "impact": "1h" })).await;
    let event = stage.until(&format!("/events/{waited}"), "NotBefore", |event| event["status"] == "Started").await;
    assert_eq!((&event["started"]["cause"], &event["accepted"]), (&json!("not_before"), &Value::Null));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_approvals_are_refused_and_do_nothing() {
    let stage = Stage::open(&["db-0"]).await;
    let id = stage.announce(reboot("db-0")).await;
    let many: Vec<Value> = (0..101).map(|_| json!({ "EventId": id })).collect();
    let bodies = [
        String::new(),
        "{".to_owned(),
        "[]".to_owned(),
        json!({}).to_string(),
        json!({ "StartRequests": [] }).to_string(),
        json!({ "StartRequests": { "EventId": id } }).to_string(),
        json!({ "StartRequests": [{ "Id": id }] }).to_string(),
        json!({ "StartRequests": [{ "EventId": 7 }] }).to_string(),
        json!({ "StartRequests": many }).to_string(),
        format!("{{\"StartRequests\":[{{\"EventId\":\"{id}\"}}],\"x\":\"{}\"}}", "x".repeat(70_000)),
    ];
    for body in bodies {
        let url = stage.events_url("db-0", "2020-07-01");
        let request = stage.http.post(url).header("Metadata", "true").body(body.clone());
        assert_eq!(request.send().await.unwrap().status(), 400, "{body:.80}");
    }
    assert_eq!(stage.event(&id).await["accepted"], Value::Null);
    let last = stage.requests("?method=POST").await.pop().unwrap();
    assert_eq!((&last["status"], &last["approval"]), (&json!(400), &Value::Null));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_and_finished_ids_are_refused_and_a_started_one_is_not() {
    let stage = Stage::open(&["db-0"]).await;
    let (started, finished) = (stage.announce(reboot("db-0")).await, stage.announce(reboot("db-0")).await);
    stage.order(&format!("/events/{started}/start"), json!({})).await;
    stage.order(&format!("/events/{finished}/cancel"), json!({})).await;
    let ids = ["3F2504E0-4F89-41D3-9A0C-0305E82C3301", &started, &finished];
    let mut statuses = Vec::new();
    for id in ids {
        statuses.push(stage.approve("db-0", id).await.status);
    }
    assert_eq!(statuses, [400, 200, 400]);
    let posts = stage.requests("?method=POST").await;
    let results: Vec<&str> = posts.iter().filter_map(|post| post["approval"]["events"][0]["result"].as_str()).collect();
    assert_eq!(results, ["unknown", "started", "finished"]);
    assert!(posts.iter().all(|post| post["approval"]["took_effect"] == json!(false)));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn several_ids_in_one_request_are_all_approved_and_the_worst_decides_the_status() {
    let stage = Stage::open(&["db-0"]).await;
    let (one, two) = (stage.announce(waiting(&json!([0]))).await, stage.announce(waiting(&json!([0]))).await);
    let url = stage.events_url("db-0", "2020-07-01");
    let body = json!({ "StartRequests": [{ "EventId": one }, { "EventId": "no such" }, { "EventId": two }] });
    assert_eq!(stage.ask(Method::POST, &url, Some(body)).await.unwrap().status, 400);
    for id in [one, two] {
        assert_eq!(stage.event(&id).await["accepted"]["by"], "db-0");
    }
    stage.cloud.shutdown().await;
}
