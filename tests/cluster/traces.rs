//! An event is a single trace across replicas: exported once, after the event is closed, regardless of the collector's
//! failures.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use axum::body::Bytes;
use serde_json::json;

use super::cluster::{Cluster, Plan};
use super::collector::{Collector, Span, decoded, decoder};
use super::evidence::measured_by;
use super::plan::free_addresses;
use super::workload::hook;

/// Records the trace context of each attempt.
const SCRIPT: &str = r#"#!/bin/sh
echo "$ALLCLEAR_ATTEMPT [$ALLCLEAR_TRACEPARENT]" >> "$FOLDER/traceparents"
"#;

fn plan(vms: &[&'static str]) -> Plan {
    let on_a_peer = hook("failover").with("runs_on = \"peer\"");
    Cluster::of(vms).workload("database", vec![on_a_peer, hook("drain"), hook("restore")]).script(SCRIPT)
}

async fn traced(collector: &str, also: &str) -> Cluster {
    let table = format!("\n[tracing]\nendpoint = \"http://{collector}\"\n{also}");
    plan(&["db-0", "db-1", "db-2"]).tables(vec![table; 3]).start().await
}

/// Runs an event from the announcement until every replica has closed the event.
async fn played(cluster: &Cluster) -> String {
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "notice": "10m" })).await;
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    measured_by(cluster, 1, &id).await;
    cluster.closed_everywhere(&id).await;
    id
}

async fn received(cluster: &Cluster, collector: &Collector, requests: usize) -> Vec<Bytes> {
    cluster.until_true("a trace", async || collector.requests().len() >= requests).await;
    collector.requests().into_iter().map(|(_, body)| body).collect()
}

/// The trace context of each attempt.
fn traceparents(cluster: &Cluster) -> BTreeMap<String, String> {
    let lines = std::fs::read_to_string(cluster.folder.path().join("traceparents")).unwrap();
    let pairs = lines.lines().map(|line| line.split_once(' ').unwrap());
    pairs.map(|(attempt, told)| (attempt.into(), told.trim_matches(['[', ']']).into())).collect()
}

/// The span's identity, and the span's fields that are equal in a repeated export.
fn story(span: &Span) -> String {
    json!([span["trace"], span["id"], span["parent"], span["name"], span["resource"], span["start"], span["end"]])
        .to_string()
}

fn stories(interpreter: &Path, body: &[u8], cluster: &Cluster) -> BTreeSet<String> {
    decoded(interpreter, body, cluster.folder.path()).iter().map(story).collect()
}

/// The replicas' own counts of trace exports with this outcome.
async fn counted(cluster: &Cluster, outcome: &str) -> usize {
    let mut sum = 0;
    for place in (0..3).filter(|place| cluster.pid(*place).is_some()) {
        let (_, text) = cluster.page(place, "/metrics").await;
        let series = format!("allclear_trace_exports_total{{outcome=\"{outcome}\"}} ");
        let line = text.lines().find_map(|line| line.strip_prefix(&series)).unwrap();
        sum += line.parse::<usize>().unwrap();
    }
    sum
}

#[tokio::test]
async fn an_event_is_one_trace_of_all_its_replicas_and_each_hook_is_told_of_its_own_span() {
    let Some(interpreter) = decoder() else { return };
    let address = free_addresses(1).remove(0);
    let collector = Collector::at(&address).await;
    let cluster = traced(&address, "headers = { x-tenant = \"databases\" }\n").await;
    let id = played(&cluster).await;
    received(&cluster, &collector, 1).await;
    cluster.a_few_polls_later().await;
    let requests = collector.requests();
    assert_eq!((requests.len(), counted(&cluster, "accepted").await), (1, 1), "once, and not once per replica");
    let (headers, body) = &requests[0];
    assert_eq!(headers["content-type"], "application/x-protobuf");
    assert_eq!(headers["x-tenant"], "databases");

    let spans = decoded(&interpreter, body, cluster.folder.path());
    let traces: BTreeSet<_> = spans.iter().map(|span| span["trace"].as_str().unwrap()).collect();
    assert_eq!(traces.len(), 1, "{spans:#?}");
    let (roots, others): (Vec<_>, Vec<_>) = spans.iter().partition(|span| span["parent"] == "");
    assert_eq!(roots.len(), 1, "{spans:#?}");
    let root = roots[0];
    assert_eq!((&root["name"], &root["attributes"]["allclear.event.id"]), (&json!("event Reboot"), &json!(id)));
    assert_eq!((&root["kind"], &root["status"]), (&json!("SPAN_KIND_CONSUMER"), &json!("STATUS_CODE_UNSET")));
    for span in &others {
        assert_eq!(span["parent"], root["id"]);
        assert!(span["start"].as_u64() >= root["start"].as_u64() && span["end"].as_u64() <= root["end"].as_u64());
    }
    let mut names: Vec<_> = others.iter().map(|span| span["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["approve", "impact", "prepare", "restore", "run drain", "run failover", "run restore"]);
    for span in &spans {
        let resource = &span["resource"];
        assert_eq!((&resource["service.name"], &resource["service.namespace"]), (&json!("allclear"), &json!("tests")));
        assert_eq!(span["scope"], "allclear");
    }
    let instance = |name: &str| {
        let found = others.iter().find(|span| span["name"] == name).unwrap();
        found["resource"]["service.instance.id"].as_str().unwrap().to_owned()
    };
    assert_eq!((instance("run drain"), instance("run restore")), ("db-0".into(), "db-0".into()));
    assert!(["db-1", "db-2"].contains(&&*instance("run failover")));
    assert_eq!(root["resource"].get("service.instance.id"), None);

    let told = traceparents(&cluster);
    assert_eq!(told.len(), 3, "{told:?}");
    for (attempt, parent) in told {
        let is_it = |span: &&&Span| span["attributes"]["allclear.hook.attempt"] == attempt;
        let span = others.iter().find(is_it).unwrap();
        let expected = format!("00-{}-{}-01", span["trace"].as_str().unwrap(), span["id"].as_str().unwrap());
        assert_eq!(parent, expected, "{attempt}");
    }
}

#[tokio::test]
async fn a_collector_that_is_down_delays_nothing_and_gets_the_trace_when_it_is_back() {
    crate::left_out::long!();
    let address = free_addresses(1).remove(0);
    let cluster = traced(&address, "").await;
    played(&cluster).await;
    let is_tried = async || (0..3).any(|place| cluster.log(place).contains("trace not exported yet"));
    cluster.until_true("an attempt", is_tried).await;
    let collector = Collector::at(&address).await;
    collector.is_busy_for(2);
    let bodies = received(&cluster, &collector, 3).await;
    cluster.until_true("an end", async || counted(&cluster, "accepted").await == 1).await;
    assert!(bodies.iter().all(|body| body == &bodies[0]), "the same trace each time");
    assert_eq!((counted(&cluster, "refused").await, counted(&cluster, "given_up").await), (0, 0));
}

#[tokio::test]
async fn a_new_leader_tells_of_what_closed_shortly_before_in_the_same_words() {
    let Some(interpreter) = decoder() else { return };
    let address = free_addresses(1).remove(0);
    let collector = Collector::at(&address).await;
    let mut cluster = traced(&address, "").await;
    played(&cluster).await;
    received(&cluster, &collector, 1).await;
    let leader = cluster.leader(0).await;
    cluster.kill(leader);
    let bodies = received(&cluster, &collector, 2).await;
    let told: Vec<_> = bodies.iter().map(|body| stories(&interpreter, body, &cluster)).collect();
    assert!(told.iter().all(|story| story == &told[0]), "{told:#?}");
}

#[tokio::test]
async fn hooks_are_told_of_no_trace_where_none_is_exported() {
    let cluster = plan(&["db-0", "db-1", "db-2"]).start().await;
    played(&cluster).await;
    let told = traceparents(&cluster);
    assert_eq!(told.into_values().collect::<Vec<_>>(), ["", "", ""]);
}
