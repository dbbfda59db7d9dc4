//! Watches for how long this replica does not run. It ticks, and what it misses of its own ticks is the impact of the
//! event that its VM goes through. While one is expected it also writes down when it ticked last, so that the next life
//! of this replica knows how long it was away.
//!
//! A machine that is stopped may have clocks that stand still and others that are set right afterwards: of the steady
//! clock and the wall clock, the one that tells of the longer time counts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::clock;
use super::context::Context;
use allclear_core::impact::{DowntimeWatch, is_expected};
use allclear_core::model::command::ApplyResult;
use allclear_core::model::time::Timestamp;

const TICK: Duration = Duration::from_millis(100);
/// While no event names this VM.
const IDLE_TICK: Duration = Duration::from_secs(1);
/// A tick that comes so much later was missed.
const MISSED: Duration = Duration::from_millis(100);
const PULSE_EVERY: Duration = Duration::from_millis(500);
const TELL_AGAIN_AFTER: Duration = Duration::from_secs(1);
/// In the data directory: since when this replica watches and when it ticked last, on its wall clock.
const FILE: &str = "pulse";

/// One moment on both clocks.
#[derive(Clone, Copy)]
struct BothClocks {
    steady: Timestamp,
    wall: Timestamp,
}

impl BothClocks {
    fn now(context: &Context) -> Self {
        Self { steady: clock::monotonic(), wall: context.time.wall() }
    }

    fn since(self, earlier: Self) -> Duration {
        self.steady.since(earlier.steady).max(self.wall.since(earlier.wall))
    }
}

pub(super) async fn watch(context: Arc<Context>, stop: CancellationToken) {
    let Some((mut watch, since)) = stop.run_until_cancelled(begin(&context)).await else { return };
    let (mut last, mut pulse_due) = (BothClocks::now(&context), clock::monotonic());
    let (mut writing, mut telling): (Option<JoinHandle<()>>, Option<JoinHandle<()>>) = (None, None);
    let mut is_pulsing = true;
    let mut state = context.state.clone();
    let mut is_awaited = is_expected(&state.borrow_and_update(), &context.node.name);
    while !stop.is_cancelled() {
        let tick = context.watchdog.until_turn(if is_awaited { TICK } else { IDLE_TICK });
        tokio::select! {
            () = tokio::time::sleep(tick) => {}
            _ = state.changed() => is_awaited = is_expected(&state.borrow_and_update(), &context.node.name),
            () = stop.cancelled() => break,
        }
        let now = BothClocks::now(&context);
        let late = now.since(last).saturating_sub(tick);
        last = now;
        if late >= MISSED {
            watch.missed(late, context.time.now());
        }
        if is_idle(telling.as_ref())
            && let Some(command) = watch.due(&context.state(), &context.node.name)
        {
            let context = context.clone();
            telling = Some(tokio::spawn(async move {
                if !matches!(context.propose(&command).await, Ok(ApplyResult::Applied)) {
                    tokio::time::sleep(TELL_AGAIN_AFTER).await;
                }
            }));
        }
        let is_pulse_due = is_awaited && now.steady >= pulse_due;
        if is_idle(writing.as_ref()) && (is_pulse_due || is_pulsing != is_awaited) {
            let pulse = is_awaited.then(|| format!("{} {}", since.0, now.wall.0));
            writing = Some(tokio::spawn(write(context.clone(), pulse)));
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

/// Takes up where an earlier life of this replica left off; also tells since when it watches, on the wall clock.
async fn begin(context: &Context) -> (DowntimeWatch, Timestamp) {
    let now = BothClocks::now(context);
    let path = pulse_of(context.journal.folder());
    let earlier = context.journal.means().result_of(move || std::fs::read_to_string(path).ok()).await.ok().flatten();
    let earlier = earlier.as_deref().and_then(read);
    while !context.has_cluster_time() {
        tokio::time::sleep(TICK).await;
    }
    // What the wall clock said then, in the cluster's time.
    let began = context.at(now.steady);
    let Some((since, last)) = earlier else { return (DowntimeWatch::since(began), now.wall) };
    let mut watch = DowntimeWatch::since(began.minus(now.wall.since(since)));
    watch.missed(now.wall.since(last), began);
    (watch, since)
}

fn read(text: &str) -> Option<(Timestamp, Timestamp)> {
    let (since, last) = text.split_once(' ')?;
    Some((Timestamp(since.parse().ok()?), Timestamp(last.parse().ok()?)))
}

fn pulse_of(folder: &Path) -> PathBuf {
    folder.join(FILE)
}

/// Nothing but a measurement is lost where it cannot be written.
async fn write(context: Arc<Context>, pulse: Option<String>) {
    let path = pulse_of(context.journal.folder());
    let work = move || match pulse {
        Some(pulse) => std::fs::write(path, pulse),
        None => std::fs::remove_file(path),
    };
    if let Ok(Err(error)) = context.journal.means().result_of(work).await {
        tracing::debug!(%error, "pulse not written");
    }
}
