//! One wrong wall clock of three, or of two, the leader's or another replica's: nothing happens early or late, and
//! operators are notified of the replica with the wrong clock. The wall clocks are set with libfaketime (Debian
//! package `libfaketime`), the monotonic clocks stay unchanged.

use std::path::PathBuf;
use std::time::Instant;

use allclear::wire::pb::allclear::operator::v1::Status;
use jiff::Timestamp;
use serde_json::json;

use super::cluster::{Cluster, Plan};
use super::workload::hook;

/// How far the clocks of db-0, db-1 and db-2 are ahead, in seconds.
const AHEAD: [i64; 3] = [0, 3600, 0];

/// Path of libfaketime, as installed by distributions.
pub(crate) fn faketime() -> Option<PathBuf> {
    let below_each = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let folders = ["/usr/lib", "/usr/local/lib"].into_iter().flat_map(below_each);
    let folders = folders.chain(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    folders.map(|folder| folder.join("faketime/libfaketime.so.1")).find(|path| path.is_file())
}

/// Three replicas with clocks as in `AHEAD`.
fn three() -> Option<Plan> {
    with_clocks(&["db-0", "db-1", "db-2"], &AHEAD)
}

/// Replicas whose clocks are `ahead` seconds ahead. `None` where clocks cannot be set.
fn with_clocks(vms: &[&'static str], ahead: &[i64]) -> Option<Plan> {
    let Some(library) = faketime() else {
        crate::left_out::lacks("libfaketime");
        return None;
    };
    let clock = |ahead: i64| {
        let word = |value: &str| value.to_owned();
        vec![
            ("LD_PRELOAD", library.display().to_string()),
            ("FAKETIME", format!("{ahead:+}s")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", word("1")),
            ("NO_FAKE_STAT", word("1")),
        ]
    };
    Some(Cluster::of(vms).environments(ahead.iter().map(|ahead| clock(*ahead)).collect()))
}

async fn led_by(cluster: &Cluster, name: &str) {
    let place = cluster.place_of(name);
    let leads = async || cluster.status(place).await.is_some_and(|status| status.role == "leader" && status.quorum);
    cluster
        .until_true(&format!("led by {name}"), async || {
            leads().await || {
                cluster.says(place, &["leader", "transfer", name]);
                leads().await
            }
        })
        .await;
}

/// The status shows which clocks are wrong, and by how much.
fn differences_are_shown(status: &Status) -> bool {
    status
        .replicas
        .iter()
        .zip(AHEAD)
        .all(|(replica, ahead)| replica.clock_difference_ms.is_some_and(|shown| shown.abs_diff(ahead * 1000) <= 1000))
}

/// The deadline given to a hook matches the remaining time given to the hook, on the wall clock of the hook's VM.
fn is_on_its_own_wall(vm: &str, left_ms: u64, deadline: Timestamp) -> bool {
    let ahead = AHEAD[usize::from(vm.as_bytes()[3] - b'0')] * 1000;
    let expected = Timestamp::now().as_millisecond() + ahead + i64::try_from(left_ms).unwrap();
    // The hook began a moment ago.
    (-20_000..1000).contains(&(deadline.as_millisecond() - expected))
}

#[tokio::test]
async fn a_leader_whose_clock_is_an_hour_ahead_prepares_and_approves_as_any_other() {
    let Some(plan) = three() else { return };
    let hooks = vec![hook("drain").expects(30).waits_for("gate"), hook("restore")];
    let cluster = plan.workload("database", hooks).start().await;
    led_by(&cluster, "db-1").await;
    for place in 0..3 {
        cluster.until(place, "aware of the clocks", differences_are_shown).await;
    }
    let (_, text, _) = cluster.says(2, &["status"]);
    let shown = |name: &str| text.lines().find(|line| line.starts_with(&format!("  {name}"))).unwrap().to_owned();
    assert!(shown("db-1 ").contains("s ahead of the cluster's"), "{text}");
    for name in ["db-0 ", "db-2 "] {
        assert!(!shown(name).contains("CLOCK"), "{text}");
    }
    let log = cluster.log(1);
    for (name, expected) in [("db-0", 0), ("db-1", 1), ("db-2", 0)] {
        let about = format!("\"replica\":\"{name}\"");
        let is_warning = |line: &&str| line.contains("WARN") && line.contains("wall clock") && line.contains(&about);
        assert_eq!(log.lines().filter(is_warning).count(), expected, "warnings about {name}: {log}");
    }

    let order = json!({ "type": "Redeploy", "source": "Platform", "vms": [1, 2], "notice": "10m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("both drains", async || cluster.hooks.begun() == ["drain", "drain"]).await;
    for (vm, left_ms, deadline) in cluster.hooks.times() {
        assert!((30_000..=60_000).contains(&left_ms), "{vm} has {left_ms} ms");
        assert!(is_on_its_own_wall(&vm, left_ms, deadline), "{vm} is to end by {deadline}");
    }
    let event = cluster
        .until_event(0, &id, "with expected ends", |event| event.hooks.iter().all(|hook| hook.expected_end.is_some()))
        .await;
    for hook in &event.hooks {
        let read = |text: &str| text.parse::<Timestamp>().unwrap();
        let ends = read(hook.expected_end.as_deref().unwrap());
        assert!(ends > read(&hook.started_at) && ends < read(&hook.deadline), "{hook:?}");
    }
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await.len(), 0, "approved before the hooks were done");
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{:?}", event.hooks);
    assert_eq!(cluster.hooks.ended(), ["drain", "drain", "restore", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test]
async fn a_deadline_stays_where_it_is_when_a_leader_with_another_clock_takes_over() {
    let Some(plan) = three() else { return };
    let cluster = plan.workload("database", vec![hook("drain").waits_for("gate"), hook("restore")]).start().await;
    led_by(&cluster, "db-0").await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0, "notice": "10m" })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    // The clock of `db-1` is an hour ahead of the leader that set the deadline.
    led_by(&cluster, "db-1").await;
    for place in 0..3 {
        cluster.until(place, "aware of the clocks", differences_are_shown).await;
    }
    cluster.a_few_polls_later().await;
    let event = cluster.event(1, &id).await.unwrap();
    assert_eq!((event.stage.as_str(), event.hooks.len()), ("preparing", 1), "{event:?}");
    assert_eq!(event.hooks[0].outcome, None, "the hook's time ended early");
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{:?}", event.hooks);
    assert_eq!(cluster.hooks.ended(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

const DAY: i64 = 24 * 3600;

/// A replica has warned that the wall clock of `name` is wrong.
fn is_named(cluster: &Cluster, name: &str) -> bool {
    let about = format!("\"replica\":\"{name}\"");
    let is_it = |line: &str| line.contains("WARN") && line.contains("wall clock") && line.contains(&about);
    (0..cluster.replicas.len()).any(|place| cluster.log(place).lines().any(is_it))
}

/// The clock of `db-0` is wrong from the first start on, and `db-0` leads.
async fn is_prepared_beside_a_wrong_clock(vms: &[&'static str], ahead: i64) {
    let clocks: Vec<i64> = vms.iter().map(|vm| if *vm == "db-0" { ahead } else { 0 }).collect();
    let Some(plan) = with_clocks(vms, &clocks) else { return };
    let began = Instant::now();
    let mut cluster = plan.workload("database", vec![hook("drain"), hook("restore")]).cold().await;
    cluster.start_all();
    cluster.until_true("told whose clock is wrong", async || is_named(&cluster, "db-0")).await;
    println!("{vms:?}, {ahead} s: named {:?} after the first start", began.elapsed());
    cluster.ready().await;
    led_by(&cluster, "db-0").await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vms": [1], "notice": "10m" });
    let id = cluster.cloud.announce(order).await;
    let announced = Timestamp::now();
    cluster.seen_by_all(&id).await;
    let event = cluster.until_stage(0, &id, "started").await;
    let (not_before, first_seen) = (event.not_before.unwrap(), event.timeline[0].at.clone());
    let read = |text: &str| text.parse::<Timestamp>().unwrap().as_second();
    assert!((590..=610).contains(&(read(&not_before) - announced.as_second())), "{not_before}");
    assert!(read(&first_seen).abs_diff(announced.as_second()) <= 10, "{first_seen}: the cluster's time is wrong");
    for (_, left_ms, _) in cluster.hooks.times() {
        assert!((50_000..=60_000).contains(&left_ms), "{left_ms} ms were left");
    }
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{:?}", event.hooks);
    assert_eq!(cluster.hooks.ended(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    for (place, vm) in vms.iter().enumerate() {
        assert_eq!(is_named(&cluster, vm), place == 0, "{vm}");
        let status = cluster.status(place).await.unwrap();
        assert_eq!(status.platform_difference_ms, Some(0), "{vm}");
    }
}

#[tokio::test]
async fn of_three_a_clock_that_is_a_day_ahead_changes_nothing() {
    is_prepared_beside_a_wrong_clock(&["db-0", "db-1", "db-2"], DAY).await;
}

#[tokio::test]
async fn of_three_a_clock_that_is_a_day_behind_changes_nothing() {
    is_prepared_beside_a_wrong_clock(&["db-0", "db-1", "db-2"], -DAY).await;
}

#[tokio::test]
async fn of_a_pair_a_clock_that_is_a_day_ahead_changes_nothing() {
    is_prepared_beside_a_wrong_clock(&["db-0", "db-1"], DAY).await;
}

#[tokio::test]
async fn of_a_pair_a_clock_that_is_a_day_behind_changes_nothing() {
    is_prepared_beside_a_wrong_clock(&["db-0", "db-1"], -DAY).await;
}

#[tokio::test]
async fn one_that_is_alone_goes_by_the_platforms_time() {
    is_prepared_alone(DAY).await;
    is_prepared_alone(-DAY).await;
}

async fn is_prepared_alone(ahead: i64) {
    let Some(plan) = with_clocks(&["db-0"], &[ahead]) else { return };
    let cluster = plan.workload("database", vec![hook("drain")]).start().await;
    cluster.until_true("told that its clock is wrong", async || is_named(&cluster, "db-0")).await;
    let now = cluster.status(0).await.unwrap().now.parse::<Timestamp>().unwrap();
    assert!(now.as_second().abs_diff(Timestamp::now().as_second()) <= 10, "{now}");
    let id =
        cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0, "notice": "10m", "source": "Platform" })).await;
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.begun(), ["drain"]);
}

#[tokio::test]
async fn where_nobody_can_tell_which_clock_of_two_is_right_an_event_is_prepared_and_the_end_of_its_notice_unknown() {
    crate::left_out::long!();
    let Some(plan) = with_clocks(&["db-0", "db-1"], &[-DAY, 0]) else { return };
    let mut cluster = plan.workload("database", vec![hook("drain"), hook("restore")]).cold().await;
    cluster.cloud.fault(json!({ "on": "get", "fault": { "kind": "undated" } })).await;
    cluster.start_all();
    cluster.ready().await;
    let is_told = |place: usize| cluster.log(place).contains("the wall clocks of the voters differ");
    cluster.until_true("a word about the clocks", async || is_told(0) || is_told(1)).await;
    let is_in_doubt =
        |status: &Status| status.warnings.iter().any(|it| it.text.contains("nothing confirms the cluster's time"));
    for place in 0..2 {
        cluster.until(place, "warning that the time is in doubt", is_in_doubt).await;
    }
    let order = json!({ "type": "Redeploy", "source": "Platform", "vms": [1], "notice": "10m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.not_before, None, "whose time is it?");
    assert_eq!(cluster.hooks.ended(), ["drain"]);
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    assert_eq!(cluster.status(0).await.unwrap().platform_difference_ms, None);
    // Now one endpoint sends the time.
    cluster.cloud.clear_faults_of("db-1").await;
    cluster.until_true("told whose clock is wrong", async || is_named(&cluster, "db-0")).await;
    for place in 0..2 {
        cluster.until(place, "sure of the time", |status| !is_in_doubt(status)).await;
    }
    cluster.until(1, "told Azure's time", |status| status.platform_difference_ms == Some(0)).await;
    let id =
        cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vms": [1], "notice": "10m" })).await;
    let event = cluster.until_stage(0, &id, "started").await;
    assert!(event.not_before.is_some(), "{event:?}");
}

#[tokio::test]
async fn an_endpoint_whose_time_is_not_the_clusters_is_told_and_believed_by_nobody() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
    cluster
        .cloud
        .fault(json!({ "vm": "db-2", "on": "get", "fault": { "kind": "dated", "ahead_ms": 3_600_000 } }))
        .await;
    let is_behind =
        |status: &Status| status.platform_difference_ms.is_some_and(|ahead| (-3_601_000..-3_590_000).contains(&ahead));
    cluster.until(2, "told that its endpoint differs", is_behind).await;
    cluster
        .until_true("warned", async || cluster.log(2).contains("the cluster's time differs from Azure's time"))
        .await;
    let (_, page) = cluster.page(2, "/metrics").await;
    let shown = page.lines().find(|line| line.starts_with("allclear_platform_clock_difference_seconds")).unwrap();
    assert!(shown.contains(" -359") || shown.contains(" -360"), "{shown}");
    let (_, text, _) = cluster.says(2, &["status"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("s behind Azure's time, by the metadata endpoint of this VM"), "{text}");
    let status = cluster.status(0).await.unwrap();
    assert_eq!(status.platform_difference_ms, Some(0));
    assert!(status.warnings.is_empty(), "{:?}", status.warnings);
    assert!(status.replicas.iter().all(|replica| replica.clock_difference_ms.is_some_and(|it| it.abs() < 1_000)));
}
