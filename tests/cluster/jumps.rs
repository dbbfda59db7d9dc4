//! A wall clock that jumps during operation, by up to a day, for seconds or permanently: nothing happens early or
//! late, the replica with the wrong clock is reported, and no trace of the jump is kept.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use allclear::wire::pb::allclear::operator::v1::Event;
use jiff::Timestamp;
use serde_json::json;
use tempfile::TempDir;

use super::clocks::faketime;
use super::cluster::{Cluster, Plan};
use super::dice::Dice;
use super::workload::{Hook, hook};

const DAY: i64 = 24 * 3600;
const THREE: [&str; 3] = ["db-0", "db-1", "db-2"];
const PAIR: [&str; 2] = ["db-0", "db-1"];
/// Pauses between two jumps of clocks that jump all the time, in milliseconds.
const PAUSES: (u64, u64) = (50, 800);

/// Wall clocks of the replicas, each set by a file.
struct Clocks {
    folder: TempDir,
}

impl Clocks {
    /// `None` where clocks cannot be set.
    fn of(vms: &[&'static str]) -> Option<(Self, Plan)> {
        let Some(library) = faketime() else {
            crate::left_out::lacks("libfaketime");
            return None;
        };
        let clocks = Self { folder: TempDir::with_prefix("clocks").unwrap() };
        let environment = |place: usize| {
            set(clocks.folder.path(), place, 0);
            let on = || "1".to_owned();
            vec![
                ("LD_PRELOAD", library.display().to_string()),
                ("FAKETIME_TIMESTAMP_FILE", file(clocks.folder.path(), place).display().to_string()),
                ("FAKETIME_NO_CACHE", on()),
                ("FAKETIME_DONT_FAKE_MONOTONIC", on()),
                ("NO_FAKE_STAT", on()),
            ]
        };
        let plan = Cluster::of(vms).environments((0..vms.len()).map(environment).collect());
        Some((clocks, plan))
    }

    fn jump(&self, place: usize, ahead: i64) {
        set(self.folder.path(), place, ahead);
    }
}

fn file(folder: &Path, place: usize) -> PathBuf {
    folder.join(place.to_string())
}

/// Sets this replica's wall clock to be `ahead` seconds ahead from now on.
fn set(folder: &Path, place: usize, ahead: i64) {
    let next = folder.join(format!("{place}.next"));
    std::fs::write(&next, format!("{ahead:+}s\n")).unwrap();
    std::fs::rename(next, file(folder, place)).unwrap();
}

/// Every replica reports how far the wall clock of the replica at `place` is from the other clocks.
async fn is_told(cluster: &Cluster, place: usize, ahead: i64) {
    let (name, began) = (cluster.replicas[place].name.clone(), Instant::now());
    for asked in 0..cluster.replicas.len() {
        cluster
            .until(asked, &format!("aware that {name} is {ahead} s ahead"), |status| {
                let shown = status.replicas.iter().find(|replica| replica.name == name).unwrap();
                shown.clock_difference_ms.is_some_and(|shown| shown.abs_diff(ahead * 1000) <= 2_000)
            })
            .await;
    }
    println!("{name}, {ahead} s: shown by all {:?} after the jump", began.elapsed());
}

fn hooks() -> Vec<Hook> {
    // On a busy machine, the drain waits for minutes until all jumps are noticed.
    [hook("drain").waits_for("gate"), hook("restore")].map(|hook| hook.with("timeout = \"5m\"")).into()
}

async fn announced(cluster: &Cluster, vm: usize) -> (String, Timestamp) {
    let order = json!({ "type": "Redeploy", "source": "Platform", "vms": [vm], "notice": "10m" });
    (cluster.cloud.announce(order).await, Timestamp::now())
}

/// The recorded times of the event match the time of the announcement.
fn is_on_time(event: &Event, announced: Timestamp) {
    let after = |text: &str| text.parse::<Timestamp>().unwrap().as_second() - announced.as_second();
    let not_before = event.not_before.as_deref().map(after);
    assert!(not_before.is_some_and(|after| (590..=610).contains(&after)), "{not_before:?} {event:#?}");
    let first_seen = after(&event.timeline[0].at);
    assert!(first_seen.abs() <= 30, "{first_seen} {event:#?}");
    assert!(event.hooks.iter().all(|hook| hook.outcome.as_deref() == Some("done")), "{event:#?}");
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
}

/// The leader's clock and another clock jump while hooks run, while the event waits for its start, and after the
/// start.
async fn is_prepared_while_clocks_jump(vms: &[&'static str]) {
    let Some((clocks, plan)) = Clocks::of(vms) else { return };
    let cluster = plan.workload("database", hooks()).start().await;
    let leader = cluster.leader(0).await;
    let other = (leader + 1) % vms.len();
    let (id, at) = announced(&cluster, 1).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    for (place, ahead) in [(leader, DAY), (leader, -DAY), (leader, 5), (leader, 0), (other, DAY), (other, -3600)] {
        clocks.jump(place, ahead);
        is_told(&cluster, place, ahead).await;
        let event = cluster.event(0, &id).await.unwrap();
        assert_eq!((event.stage.as_str(), event.hooks.len(), &event.hooks[0].outcome), ("preparing", 1, &None));
    }
    clocks.jump(leader, DAY);
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    clocks.jump(leader, -DAY);
    is_told(&cluster, leader, -DAY).await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    is_on_time(&event, at);
    assert_eq!(cluster.hooks.ended(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    // Permanent jump: the next event is prepared as usual, also under another leader.
    let (code, _, said) = cluster.says(other, &["leader", "transfer", vms[other]]);
    assert_eq!(code, 0, "{said}");
    let (id, at) = announced(&cluster, 0).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    is_on_time(&cluster.closed_everywhere(&id).await, at);
    for (_, left_ms, _) in cluster.hooks.times() {
        assert!((270_000..=300_000).contains(&left_ms), "{left_ms} ms were left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_a_clock_that_jumps_at_any_stage_changes_nothing() {
    is_prepared_while_clocks_jump(&THREE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_pair_a_clock_that_jumps_at_any_stage_changes_nothing() {
    crate::left_out::long!();
    is_prepared_while_clocks_jump(&PAIR).await;
}

/// One clock after the other jumps, by seconds or by a day, briefly or permanently, during events.
async fn is_prepared_while_clocks_never_rest(vms: &[&'static str], seed: u64) {
    let Some((clocks, plan)) = Clocks::of(vms) else { return };
    let cluster = plan.workload("database", hooks()).start().await;
    cluster.hooks.open("gate");
    let (is_over, folder, places) =
        (Arc::new(AtomicBool::default()), clocks.folder.path().to_owned(), vms.len() as u64);
    let ends = Arc::clone(&is_over);
    let jumping = std::thread::spawn(move || {
        let (mut dice, mut jumps) = (Dice::mixed(seed), 0);
        while !ends.load(Ordering::Relaxed) {
            let place = usize::try_from(dice.below(places)).unwrap();
            // One clock at a time is wrong.
            for other in (0..usize::try_from(places).unwrap()).filter(|other| *other != place) {
                set(&folder, other, 0);
            }
            set(&folder, place, dice.of(&[1, 3, 60, 3600, DAY]) * dice.of(&[1, -1]));
            std::thread::sleep(Duration::from_millis(dice.between(PAUSES.0, PAUSES.1)));
            jumps += 1;
        }
        jumps
    });
    for number in 0..6 {
        let (id, at) = announced(&cluster, number % vms.len()).await;
        cluster.until_stage(0, &id, "started").await;
        cluster.cloud.finish(&id).await;
        is_on_time(&cluster.closed_everywhere(&id).await, at);
    }
    is_over.store(true, Ordering::Relaxed);
    println!("six events went by beside {} jumps", jumping.join().unwrap());
    for (_, left_ms, _) in cluster.hooks.times() {
        assert!((270_000..=300_000).contains(&left_ms), "{left_ms} ms were left");
    }
    assert_eq!(cluster.cloud.posts().await.len(), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_clocks_that_never_rest_change_nothing() {
    crate::left_out::long!();
    is_prepared_while_clocks_never_rest(&THREE, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_pair_clocks_that_never_rest_change_nothing() {
    crate::left_out::long!();
    is_prepared_while_clocks_never_rest(&PAIR, 2).await;
}
