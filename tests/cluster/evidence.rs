//! The records of a finished event: timeline, measures, and the archive of all events.

use std::collections::BTreeSet;
use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Step};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::cluster::Cluster;
use super::operators::done;
use super::workload::hook;

/// Much longer than a tick on a busy machine.
const STANDS_STILL: Duration = Duration::from_secs(2);

fn measured(event: &Event) -> Option<u64> {
    event.measures.as_ref().and_then(|measures| measures.impact_observed_ms)
}

/// Waits until a replica reports the impact observed by the VM.
pub(crate) async fn measured_by(cluster: &Cluster, place: usize, id: &str) -> Event {
    cluster.until_event(place, id, "measured", |event| event.stage == "closed" && measured(event).is_some()).await
}

fn export(cluster: &Cluster, place: usize, arguments: &[&str]) -> Vec<Value> {
    let (code, out, err) = cluster.says(place, &[&["events", "--export"], arguments].concat());
    assert_eq!(code, 0, "{err}");
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn find<'a>(event: &'a Event, part: &str) -> &'a Step {
    event.timeline.iter().find(|step| step.what.contains(part)).unwrap_or_else(|| panic!("no {part}: {event:#?}"))
}

#[tokio::test]
async fn every_replica_tells_every_step_of_an_event_with_who_and_why_and_how_long_its_vm_stood_still() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "notice": "10m" })).await;
    cluster.seen_by_all(&id).await;
    // A held event begins no further disruptive hook.
    cluster.until_true("the drain begins", async || cluster.hooks.begun() == ["drain"]).await;
    done(&cluster, 1, &["hold", &id, "--until", "1h", "--reason", "backup runs"]);
    cluster.hooks.open("gate");
    cluster.until_true("the drain", async || cluster.hooks.ended() == ["drain"]).await;
    done(&cluster, 2, &["release", &id, "--reason", "backup is done"]);
    cluster.until_stage(1, &id, "started").await;
    cluster.freeze(0);
    sleep(STANDS_STILL).await;
    cluster.thaw(0);
    cluster.ready().await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    measured_by(&cluster, 1, &id).await;

    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(find(&event, "Reboot by User was first seen").who.as_deref(), Some("db-0, db-1, db-2"));
    let chosen = find(&event, "policy chose the treatment prepare");
    assert_eq!((chosen.who.as_deref(), &chosen.why), (Some("policy"), &event.rule));
    assert_eq!(find(&event, "drain of database on db-0: run begins").who.as_deref(), Some("db-0"));
    assert_eq!(find(&event, "drain of database on db-0: done").who.as_deref(), Some("db-0"));
    let held = find(&event, "held by");
    assert!(held.who.as_ref().unwrap().ends_with(" on db-1"), "{held:?}");
    assert_eq!(held.why.as_deref(), Some("backup runs"));
    assert_eq!(find(&event, "released by").why.as_deref(), Some("backup is done"));
    assert_eq!(find(&event, "approval assigned to").why.as_deref(), Some("prepared"));
    assert_eq!(find(&event, ": accepted").who, Some(event.approvals[0].approver.clone()));
    assert_eq!(find(&event, "the event started because allclear approved the event").why.as_deref(), Some("approved"));
    assert_eq!(find(&event, "db-0 did not run for").who.as_deref(), Some("db-0"));
    find(&event, "the event is over: completed");
    let stages: Vec<_> = event.timeline.iter().filter(|step| !step.what.contains(' ')).map(|it| &*it.what).collect();
    // A document may show the start before the outcome of the post is recorded; then no stage `approved` is entered.
    let others: Vec<_> = stages.iter().copied().filter(|stage| *stage != "approved").collect();
    assert_eq!(others, ["announced", "preparing", "claimed", "started", "restoring", "closed"]);
    assert!(stages.len() == others.len() || stages[3] == "approved", "{stages:?}");

    let measures = event.measures.unwrap();
    assert!(measures.notice_ms.is_some_and(|notice| notice <= 600_000), "{measures:?}");
    assert!(measures.prepare_ms <= measures.all_clear_ms, "{measures:?}");
    assert_eq!(measures.impacts.len(), 1, "{measures:?}");
    assert!(measures.impact_observed_ms.unwrap() >= 1_500, "{measures:?}");
    let page: Value = serde_json::from_str(&cluster.page(2, &format!("/v1/events/{id}")).await.1).unwrap();
    for place in 0..3 {
        assert_eq!(export(&cluster, place, &[]), std::slice::from_ref(&page), "asked of {place}");
    }
}

#[tokio::test]
async fn a_timeline_lists_steps_in_causal_order() {
    let cluster = Cluster::with_hooks(vec![hook("checkpoint"), hook("drain")]).await;
    let vm = (cluster.leader(0).await + 1) % 3;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": vm, "notice": "10m" })).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;

    let event = cluster.closed_everywhere(&id).await;
    let on = format!("of database on db-{vm}");
    let expected = [
        "announced".into(),
        "Reboot by User was first seen".into(),
        "policy chose the treatment prepare".into(),
        "preparing".into(),
        format!("checkpoint {on}: run begins"),
        format!("checkpoint {on}: done"),
        format!("drain {on}: run begins"),
        format!("drain {on}: done"),
        "claimed".into(),
        "approval assigned to".into(),
    ];
    let steps: Vec<_> = event.timeline.iter().map(|step| &step.what).collect();
    let is_listed = expected.iter().zip(&steps).all(|(begin, step)| step.starts_with(begin));
    assert!(is_listed && steps.len() > expected.len(), "{steps:#?}");
}

#[tokio::test]
async fn a_replica_that_was_restarted_by_the_event_tells_how_long_it_was_away() {
    let mut cluster = Cluster::with_hooks(vec![hook("restore")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "start_delay": 3_000 })).await;
    cluster.until_stage(1, &id, "started").await;
    cluster.kill(0);
    sleep(STANDS_STILL).await;
    cluster.cloud.finish(&id).await;
    cluster.start(0);
    cluster.ready().await;
    let event = measured_by(&cluster, 1, &id).await;
    assert!(measured(&event).unwrap() >= 1_500, "{event:#?}");
    let other = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    cluster.until_stage(0, &other, "started").await;
    cluster.cloud.finish(&other).await;
    let event = measured_by(&cluster, 2, &other).await;
    assert!(measured(&event).unwrap() < 1_500, "it did not stand still: {event:#?}");
}

#[tokio::test]
async fn the_archive_holds_more_than_a_list_shows_each_event_once_and_the_oldest_first() {
    const ALL: usize = 130;
    let cluster = Cluster::of(&["db-0"]).start().await;
    // A hundred approvals and more would take long.
    done(&cluster, 0, &["pause", "--until", "1h", "--reason", "too many"]);
    let mut ids = BTreeSet::new();
    for _ in 0..ALL {
        ids.insert(cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await);
    }
    cluster.until_true("all of them", async || export(&cluster, 0, &[]).len() == ALL).await;
    for id in &ids {
        cluster.cloud.cancel(id).await;
    }
    let closed = |events: &[Value]| events.iter().filter(|event| event["stage"] == "closed").count();
    cluster.until_true("their end", async || closed(&export(&cluster, 0, &[])) == ALL).await;
    let events = export(&cluster, 0, &[]);
    let told: BTreeSet<_> = events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!((events.len(), told), (ALL, ids));
    let steps = |event: &Value| event["timeline"].as_array().unwrap().clone();
    let announced_at = |event: &Value| steps(event).into_iter().find(|step| step["what"] == "announced").unwrap();
    let announced: Vec<_> = events.iter().map(|event| announced_at(event)["at"].to_string()).collect();
    assert!(announced.is_sorted(), "{announced:?}");
    let mut closed: Vec<_> =
        events.iter().map(|event| &event["timeline"].as_array().unwrap().last().unwrap()["at"]).collect();
    closed.sort_by_key(|at| at.as_str());
    let since = closed[ALL - 7].as_str().unwrap();
    let late = closed.iter().filter(|at| at.as_str() >= Some(since)).count();
    assert_eq!(export(&cluster, 0, &["--since", since]).len(), late);
    let (code, _, err) = cluster.says(0, &["events", "--export", "--since", "yesterday"]);
    assert_eq!(code, 2);
    assert!(err.contains("2026-01-31T12:00:00Z"), "it tells what it takes: {err}");
    let list: Value = serde_json::from_str(&cluster.page(0, "/v1/events").await.1).unwrap();
    assert_eq!(list["events"].as_array().unwrap().len(), 100);
}
