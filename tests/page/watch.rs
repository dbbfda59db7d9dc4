//! The status as events, without a browser.

use serde_json::Value;

use super::cluster::Cluster;

/// Reads until the text holds something.
async fn read_until(answer: &mut reqwest::Response, text: &mut String, wanted: &str) {
    while !text.contains(wanted) {
        let chunk = answer.chunk().await.unwrap().expect("it goes on");
        text.push_str(std::str::from_utf8(&chunk).unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_is_told_the_status_and_its_changes_until_the_replica_stops() {
    let mut cluster = Cluster::of(&["db-0"]).start().await;
    let http = allclear::http_client::plain().unwrap().build().unwrap();
    let mut answer = http.get(format!("{}/v1/watch", cluster.replicas[0].page)).send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    let mut text = String::new();
    read_until(&mut answer, &mut text, "\n\n").await;
    let told: Value = serde_json::from_str(text.lines().next().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    let asked: Value = serde_json::from_str(&cluster.page(0, "/v1/status").await.1).unwrap();
    let fields = |status: &Value| status.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(fields(&told), fields(&asked));
    read_until(&mut answer, &mut text, "event: alive").await;
    let id = cluster.cloud.announce(serde_json::json!({ "type": "Reboot", "vm": 0 })).await;
    read_until(&mut answer, &mut text, &id).await;
    cluster.stop(0);
    while answer.chunk().await.unwrap().is_some() {}
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_than_sixty_four_listen_at_once() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let http = allclear::http_client::plain().unwrap().build().unwrap();
    let address = format!("{}/v1/watch", cluster.replicas[0].page);
    let mut listening = Vec::new();
    for _ in 0..64 {
        listening.push(http.get(&address).send().await.unwrap());
    }
    assert!(listening.iter().all(|answer| answer.status() == 200));
    assert_eq!(http.get(&address).send().await.unwrap().status(), 503);
    assert_eq!(cluster.page(0, "/v1/status").await.0, 200);
    listening.pop();
    cluster.until_true("a free place", async || http.get(&address).send().await.unwrap().status() == 200).await;
}
