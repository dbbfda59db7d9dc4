//! Connections with an abnormal end: reset, cut, lost before or after the request took effect.

use std::io::ErrorKind;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fake_cloud::stage::{LIMIT, Stage, reboot};

fn address(endpoint: &str) -> SocketAddr {
    endpoint.strip_prefix("http://").unwrap().parse().unwrap()
}

/// The bytes of a socket, without an HTTP client that would hide faults.
async fn raw(stage: &Stage, vm: &str, verb: &str, body: &str) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(address(&stage.endpoint(vm))).await?;
    let length = body.len();
    let request = format!(
        "{verb} /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: here\r\nMetadata: true\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    tokio::time::timeout(LIMIT, socket.read_to_end(&mut answer)).await.expect("the connection ends")?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_connection_is_reset_and_a_lost_request_is_closed_without_an_answer() {
    let stage = Stage::open(&["db-0"]).await;
    stage.fault_once("db-0", "get", json!({ "kind": "reset" })).await;
    assert_eq!(raw(&stage, "db-0", "GET", "").await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    stage.fault_once("db-0", "get", json!({ "kind": "request_lost" })).await;
    assert_eq!(raw(&stage, "db-0", "GET", "").await.unwrap(), "");
    assert!(raw(&stage, "db-0", "GET", "").await.unwrap().starts_with("HTTP/1.1 200 OK"));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_truncated_answer_ends_in_the_middle_of_its_body() {
    let stage = Stage::open(&["db-0"]).await;
    stage.fault_once("db-0", "get", json!({ "kind": "truncated" })).await;
    let answer = raw(&stage, "db-0", "GET", "").await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("content-length: 37") && body == r#"{"DocumentIncarnat"#, "{answer}");
    stage.fault_once("db-0", "get", json!({ "kind": "truncated" })).await;
    assert!(stage.try_get("db-0").await.is_err(), "a client can tell");
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_are_lost_before_or_after_they_took_effect() {
    let stage = Stage::open(&["db-0"]).await;
    for (fault, took_effect) in [
        (json!({ "kind": "request_lost" }), false),
        (json!({ "kind": "reset" }), false),
        (json!({ "kind": "status", "status": 500 }), false),
        (json!({ "kind": "redirect" }), false),
        (json!({ "kind": "reply_lost" }), true),
        (json!({ "kind": "truncated" }), true),
        (json!({ "kind": "empty" }), true),
        (json!({ "kind": "html" }), true),
    ] {
        let id = stage.announce(reboot("db-0")).await;
        stage.fault_once("db-0", "post", fault.clone()).await;
        let reply = stage.try_approve("db-0", &id).await;
        let is_ok = reply.as_ref().is_ok_and(|reply| reply.status == 200);
        assert_eq!(is_ok, fault["kind"] == "empty" || fault["kind"] == "html", "{fault}: {reply:?}");
        assert_eq!(!stage.event(&id).await["accepted"].is_null(), took_effect, "{fault}");
        let post = stage.requests("?method=POST").await.pop().unwrap();
        assert_eq!(post["approval"]["took_effect"], json!(took_effect), "{fault}");
        assert_eq!(post["approval"]["events"][0]["id"], json!(id), "{fault}");
        assert_eq!(post["fault"], fault["kind"]);
    }
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_approval_takes_effect_after_its_client_has_given_up() {
    let stage = Stage::open(&["db-0"]).await;
    let id = stage.announce(reboot("db-0")).await;
    stage.fault_once("db-0", "post", json!({ "kind": "late_effect", "ms": 500 })).await;
    assert!(stage.try_approve("db-0", &id).await.is_err());
    let event = stage.until(&format!("/events/{id}"), "the approval", |event| !event["accepted"].is_null()).await;
    assert_eq!(event["accepted"]["by"], "db-0");
    let post = &stage.requests("?method=POST").await[0];
    assert_eq!((&post["status"], &post["approval"]["took_effect"]), (&Value::Null, &json!(true)));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_approval_has_taken_effect_before_its_answer_and_a_hanging_one_never_does() {
    let stage = Stage::open(&["db-0"]).await;
    for (fault, took_effect) in [(json!({ "kind": "slow", "ms": 600_000 }), true), (json!({ "kind": "hang" }), false)] {
        let id = stage.announce(reboot("db-0")).await;
        stage.fault_once("db-0", "post", fault).await;
        let seen = stage.until("/requests?method=POST", "the approval", |log| {
            log["requests"].as_array().is_some_and(|log| {
                log.iter().any(|post| post["body"].to_string().contains(&id) && !post["approval"].is_null())
            })
        });
        tokio::select! {
            reply = stage.try_approve("db-0", &id) => panic!("answered: {reply:?}"),
            _ = seen => {}
        }
        assert_eq!(!stage.event(&id).await["accepted"].is_null(), took_effect);
    }
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_connections_that_are_kept_alive_are_the_same() {
    let stage = Stage::open(&["db-0"]).await;
    let alive = allclear::http_client::plain().unwrap().build().unwrap();
    let ask = async || alive.get(stage.events_url("db-0", "2020-07-01")).header("Metadata", "true").send().await;
    assert_eq!(ask().await.unwrap().text().await.unwrap().len(), 37);
    stage.fault_once("db-0", "get", json!({ "kind": "hang" })).await;
    tokio::select! {
        answer = ask() => panic!("answered: {answer:?}"),
        _ = stage.until("/requests", "the request", |log| log["requests"][1]["fault"] == "hang") => {}
    }
    assert_eq!(ask().await.unwrap().status(), 200);
    let log = stage.requests("").await;
    assert_eq!(
        log.iter().map(|request| &request["status"]).collect::<Vec<_>>(),
        [&json!(200), &Value::Null, &json!(200)]
    );
    stage.cloud.shutdown().await;
}
