//! The input of a handler, and its reports to the replica.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::outcome::{Outcome, cut};
use allclear_wire::pb::allclear::workload::v1;
use allclear_wire::pb::allclear::workload::v1::{Event, Intent, Mode, Peer, Phase};

/// Upper bound of a remaining time, so that no sum of times overflows.
const LONGEST: Duration = Duration::from_hours(30 * 24);

/// One attempt at one hook.
#[derive(Clone)]
pub struct Step {
    /// The unique id of the attempt.
    pub attempt: String,
    /// The id of the step, equal for all attempts at one hook for one event: the key for remembering an effect.
    pub id: String,
    /// Term and number. A fence lower than an earlier fence for the same event and VM was rejected before the
    /// handler; pass the fence on to systems that can reject, too.
    pub fence: (u64, u64),
    pub intent: Intent,
    pub mode: Mode,
    pub phase: Phase,
    pub event: Event,
    /// The affected VM: a VM other than the handler's where the handler acts for a member that cannot act.
    pub vm: String,
    pub group: Option<String>,
    /// The members of the group, this member included.
    pub members: Vec<Peer>,
    /// VMs to which nothing may be moved.
    pub avoid: Vec<String>,
    /// Preferred targets of a move, the best first.
    pub prefer: Vec<String>,
    pub traceparent: Option<String>,
    /// The journaled outcome of an earlier attempt at this step; `None` where there was no earlier attempt.
    pub journaled: Option<Outcome>,
    controls: Arc<Controls>,
}

impl Step {
    pub(super) fn new(step: v1::Step, journaled: Option<Outcome>, controls: Arc<Controls>) -> Self {
        let (intent, mode, phase) = (step.intent(), step.mode(), step.phase());
        let fence = step.fence.unwrap_or_default();
        Self {
            attempt: step.attempt,
            id: step.step,
            fence: (fence.term, fence.sequence),
            intent,
            mode,
            phase,
            event: step.event.unwrap_or_default(),
            vm: step.vm,
            group: step.group,
            members: step.members,
            avoid: step.avoid,
            prefer: step.prefer,
            traceparent: step.traceparent,
            journaled,
            controls,
        }
    }

    /// The remaining time. At its end the attempt is cancelled.
    pub fn time_left(&self) -> Duration {
        self.controls.deadline().saturating_duration_since(Instant::now())
    }

    /// Reports progress, shown to people; of several reports within a second only the last is sent.
    pub fn progress(&self, text: &str) {
        self.controls.say(|said| cut(text).clone_into(&mut said.progress.get_or_insert_default().text));
    }

    /// Reports the expected remaining duration.
    pub fn expect(&self, end_in: Duration) {
        let end_in = Some(millis(end_in));
        self.controls.say(|said| said.progress.get_or_insert_default().expected_end_in_ms = end_in);
    }

    /// Requests this much time from now on; the request is sent within a second. The replica grants time up to the end of
    /// the preparation, and after the event up to 10 min. The only answer is `time_left`: read it again, a second or two
    /// later.
    pub fn more_time(&self, needs: Duration) {
        self.controls.say(|said| said.needs_ms = Some(millis(needs)));
    }

    /// Completes when the attempt is cancelled or at the deadline. A handler that runs for 4 s more is dropped, with
    /// an unknown outcome.
    pub async fn cancelled(&self) {
        self.controls.cancel.cancelled().await;
    }

    pub fn is_cancelled(&self) -> bool {
        self.controls.cancel.is_cancelled()
    }
}

/// The library's side of a running step.
pub(super) struct Controls {
    pub(super) cancel: CancellationToken,
    deadline: watch::Sender<Instant>,
    said: Mutex<StepReport>,
    news: Arc<Notify>,
}

/// Reports of the handler that were not yet sent to the replica.
#[derive(Default)]
pub(super) struct StepReport {
    pub(super) progress: Option<v1::Progress>,
    pub(super) needs_ms: Option<u64>,
}

impl Controls {
    pub(super) fn new(time_left_ms: u64, news: Arc<Notify>) -> Self {
        let deadline = watch::Sender::new(in_ms(time_left_ms));
        Self { cancel: CancellationToken::new(), deadline, said: Mutex::default(), news }
    }

    pub(super) fn deadline(&self) -> Instant {
        *self.deadline.borrow()
    }

    pub(super) fn set_time_left(&self, ms: u64) {
        self.deadline.send_replace(in_ms(ms));
    }

    /// Completes when the time is up, whatever changes the deadline has meanwhile.
    pub(super) async fn time_is_up(&self) {
        let mut deadline = self.deadline.subscribe();
        loop {
            let until = *deadline.borrow_and_update();
            tokio::select! {
                () = sleep_until(until) => return,
                Ok(()) = deadline.changed() => {}
            }
        }
    }

    pub(super) fn take(&self) -> StepReport {
        std::mem::take(&mut self.said())
    }

    pub(super) fn has_said(&self) -> bool {
        let said = self.said();
        said.progress.is_some() || said.needs_ms.is_some()
    }

    fn said(&self) -> MutexGuard<'_, StepReport> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, change: impl FnOnce(&mut StepReport)) {
        change(&mut self.said());
        self.news.notify_one();
    }
}

fn in_ms(ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(ms).min(LONGEST)
}

pub(super) fn millis(length: Duration) -> u64 {
    u64::try_from(length.as_millis()).unwrap_or(u64::MAX)
}
