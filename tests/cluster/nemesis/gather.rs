//! Collection of the records: the platform's list of events, the requests to the platform, the hooks' own log, and the
//! replicas' lists of events.

use std::time::{SystemTime, UNIX_EPOCH};

use allclear::grpc::client::OperatorConnection;
use serde_json::Value;

use super::super::cluster::Cluster;
use super::record::{Announced, Moment, Post, Run, Story};

pub(super) fn now() -> Moment {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Moment::try_from(since.as_millis()).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn moment(value: &Value) -> Option<Moment> {
    value.as_str()?.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_millisecond)
}

/// The events as the platform knows the events now; `is_calm` is known from `before`.
pub(super) async fn events(cluster: &Cluster, before: &[Announced]) -> Vec<Announced> {
    let event = |event: Value| Announced {
        id: text(&event["id"]),
        kind: text(&event["type"]),
        is_users: event["source"] == "User",
        vms: event["resources"].as_array().unwrap().iter().map(text).collect(),
        duration_s: event["duration_s"].as_i64().unwrap(),
        at: moment(&event["announced_at"]).unwrap(),
        accepted: moment(&event["accepted"]["at"]).map(|at| (at, text(&event["accepted"]["by"]))),
        ended: moment(&event["ended_at"]),
        is_calm: before.iter().any(|known| known.is_calm && event["id"] == known.id.as_str()),
    };
    cluster.cloud.events().await.into_iter().map(event).collect()
}

pub(super) async fn posts(cluster: &Cluster) -> Vec<Post> {
    let mut found = Vec::new();
    for request in cluster.cloud.posts().await {
        for event in request["approval"]["events"].as_array().into_iter().flatten() {
            let at = moment(&request["at"]).unwrap();
            found.push(Post { at, vm: text(&request["vm"]), event: text(&event["id"]).to_lowercase() });
        }
    }
    found
}

/// Reads a line for each begin and each end; the processes are distinguished by pid.
pub(super) fn runs(cluster: &Cluster) -> Vec<Run> {
    let mut found: Vec<Run> = Vec::new();
    for line in cluster.hooks.written().lines() {
        let words: Vec<_> = line.split(' ').collect();
        let [vm, workload, phase, what, intent, event, attempt, pid, on, at, code] = words[..] else {
            panic!("the hooks' log has a line that no hook writes: {line}");
        };
        let at = at.parse().unwrap();
        if what == "end" {
            let is_it = |run: &&mut Run| run.attempt == attempt && run.pid == pid && run.ended.is_none();
            if let Some(run) = found.iter_mut().find(is_it) {
                run.ended = Some((at, code.parse().unwrap()));
            }
            continue;
        }
        let [vm, workload, phase, intent, event, attempt, pid, on] =
            [vm, workload, phase, intent, event, attempt, pid, on].map(str::to_owned);
        found.push(Run { event, vm, workload, phase, intent, attempt, on, pid, began: at, ended: None });
    }
    found
}

/// The stories of the replicas that answer.
pub(super) async fn stories(cluster: &Cluster) -> Vec<Story> {
    let mut found = Vec::new();
    for replica in &cluster.replicas {
        let ask = async { OperatorConnection::connect(&replica.socket).await.ok()?.events().await.ok() };
        if let Some(list) = ask.await {
            let mut events = list.events;
            events.sort_by(|one, other| one.id.cmp(&other.id));
            found.push((replica.name.clone(), events));
        }
    }
    found
}
