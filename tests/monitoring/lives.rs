//! An event is handled by real processes, and the metrics of all replicas reflect the event.

use std::cell::RefCell;

use serde_json::json;

use super::cluster::Cluster;
use super::exposition::{Exposition, sum};
use super::promtool;
use super::workload::hook;

const ALL: [usize; 3] = [0, 1, 2];

/// Compares whole numbers.
fn same(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-9
}

async fn until_sum(cluster: &Cluster, places: &[usize], series: &str, wanted: f64) {
    let is_there = async || same(sum(cluster, places, series).await, wanted);
    cluster.until_true(&format!("{series} is {wanted}"), is_there).await;
}

/// Waits for a scrape with all these values.
async fn until_told(cluster: &Cluster, place: usize, wanted: &[(&str, f64)]) -> Exposition {
    let last = RefCell::new(None);
    let is_told = async || {
        let told = Exposition::of(cluster, place).await;
        let all = wanted.iter().all(|(series, value)| same(told.value(series), *value));
        last.replace(Some(told));
        all
    };
    cluster.until_true(&format!("{wanted:?}"), is_told).await;
    last.into_inner().expect("a scrape")
}

#[tokio::test]
async fn the_whole_life_of_an_event_is_counted_once_over_all_replicas() {
    crate::left_out::long!();
    let hooks = vec![hook("checkpoint"), hook("drain").waits_for("gate").expects(0), hook("restore")];
    let cluster = Cluster::with_hooks(hooks).await;
    let order = json!({ "type": "Reboot", "vm": "db-0", "start_delay": "24h" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    let runs = |event: &_| blocked_by(event, "hook_running");
    cluster.until_event(1, &id, "waiting for its drain", runs).await;
    let overdue = async || Exposition::of(&cluster, 1).await.value("allclear_hook_overdue_seconds") > 0.0;
    cluster.until_true("the drain is past the end that it expected", overdue).await;

    let wanted = [
        ("allclear_events_open{stage=\"preparing\"}", 1.0),
        ("allclear_events_blocked{blocker=\"hook_running\"}", 1.0),
        ("allclear_hooks_running{phase=\"drain\"}", 1.0),
        ("allclear_replicas_reachable", 3.0),
        ("allclear_metadata_channel{state=\"healthy\"}", 1.0),
        ("allclear_metadata_channels_healthy", 3.0),
        ("allclear_has_quorum", 1.0),
        ("allclear_ready", 1.0),
        ("allclear_holds", 0.0),
        ("allclear_approvals_total{outcome=\"accepted\",reason=\"prepared\"}", 0.0),
    ];
    let told = until_told(&cluster, 1, &wanted).await;
    assert!(told.value("allclear_event_blocked_seconds{blocker=\"hook_running\"}") > 0.0);
    assert!(told.value("allclear_next_notice_end_timestamp_seconds") > 0.0);
    assert!(told.value("allclear_log_size_bytes") > 0.0);
    until_sum(&cluster, &ALL, "allclear_is_leader", 1.0).await;

    let (code, _, error) = cluster.says(2, &["hold", &id, "--until", "1h", "--reason", "a test"]);
    assert_eq!(code, 0, "{error}");
    until_sum(&cluster, &ALL, "allclear_holds", 3.0).await;
    assert!(Exposition::of(&cluster, 0).await.value("allclear_hold_end_timestamp_seconds") > 0.0);
    let (code, _, error) = cluster.says(2, &["release", &id, "--reason", "a test"]);
    assert_eq!(code, 0, "{error}");

    cluster.hooks.open("gate");
    cluster.until_approved(1, &id).await;
    until_sum(&cluster, &ALL, "allclear_events_blocked{blocker=\"waiting_for_platform\"}", 3.0).await;
    cluster.cloud.start(&id).await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;

    let accepted = "allclear_approvals_total{outcome=\"accepted\",reason=\"prepared\"}";
    until_sum(&cluster, &ALL, accepted, 1.0).await;
    until_sum(&cluster, &ALL, "allclear_announce_to_approval_seconds_count", 1.0).await;
    for phase in ["checkpoint", "drain", "restore"] {
        let done = format!("allclear_hook_attempts_total{{outcome=\"done\",phase={phase:?}}}");
        until_sum(&cluster, &[0], &done, 1.0).await;
        until_sum(&cluster, &ALL, &done, 1.0).await;
        until_sum(&cluster, &ALL, &format!("allclear_hook_duration_seconds_count{{phase={phase:?}}}"), 1.0).await;
    }
    for place in ALL {
        let told = Exposition::of(&cluster, place).await;
        assert!(told.value("allclear_metadata_polls_total{result=\"document\"}") > 0.0);
        assert!(told.value("allclear_metadata_last_success_timestamp_seconds") > 1.0e9);
        assert!(told.value("allclear_event_last_start_timestamp_seconds{cause=\"approved\"}") > 1.0e9);
        assert!(same(told.value("allclear_takeovers_total{rung=\"4\"}"), 0.0));
        assert!(!told.text.contains(&id), "an event's id is in the metrics");
        promtool::check_metrics(&told.text);
    }
}

fn blocked_by(event: &allclear::wire::pb::allclear::operator::v1::Event, code: &str) -> bool {
    event.blocker.as_ref().is_some_and(|blocker| blocker.code == code)
}

#[tokio::test]
async fn a_failed_hook_and_an_approval_from_elsewhere_are_told() {
    let failing = hook("drain").with("attempts = 1").exits(1, "no standby");
    let cluster = Cluster::with_hooks(vec![failing]).await;
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": "db-1", "notice": "24h" });
    let id = cluster.cloud.announce(order).await;
    cluster.until_event(0, &id, "waiting", |event| blocked_by(event, "too_early")).await;
    until_told(&cluster, 0, &[("allclear_events_blocked{blocker=\"too_early\"}", 1.0)]).await;
    cluster.cloud.approve_as("db-2", &id).await;
    cluster.until_stage(0, &id, "started").await;
    until_at(&cluster, "allclear_event_last_start_timestamp_seconds{cause=\"approved_elsewhere\"}").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;

    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": "db-1" })).await;
    cluster.until_event(0, &id, "failed", |event| blocked_by(event, "hook_failed")).await;
    until_sum(&cluster, &ALL, "allclear_hook_attempts_total{outcome=\"failed\",phase=\"drain\"}", 1.0).await;
    until_told(&cluster, 0, &[("allclear_events_blocked{blocker=\"hook_failed\"}", 1.0)]).await;
}

async fn until_at(cluster: &Cluster, series: &str) {
    let is_there = async || Exposition::of(cluster, 0).await.value(series) > 1.0e9;
    cluster.until_true(series, is_there).await;
}

#[tokio::test]
async fn who_acts_for_another_counts_on_which_rung() {
    crate::left_out::long!();
    // On a slow machine, a leader must not be mistaken for a silent leader.
    let patient = Cluster::of(&["db-0", "db-1", "db-2"]).also("cluster.heartbeat", "250ms");
    let mut cluster = patient.also("cluster.election_timeout", "2s").start().await;
    let leader = cluster.leader(0).await;
    let others: Vec<usize> = ALL.into_iter().filter(|place| *place != leader).collect();
    assert!(same(sum(&cluster, &ALL, "allclear_takeovers_total{rung=\"2\"}").await, 0.0));
    cluster.kill(leader);
    until_sum(&cluster, &others, "allclear_takeovers_total{rung=\"2\"}", 1.0).await;
    until_sum(&cluster, &others, "allclear_replicas_reachable", 4.0).await;
    until_sum(&cluster, &others, "allclear_replicas_suspect", 2.0).await;
    cluster.start(leader);
    cluster.ready().await;
    until_sum(&cluster, &ALL, "allclear_replicas_suspect", 0.0).await;

    // A leadership transfer is no takeover.
    let led = cluster.leader(0).await;
    let (code, _, error) = cluster.says(0, &["leader", "transfer"]);
    assert_eq!(code, 0, "{error}");
    let moved = async || cluster.leader(0).await != led;
    cluster.until_true("another leader", moved).await;
    until_sum(&cluster, &ALL, "allclear_is_leader", 1.0).await;
    assert!(same(sum(&cluster, &others, "allclear_takeovers_total{rung=\"2\"}").await, 1.0));
    assert!(same(sum(&cluster, &[leader], "allclear_takeovers_total{rung=\"2\"}").await, 0.0));
}

#[tokio::test]
async fn a_secondary_that_approves_alone_counts_it_and_nobody_else_does() {
    let mut cluster = Cluster::of(&["db-0", "db-1"]).also("cluster.takeover_after", "2s").start().await;
    let leader = cluster.leader(0).await;
    let secondary = 1 - leader;
    cluster.kill(leader);
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": leader })).await;
    let is_told = async || {
        let told = Exposition::of(&cluster, secondary).await;
        same(told.value("allclear_has_quorum"), 0.0)
            && same(told.value("allclear_events_blocked{blocker=\"no_quorum\"}"), 1.0)
    };
    cluster.until_true("no quorum", is_told).await;
    cluster.until_approved(secondary, &id).await;
    let alone = "allclear_approvals_total{outcome=\"accepted\",reason=\"takeover\"}";
    until_sum(&cluster, &[secondary], alone, 1.0).await;
    until_sum(&cluster, &[secondary], "allclear_takeovers_total{rung=\"4\"}", 1.0).await;
    cluster.start(leader);
    cluster.ready().await;
    assert!(same(sum(&cluster, &[leader], alone).await, 0.0));
}

#[tokio::test]
async fn who_posts_for_a_leader_that_sees_nothing_counts_it() {
    crate::left_out::long!();
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).also("metadata.stall_after", "2s").start().await;
    let leader = cluster.leader(0).await;
    let nothing = json!({ "vm": format!("db-{leader}"), "fault": { "kind": "empty" }, "on": "get" });
    cluster.cloud.fault(nothing).await;
    let stalled = "allclear_metadata_channel{state=\"stalled\"}";
    until_sum(&cluster, &[leader], stalled, 1.0).await;
    until_sum(&cluster, &ALL, "allclear_metadata_channels_healthy", 6.0).await;
    assert!(same(sum(&cluster, &ALL, stalled).await, 1.0));
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": (leader + 1) % 3 })).await;
    cluster.until_stage((leader + 1) % 3, &id, "started").await;
    // On a slow machine the leader has transferred leadership before, which counts as well.
    let is_counted = async || sum(&cluster, &ALL, "allclear_takeovers_total{rung=\"3\"}").await >= 1.0;
    cluster.until_true("a takeover for a stalled channel", is_counted).await;
    assert!(same(sum(&cluster, &ALL, "allclear_takeovers_total{rung=\"4\"}").await, 0.0));
}
