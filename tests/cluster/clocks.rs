//! One wall clock of three is an hour ahead, the leader's or another one: nothing happens early or late by that, and people
//! are told whose it is. The clocks are set with libfaketime (Debian package `libfaketime`), the steady ones stay as they
//! are.

use std::path::PathBuf;

use allclear::wire::pb::allclear::operator::v1::Status;
use jiff::Timestamp;
use serde_json::json;

use super::cluster::{Cluster, Plan};
use super::workload::hook;

/// Of db-0, db-1 and db-2, in seconds.
const AHEAD: [i64; 3] = [0, 3600, 0];

/// Where distributions put it.
pub(crate) fn faketime() -> Option<PathBuf> {
    let below_each = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let folders = ["/usr/lib", "/usr/local/lib"].into_iter().flat_map(below_each);
    let folders = folders.chain(["/usr/lib", "/usr/lib64", "/usr/local/lib"].map(PathBuf::from));
    folders.map(|folder| folder.join("faketime/libfaketime.so.1")).find(|path| path.is_file())
}

/// Three replicas with clocks as above. `None`, and a word about it, where clocks cannot be set.
fn three() -> Option<Plan> {
    let Some(library) = faketime() else {
        println!("SKIPPED: clocks cannot be set without libfaketime.so.1; install the package libfaketime");
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
    Some(Cluster::of(&["db-0", "db-1", "db-2"]).environments(AHEAD.map(clock).into()))
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

/// Every replica shows whose clock is wrong, and by how much.
fn differences_are_shown(status: &Status) -> bool {
    status
        .replicas
        .iter()
        .zip(AHEAD)
        .all(|(replica, ahead)| replica.clock_difference_ms.is_some_and(|shown| shown.abs_diff(ahead * 1000) <= 1000))
}

/// The deadline that a hook was given is as far away as it was told, on the wall clock of its own VM.
fn is_on_its_own_wall(vm: &str, left_ms: u64, deadline: Timestamp) -> bool {
    let ahead = AHEAD[usize::from(vm.as_bytes()[3] - b'0')] * 1000;
    let expected = Timestamp::now().as_millisecond() + ahead + i64::try_from(left_ms).unwrap();
    // It began a moment ago.
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
    // An hour ahead of the leader that set the deadline.
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
