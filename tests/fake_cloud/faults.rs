//! Every fault of an answer, as received by a client.

use std::time::{Duration, Instant};

use allclear::imds::{ApiVersion, Endpoint, Timeouts};
use allclear::replica::clock;
use reqwest::Method;
use serde_json::{Value, json};

use crate::fake_cloud::stage::{Stage, reboot};

#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_tell_nothing_come_with_status_200() {
    let stage = Stage::open(&["db-0"]).await;
    stage.announce(reboot("db-0")).await;
    let good = stage.get("db-0").await.text;
    let spoilt = async |fault: Value| {
        stage.fault_once("db-0", "get", fault).await;
        let reply = stage.get("db-0").await;
        assert_eq!(reply.status, 200);
        assert_eq!(stage.get("db-0").await.text, good, "once is once");
        reply.text
    };
    assert_eq!(spoilt(json!({ "kind": "empty" })).await, "");
    assert!(spoilt(json!({ "kind": "html" })).await.starts_with("<!DOCTYPE html>"));
    let error: Value = serde_json::from_str(&spoilt(json!({ "kind": "error_json" })).await).unwrap();
    assert!(error["error"].is_string() && error["Events"].is_null());
    let malformed = spoilt(json!({ "kind": "malformed" })).await;
    assert!(good.starts_with(&malformed) && serde_json::from_str::<Value>(&malformed).is_err());
    let large = spoilt(json!({ "kind": "oversized", "bytes": 2_000_000 })).await;
    assert_eq!(large.len(), 2_000_000);
    assert_eq!(large.trim_end(), good);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn json_has_the_wrong_types_where_it_is_told_to() {
    let stage = Stage::open(&["db-0"]).await;
    stage.announce(reboot("db-0")).await;
    let spoilt = async |of: &str| {
        stage.fault_once("db-0", "get", json!({ "kind": "wrong_types", "of": of })).await;
        stage.get("db-0").await.json()
    };
    assert!(spoilt("document").await.is_array());
    let incarnation = spoilt("incarnation").await;
    assert!(incarnation["DocumentIncarnation"].is_boolean() && incarnation["Events"].is_array());
    assert!(spoilt("events").await["Events"].is_object());
    assert!(spoilt("event").await["Events"][0]["EventId"].is_number());
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_status_can_be_answered_for_a_number_of_requests() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    for status in [400, 404, 405, 410, 429, 500, 503] {
        let fault = json!({ "vm": "db-0", "on": "get", "times": 2, "fault": { "kind": "status", "status": status } });
        stage.order("/faults", fault).await;
        let mut statuses = Vec::new();
        for _ in 0..3 {
            statuses.push(stage.get("db-0").await.status);
        }
        assert_eq!(statuses, [status, status, 200]);
        assert_eq!(stage.get("db-1").await.status, 200);
    }
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_stays_until_it_is_cleared_and_is_for_its_verb_only() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage.announce(reboot("db-0")).await;
    stage.order("/faults", json!({ "on": "post", "fault": { "kind": "status", "status": 503 } })).await;
    for vm in ["db-0", "db-1", "db-0"] {
        assert_eq!(stage.approve(vm, &id).await.status, 503);
        assert_eq!(stage.get(vm).await.status, 200);
    }
    assert_eq!(stage.event(&id).await["accepted"], Value::Null, "a refused approval has no effect");
    stage.order("/faults", json!({ "on": "get", "fault": { "kind": "status", "status": 500 } })).await;
    stage.control(Method::DELETE, "/faults?on=get", None).await;
    assert_eq!([stage.get("db-0").await.status, stage.approve("db-0", &id).await.status], [200, 503]);
    stage.control(Method::DELETE, "/faults?vm=db-0", None).await;
    assert_eq!(stage.approve("db-0", &id).await.status, 200);
    assert_eq!(stage.approve("db-1", &id).await.status, 503);
    stage.clear_faults().await;
    assert_eq!(stage.approve("db-1", &id).await.status, 200);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_answer_comes_late_and_a_hanging_one_never() {
    let stage = Stage::open(&["db-0"]).await;
    for (place, fault) in [json!({ "kind": "slow", "ms": 600_000 }), json!({ "kind": "hang" })].into_iter().enumerate()
    {
        stage.fault_once("db-0", "get", fault.clone()).await;
        tokio::select! {
            answer = stage.try_get("db-0") => panic!("answered: {answer:?}"),
            _ = stage.until("/requests", "the request", |log| log["requests"][place]["fault"] == fault["kind"]) => {}
        }
    }
    stage.fault_once("db-0", "get", json!({ "kind": "slow", "ms": 300 })).await;
    let begin = Instant::now();
    assert_eq!(stage.get("db-0").await.status, 200);
    assert!(begin.elapsed() >= Duration::from_millis(300), "never earlier than it was told");
    let seen = stage.requests("").await;
    let told: Vec<_> = seen.iter().map(|request| (&request["fault"], &request["status"])).collect();
    let (slow, hang) = (json!("slow"), json!("hang"));
    assert_eq!(told, [(&slow, &Value::Null), (&hang, &Value::Null), (&slow, &json!(200))]);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stale_document_stays_as_it_was() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage.announce(reboot("db-0")).await;
    stage.fault("db-0", "get", json!({ "kind": "stale" })).await;
    stage.order(&format!("/events/{id}/start"), json!({})).await;
    let old = stage.get("db-0").await.json();
    assert_eq!((&old["DocumentIncarnation"], &old["Events"][0]["EventStatus"]), (&json!(2), &json!("Scheduled")));
    assert_eq!(stage.get("db-1").await.events()[0]["EventStatus"], "Started");
    stage.clear_faults().await;
    assert_eq!(stage.get("db-0").await.events()[0]["EventStatus"], "Started");
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_follows_a_redirect_is_seen() {
    let stage = Stage::open(&["db-0"]).await;
    stage.fault("db-0", "get", json!({ "kind": "redirect" })).await;
    assert_eq!(stage.get("db-0").await.status, 302);
    assert_eq!(stage.requests("").await.len(), 1);
    let eager = allclear::http_client::plain().unwrap().redirect(reqwest::redirect::Policy::default()).build().unwrap();
    stage.clear_faults().await;
    stage.fault_once("db-0", "get", json!({ "kind": "redirect" })).await;
    eager.get(stage.events_url("db-0", "2020-07-01")).send().await.unwrap();
    assert_eq!(stage.requests("").await.last().unwrap()["path"], "/redirected");
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_tell_the_clouds_time_unless_they_are_told_otherwise() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let date = async |vm: &str| {
        let endpoint = Endpoint::new(&stage.endpoint(vm), ApiVersion::newest(), Timeouts::default()).unwrap();
        endpoint.poll().await.unwrap().date.map(|date| date.0)
    };
    // Close enough for a test: tests take less than ten seconds.
    let is_near =
        |date: Option<i64>, ahead: i64| date.is_some_and(|date| date.abs_diff(clock::now().0 + ahead) < 10_000);
    assert!(is_near(date("db-0").await, 0));
    for ahead in [86_400_000, -86_400_000] {
        stage.fault("db-0", "both", json!({ "kind": "dated", "ahead_ms": ahead })).await;
        assert!(is_near(date("db-0").await, ahead));
        assert!(is_near(date("db-1").await, 0));
        stage.clear_faults().await;
    }
    for fault in [json!({ "kind": "undated" }), json!({ "kind": "dated", "ahead_ms": i64::MAX })] {
        stage.fault("db-0", "get", fault).await;
        assert_eq!(date("db-0").await, None);
        stage.clear_faults().await;
    }
    stage.cloud.shutdown().await;
}
