//! Measures for how long this replica did not run. The replica ticks, and missed ticks are the impact of the event on
//! the VM. While an event is expected, the replica writes the time of the last tick to the file `pulse`, by which the
//! next run knows how long the VM was gone.
//!
//! A stopped machine may have a halted monotonic clock, or a wall clock set afterwards. The clock with the longer time
//! counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::clock;
use super::cluster::ClusterHandle;
use super::watchdog::Watchdog;
use crate::consensus::Environment;
use allclear_core::impact::{DowntimeWatch, is_expected};
use allclear_core::model::command::ApplyResult;
use allclear_core::model::time::Timestamp;

const TICK: Duration = Duration::from_millis(100);
/// The tick while no event names this VM.
const IDLE_TICK: Duration = Duration::from_secs(1);
/// A tick that is late by this duration was missed.
const MISSED: Duration = Duration::from_millis(100);
const PULSE_EVERY: Duration = Duration::from_millis(500);
const TELL_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The same moment on both clocks.
#[derive(Clone, Copy)]
struct BothClocks {
    steady: Timestamp,
    wall: Timestamp,
}

impl BothClocks {
    fn now(cluster: &ClusterHandle) -> Self {
        Self { steady: clock::monotonic(), wall: cluster.time.wall() }
    }

    fn since(self, earlier: Self) -> Duration {
        self.steady.since(earlier.steady).max(self.wall.since(earlier.wall))
    }
}

/// The file `pulse` in the data directory: the beginning of the watch and the last tick, on this replica's wall clock.
#[derive(Clone)]
pub(super) struct PulseFile {
    path: PathBuf,
    environment: Environment,
}

impl PulseFile {
    pub(super) fn in_folder(folder: &Path, environment: Environment) -> Self {
        Self { path: folder.join("pulse"), environment }
    }

    async fn read(&self) -> Option<(Timestamp, Timestamp)> {
        let path = self.path.clone();
        let text = self.environment.result_of(move || std::fs::read_to_string(path).ok()).await.ok().flatten()?;
        let (since, last) = text.split_once(' ')?;
        Some((Timestamp(since.parse().ok()?), Timestamp(last.parse().ok()?)))
    }

    /// Writes the pulse, or removes the file for `None`. A failure loses a measurement, and nothing else.
    async fn write(self, pulse: Option<String>) {
        let path = self.path;
        let work = move || match pulse {
            Some(pulse) => std::fs::write(path, pulse),
            None => std::fs::remove_file(path),
        };
        if let Ok(Err(error)) = self.environment.result_of(work).await {
            tracing::debug!(%error, "pulse not written");
        }
    }
}

pub(super) async fn watch(
    cluster: Arc<ClusterHandle>,
    pulse: PulseFile,
    watchdog: Arc<Watchdog>,
    stop: CancellationToken,
) {
    let Some((mut watch, since)) = stop.run_until_cancelled(begin(&cluster, &pulse)).await else { return };
    let (mut last, mut pulse_due) = (BothClocks::now(&cluster), clock::monotonic());
    let (mut writing, mut telling): (Option<JoinHandle<()>>, Option<JoinHandle<()>>) = (None, None);
    let mut is_pulsing = true;
    let mut state = cluster.committed.clone();
    let mut is_awaited = is_expected(&state.borrow_and_update(), &cluster.node.name);
    while !stop.is_cancelled() {
        let tick = watchdog.until_turn(if is_awaited { TICK } else { IDLE_TICK });
        tokio::select! {
            () = tokio::time::sleep(tick) => {}
            _ = state.changed() => is_awaited = is_expected(&state.borrow_and_update(), &cluster.node.name),
            () = stop.cancelled() => break,
        }
        let now = BothClocks::now(&cluster);
        let late = now.since(last).saturating_sub(tick);
        last = now;
        if late >= MISSED {
            watch.missed(late, cluster.time.now());
        }
        if is_idle(telling.as_ref())
            && let Some(command) = watch.due(&cluster.state(), &cluster.node.name)
        {
            let cluster = cluster.clone();
            telling = Some(tokio::spawn(async move {
                if !matches!(cluster.propose(&command).await, Ok(ApplyResult::Applied)) {
                    tokio::time::sleep(TELL_AGAIN_AFTER).await;
                }
            }));
        }
        let is_pulse_due = is_awaited && now.steady >= pulse_due;
        if is_idle(writing.as_ref()) && (is_pulse_due || is_pulsing != is_awaited) {
            let ticked = is_awaited.then(|| format!("{} {}", since.0, now.wall.0));
            writing = Some(tokio::spawn(pulse.clone().write(ticked)));
            (pulse_due, is_pulsing) = (now.steady.plus(PULSE_EVERY), is_awaited);
        }
    }
    for task in [writing, telling].into_iter().flatten() {
        task.abort();
    }
}

fn is_idle(task: Option<&JoinHandle<()>>) -> bool {
    task.is_none_or(JoinHandle::is_finished)
}

/// Continues the watch of a previous run; also returns the beginning of the watch, on the wall clock.
async fn begin(cluster: &ClusterHandle, pulse: &PulseFile) -> (DowntimeWatch, Timestamp) {
    let now = BothClocks::now(cluster);
    let earlier = pulse.read().await;
    while !cluster.has_cluster_time() {
        tokio::time::sleep(TICK).await;
    }
    // The moment `now` in the cluster's time.
    let began = cluster.at(now.steady);
    let Some((since, last)) = earlier else { return (DowntimeWatch::since(began), now.wall) };
    let mut watch = DowntimeWatch::since(began.minus(now.wall.since(since)));
    watch.missed(now.wall.since(last), began);
    (watch, since)
}
