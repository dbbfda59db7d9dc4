//! Input from outside is bounded: wrong, excessive and oversized requests are refused with a message, and do no harm.

use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

use crate::fake_cloud::stage::{Stage, reboot};

async fn refused(stage: &Stage, method: Method, path: &str, body: Value, (status, word): (u16, &str)) {
    let reply = stage.control(method, path, Some(body.clone())).await;
    let shown: String = body.to_string().chars().take(200).collect();
    assert_eq!(reply.status, status, "{path} {shown}: {reply:?}");
    assert!(reply.json()["error"].as_str().is_some_and(|error| error.contains(word)), "{path} {shown}: {reply:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_orders_are_refused_with_words() {
    let stage = Stage::open(&["db-0"]).await;
    let with = |field: &str, value: Value| {
        let mut event = reboot("db-0");
        event[field] = value;
        event
    };
    for (event, word) in [
        (json!({}), "type"),
        (json!([]), "not valid"),
        (with("vms", json!([])), "1 to 100"),
        (with("vms", json!([5])), "position 5"),
        (with("vms", json!([true])), "VM"),
        (with("vms", json!(vec!["x"; 101])), "1 to 100"),
        (with("notice", json!("400days")), "366 days"),
        (with("notice", json!(-1)), "0 or more"),
        (with("description", json!("x".repeat(5_000))), "shorten"),
        (with("moves", json!(vec![json!({ "after": 1, "notice": 1 }); 33])), "at most 32"),
        (with("duration_s", json!(-2)), "-1 for unknown"),
        (with("typo", json!(1)), "typo"),
    ] {
        refused(&stage, Method::POST, "/events", event, (400, word)).await;
    }
    refused(&stage, Method::POST, "/events", with("after", json!({ "event": "no such" })), (404, "no such")).await;
    for (fault, word) in [
        (json!({ "kind": "explode" }), "explode"),
        (json!({ "kind": "slow", "ms": 600_001 }), "600000"),
        (json!({ "kind": "slow" }), "ms"),
        (json!({ "kind": "status", "status": 42 }), "42"),
        (json!({ "kind": "oversized", "bytes": 1_000_000_000 }), "use less"),
    ] {
        refused(&stage, Method::POST, "/faults", json!({ "fault": fault }), (400, word)).await;
    }
    let hang = json!({ "kind": "hang" });
    refused(&stage, Method::POST, "/faults", json!({ "times": 0, "fault": hang }), (400, "1 or more")).await;
    refused(&stage, Method::POST, "/faults", json!({ "vm": "db-9", "fault": hang }), (404, "db-9")).await;
    assert_eq!(stage.read("/events").await["events"], json!([]));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_faults_and_bodies_have_an_upper_limit() {
    let stage = Stage::open(&["db-0"]).await;
    stage.announce(json!({ "id": "known", "type": "Reboot", "vms": [0] })).await;
    refused(&stage, Method::POST, "/events", json!({ "id": "KNOWN", "type": "Reboot", "vms": [0] }), (409, "exists"))
        .await;
    for _ in 0..999 {
        stage.announce(json!({ "type": "Reboot", "vms": [0], "at": "10days" })).await;
    }
    refused(&stage, Method::POST, "/events", reboot("db-0"), (409, "not ended")).await;
    stage.order("/events/known/cancel", json!({})).await;
    stage.announce(reboot("db-0")).await;
    for _ in 0..100 {
        stage.fault_once("db-0", "post", json!({ "kind": "hang" })).await;
    }
    refused(&stage, Method::POST, "/faults", json!({ "fault": { "kind": "hang" } }), (409, "clear")).await;
    let huge = json!({ "type": "x".repeat(300_000) });
    assert_eq!(stage.control(Method::POST, "/events", Some(huge)).await.status, 413);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_bytes_do_no_harm() {
    let stage = Stage::open(&["db-0"]).await;
    let endpoint = stage.endpoint("db-0");
    let port = endpoint.strip_prefix("http://").unwrap();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(200_000));
    let odd = "POST /metadata/scheduledevents?api-version=2020-07-01 HTTP/1.1\r\nHost: \u{fe0f}\r\nMetadata: true\r\n\
               Content-Length: 5\r\n\r\n\u{0}\u{1}ab"
        .to_owned();
    for bytes in ["\u{0}\u{16}\u{3}".to_owned(), "GET / HTTP/9\r\n\r\n".to_owned(), long, odd] {
        let mut socket = tokio::net::TcpStream::connect(port).await.unwrap();
        // The server may close the connection during the write.
        let _ = socket.write_all(bytes.as_bytes()).await;
        drop(socket);
        assert_eq!(stage.get("db-0").await.status, 200);
    }
    for path in ["/control/events/%00", "/control/events/..%2f..", "/%ff", "/control/x"] {
        let url = format!("http://{}{path}", stage.cloud.address);
        let status = stage.ask(Method::GET, &url, None).await.unwrap().status;
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_readme_names_every_scenario_fault_and_field() {
    let stage = Stage::open(&["db-0"]).await;
    let readme = include_str!("../../src/lab/fake_cloud/README.md");
    let mut event = reboot("db-0");
    event["explode"] = json!(1);
    // The refusal lists the expected values.
    for (method, path, body, least) in
        [(Method::POST, "/faults", json!({ "fault": { "kind": "explode" } }), 16), (Method::POST, "/events", event, 22)]
    {
        let error = stage.control(method, path, Some(body)).await.json()["error"].as_str().unwrap().to_owned();
        let words: Vec<&str> = error.split('`').skip(3).step_by(2).collect();
        assert!(words.len() >= least, "{error}");
        let missing: Vec<_> = words.iter().filter(|word| !readme.contains(&format!("`{word}"))).collect();
        assert!(missing.is_empty(), "not in the README: {missing:?}");
    }
    for (name, _) in allclear::fake_cloud::SCENARIOS {
        assert!(readme.contains(&format!("`{name}`")), "{name}");
    }
    stage.cloud.shutdown().await;
}
