//! Hooks that are requested over HTTP, by replicas that may be killed before the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::cluster::Cluster;
use super::server::{Server, answer};
use super::workload::hook;

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_killed_meanwhile_goes_on_asking_and_does_not_post_again() {
    let go = Arc::new(AtomicBool::new(false));
    let is_let_go = go.clone();
    let server = Server::start(move |request| match request.method.as_str() {
        "POST" => answer(202, &[("Location", "/jobs/1")], ""),
        _ if is_let_go.load(Ordering::SeqCst) => answer(200, &[], ""),
        _ => answer(202, &[], &json!({ "progress": "draining" }).to_string()),
    })
    .await;
    let drain = hook("drain").at(server.url("/drain"));
    let mut cluster = Cluster::with_hooks(vec![drain, hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let tells = |event: &allclear::wire::pb::allclear::operator::v1::Event| {
        event.hooks.iter().any(|hook| hook.progress.as_deref() == Some("draining"))
    };
    cluster.until_event(1, &id, "draining", tells).await;
    cluster.kill(0);
    cluster.start(0);
    cluster.ready().await;
    go.store(true, Ordering::SeqCst);
    let event = cluster.until_stage(1, &id, "started").await;
    assert_eq!(event.hooks[0].outcome.as_deref(), Some("done"));
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;

    let posts = server.requests("POST");
    assert_eq!((posts.len(), posts[0].path.as_str()), (1, "/drain"));
    let facts: serde_json::Value = serde_json::from_str(&posts[0].body).unwrap();
    let step = facts["step"].as_str().unwrap();
    assert_eq!(posts[0].headers["idempotency-key"], step);
    assert!(step.starts_with(&format!("{id}@")) && step.contains("/db-0/database/drain/"), "{step}");
    let attempt = facts["attempt"].as_str().unwrap().strip_prefix(&format!("{id}.")).unwrap();
    let (term, sequence) = facts["fence"].as_str().unwrap().split_once('.').unwrap();
    assert!(term.parse::<u64>().unwrap() > 0 && sequence == attempt, "{facts}");
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
