//! One attempt of a session workload.

use std::time::Duration;

use tokio::time::Instant;

use super::ToWorkload;
use crate::hooks::{AttemptState, Deadline, HookOutcome, HookTask};
use allclear_core::model::time::Timestamp;

/// The time for a workload to stop after a cancel message.
pub(super) const STOPS_WITHIN: Duration = Duration::from_secs(5);
/// Minimum interval of progress reports, and of requests for more time.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(1);

pub(super) struct SessionAttempt {
    pub(super) task: HookTask,
    pub(super) state: AttemptState,
    pub(super) reach: Reach,
    /// The deadline as the log has it.
    as_logged: Timestamp,
    stop: Option<StopRequest>,
    /// The outcome comes from the workload, which waits for the acknowledgement that the outcome is kept.
    pub(super) is_told_by_workload: bool,
    pub(super) progress: PendingProgress,
    asked_for_time: Option<Instant>,
}

/// Whether the workload has received the attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// Never sent.
    Unsent,
    /// Possibly sent by a previous run of this replica.
    Inherited,
    Sent,
}

#[derive(Clone, Copy)]
struct StopRequest {
    at: Instant,
    by_deadline: bool,
}

/// The last progress, until reported.
#[derive(Default)]
pub(super) struct PendingProgress {
    pub(super) news: Option<(String, Option<Timestamp>)>,
    told_at: Option<Instant>,
}

impl PendingProgress {
    /// Replaces the last reported progress, which no longer holds.
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

    /// The message about a sent attempt for a workload that has connected again.
    pub(super) fn reminder(&self) -> ToWorkload {
        let attempt = self.task.attempt.clone();
        match self.stop {
            Some(stop) => ToWorkload::Cancel { attempt, reason: stop.reason().to_owned() },
            None => ToWorkload::Deadline { attempt, deadline: self.task.deadline },
        }
    }

    /// False if the stop was requested before.
    pub(super) fn stop(&mut self, now: Instant, by_deadline: bool) -> bool {
        let is_new = self.stop.is_none();
        self.stop.get_or_insert(StopRequest { at: now, by_deadline });
        is_new
    }

    /// False if the log has the deadline already, or after a stop request, when more time comes too late.
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

    /// Turns a cancellation at the deadline into a timeout: a workload that stops at its deadline reports a
    /// cancellation. The workload's clock may be slightly ahead.
    pub(super) fn as_it_was(&self, ended: HookOutcome, now: Instant) -> HookOutcome {
        let by_deadline = self.stop.map_or(now + TELL_EVERY >= self.task.deadline.at, |stop| stop.by_deadline);
        if ended == HookOutcome::Cancelled && by_deadline { HookOutcome::TimedOut } else { ended }
    }

    /// The outcome without an answer to the stop request: a connected workload has received the request, and a
    /// disconnected workload may be doing anything.
    pub(super) fn overdue(&self, now: Instant, is_live: bool) -> Option<HookOutcome> {
        let stop = self.stop.filter(|stop| now >= stop.at + STOPS_WITHIN)?;
        Some(match (stop.by_deadline, is_live && self.reach == Reach::Sent) {
            (true, true) => HookOutcome::TimedOut,
            (true, false) => HookOutcome::Unknown("the workload was disconnected at the deadline".to_owned()),
            (false, _) => HookOutcome::Unknown("the workload did not answer the request to stop".to_owned()),
        })
    }
}

impl StopRequest {
    fn reason(self) -> &'static str {
        if self.by_deadline { "the deadline has passed" } else { "the attempt is cancelled" }
    }
}
