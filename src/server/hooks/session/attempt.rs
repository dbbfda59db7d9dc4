//! One attempt of a session workload.

use std::time::Duration;

use tokio::time::Instant;

use super::ToWorkload;
use crate::hooks::{AttemptState, Deadline, HookOutcome, HookTask};
use allclear_core::model::time::Timestamp;

/// How long a workload that is told to stop has for it.
pub(super) const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// Progress is told this often at the most, and more time asked for.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(1);

pub(super) struct SessionAttempt {
    pub(super) task: HookTask,
    pub(super) state: AttemptState,
    pub(super) reach: Reach,
    /// The deadline as the log has it.
    as_logged: Timestamp,
    stop: Option<StopRequest>,
    /// The workload said itself how it ended, and waits to hear that this is kept.
    pub(super) is_told_by_workload: bool,
    pub(super) progress: PendingProgress,
    asked_for_time: Option<Instant>,
}

/// Whether the workload has it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// It was sent to nobody.
    Unsent,
    /// A former life of this replica may have sent it.
    Inherited,
    Sent,
}

#[derive(Clone, Copy)]
struct StopRequest {
    at: Instant,
    by_deadline: bool,
}

/// What was said last, until it is told.
#[derive(Default)]
pub(super) struct PendingProgress {
    pub(super) news: Option<(String, Option<Timestamp>)>,
    told_at: Option<Instant>,
}

impl PendingProgress {
    /// What was told last does not hold any more.
    pub(super) fn is_over(&mut self, text: &str) {
        if self.told_at.is_some() {
            self.news = Some((text.to_owned(), None));
        }
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.news.as_ref()?;
        self.told_at.map(|at| at + TELL_EVERY)
    }

    pub(super) fn take(&mut self, now: Instant) -> Option<(String, Option<Timestamp>)> {
        if self.due().is_some_and(|due| now < due) {
            return None;
        }
        let news = self.news.take()?;
        self.told_at = Some(now);
        Some(news)
    }
}

impl SessionAttempt {
    pub(super) fn new(task: HookTask, reach: Reach, as_logged: Timestamp) -> Self {
        Self {
            task,
            state: AttemptState::Running,
            reach,
            as_logged,
            stop: None,
            is_told_by_workload: false,
            progress: PendingProgress::default(),
            asked_for_time: None,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.state == AttemptState::Running
    }

    pub(super) fn step(&self) -> ToWorkload {
        ToWorkload::Step(Box::new(self.task.clone()))
    }

    /// What somebody who runs it needs to know, now that it is there again.
    pub(super) fn reminder(&self) -> ToWorkload {
        let attempt = self.task.attempt.clone();
        match self.stop {
            Some(stop) => ToWorkload::Cancel { attempt, reason: stop.reason().to_owned() },
            None => ToWorkload::Deadline { attempt, deadline: self.task.deadline },
        }
    }

    /// False when it was told to stop before.
    pub(super) fn stop(&mut self, now: Instant, by_deadline: bool) -> bool {
        let is_new = self.stop.is_none();
        self.stop.get_or_insert(StopRequest { at: now, by_deadline });
        is_new
    }

    /// False when the log says the same as before, or it is too late for more time.
    pub(super) fn change_deadline(&mut self, as_logged: Timestamp, deadline: Deadline) -> bool {
        if self.as_logged == as_logged || self.stop.is_some() {
            return false;
        }
        (self.as_logged, self.task.deadline) = (as_logged, deadline);
        true
    }

    pub(super) fn may_ask_for_time(&mut self, now: Instant) -> bool {
        if self.stop.is_some() || self.asked_for_time.is_some_and(|at| now < at + TELL_EVERY) {
            return false;
        }
        self.asked_for_time = Some(now);
        true
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        let ends = self.stop.map_or(self.task.deadline.at, |stop| stop.at + STOPS_WITHIN);
        self.is_running().then(|| self.progress.due().map_or(ends, |due| due.min(ends)))
    }

    pub(super) fn has_reached_its_deadline(&self, now: Instant) -> bool {
        self.stop.is_none() && now >= self.task.deadline.at
    }

    /// A workload that stops because its time is over says that it was cancelled. Its clock may be ahead by a moment.
    pub(super) fn as_it_was(&self, ended: HookOutcome, now: Instant) -> HookOutcome {
        let by_deadline = self.stop.map_or(now + TELL_EVERY >= self.task.deadline.at, |stop| stop.by_deadline);
        if ended == HookOutcome::Cancelled && by_deadline { HookOutcome::TimedOut } else { ended }
    }

    /// How it ends when nobody says so: a workload that is there has been told to stop, and one that is not may be
    /// doing anything.
    pub(super) fn overdue(&self, now: Instant, is_live: bool) -> Option<HookOutcome> {
        let stop = self.stop.filter(|stop| now >= stop.at + STOPS_WITHIN)?;
        Some(match (stop.by_deadline, is_live && self.reach == Reach::Sent) {
            (true, true) => HookOutcome::TimedOut,
            (true, false) => HookOutcome::Unknown("its workload was not there when its time was over".to_owned()),
            (false, _) => HookOutcome::Unknown("its workload was told to stop, and did not answer".to_owned()),
        })
    }
}

impl StopRequest {
    fn reason(self) -> &'static str {
        if self.by_deadline { "its time is over" } else { "it is not wanted any more" }
    }
}
