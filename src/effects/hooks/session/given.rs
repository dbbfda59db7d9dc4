//! Steps that the replica sends to session workloads, cancels, and queries.

use tokio::time::Instant;

use super::attempt::{Reach, SessionAttempt};
use super::seat::Session;
use super::sessions::{SessionTable, Sessions, end, not_connected, not_known, send, stop, tell, tell_progress};
use super::{Dispatch, ToWorkload};
use crate::hooks::{AttemptState, Deadline, HookOutcome, HookTask, HookUpdate};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Condition, OnAbsent, Workload};

impl Sessions {
    /// Expects the workloads of the log to connect to this run of the replica. Such a workload does not count as gone
    /// until its time to connect is over.
    pub fn expect<'a>(&self, known: impl IntoIterator<Item = (&'a Workload, Condition)>) {
        let mut book = self.shared.book();
        for (workload, condition) in known {
            if !book.seats.contains_key(&workload.name) && !book.opening.contains(&workload.name) {
                book.seats
                    .insert(workload.name.clone(), Session::expected(workload.clone(), condition, Instant::now()));
                book.changes.send_replace(());
                self.shared.is_sooner.notify_one();
            }
        }
    }

    /// Sends the task to the workload, now or after the workload has connected, unless sent before.
    pub fn run(&self, task: &HookTask, terms: Dispatch) {
        let now = Instant::now();
        let mut book = self.shared.change();
        let SessionTable { seats, attempts, reports, .. } = &mut *book;
        let key = &task.attempt;
        match attempts.get(key).map(|attempt| &attempt.state) {
            Some(AttemptState::Running) => return,
            Some(AttemptState::Ended(ended)) => return tell(reports, key, HookUpdate::Ended(ended.clone())),
            None => {}
        }
        let reach = if terms.is_left_over { Reach::Inherited } else { Reach::Unsent };
        let mut attempt = SessionAttempt::new(task.clone(), reach, terms.deadline);
        let mut seat = seats.get_mut(&task.workload);
        let claimed = seat.as_mut().and_then(|seat| seat.take_claim(key));
        let is_live = seat.as_ref().is_some_and(|seat| seat.is_live());
        let is_gone = seat.as_ref().is_none_or(|seat| seat.lapsed.is_some());
        match (claimed, seat) {
            (Some(AttemptState::Ended(ended)), _) => {
                attempt.is_told_by_workload = true;
                end(reports, key, &mut attempt, ended);
            }
            (Some(AttemptState::Running), Some(seat)) => {
                attempt.reach = Reach::Sent;
                seat.tell(attempt.reminder());
            }
            _ if terms.is_left_over && (is_live || is_gone) => {
                end(reports, key, &mut attempt, not_known(&task.workload));
            }
            (_, Some(seat)) if !terms.is_left_over && is_live => send(seat, &mut attempt),
            // The log may not know yet that the workload is disconnected.
            (_, Some(seat)) if !seat.is_connected() && seat.greeting.workload.on_absent != OnAbsent::Hold => {
                end(reports, key, &mut attempt, not_connected(&task.workload));
            }
            _ => {
                attempt.progress.news = Some((format!("waits for {} to connect", task.workload), None));
                tell_progress(reports, key, &mut attempt, now);
            }
        }
        attempts.insert(key.clone(), attempt);
    }

    /// Ends a running attempt. An attempt that runs nowhere is cancelled already.
    pub fn cancel(&self, key: &str) {
        let mut book = self.shared.change();
        let SessionTable { seats, attempts, reports, .. } = &mut *book;
        let Some(attempt) = attempts.get_mut(key) else { return };
        match &attempt.state {
            AttemptState::Ended(ended) => tell(reports, key, HookUpdate::Ended(ended.clone())),
            AttemptState::Running if attempt.reach == Reach::Unsent => {
                end(reports, key, attempt, HookOutcome::Cancelled);
            }
            AttemptState::Running => stop(seats, attempt, Instant::now(), false),
        }
    }

    pub fn known(&self, key: &str) -> Option<AttemptState> {
        self.shared.book().attempts.get(key).map(|attempt| attempt.state.clone())
    }

    pub fn attempts(&self) -> Vec<(String, AttemptState)> {
        let book = self.shared.book();
        book.attempts.iter().map(|(key, attempt)| (key.clone(), attempt.state.clone())).collect()
    }

    /// Forgets an attempt with an outcome in the log.
    pub fn forget(&self, key: &str) {
        let mut book = self.shared.book();
        if book.attempts.get(key).is_none_or(SessionAttempt::is_running) {
            return;
        }
        let Some(attempt) = book.attempts.remove(key).filter(|attempt| attempt.is_told_by_workload) else { return };
        if let Some(seat) = book.seats.get_mut(&attempt.task.workload) {
            seat.tell(ToWorkload::Acknowledged(key.to_owned()));
        }
    }

    /// Takes the deadline of the log for an attempt, `as_logged` in the cluster's time. The deadline is mostly
    /// unchanged.
    pub fn change_deadline(&self, key: &str, as_logged: Timestamp, deadline: Deadline) {
        let mut book = self.shared.book();
        let attempt = book.attempts.get_mut(key).filter(|attempt| attempt.is_running());
        if attempt.is_some_and(|attempt| attempt.change_deadline(as_logged, deadline)) {
            drop(book);
            self.remind(key);
        }
    }

    /// Sends the deadline of an attempt to its workload again.
    pub fn remind(&self, key: &str) {
        let mut book = self.shared.change();
        let SessionTable { seats, attempts, .. } = &mut *book;
        let Some(attempt) = attempts.get(key).filter(|attempt| attempt.is_running()) else { return };
        if attempt.reach == Reach::Sent
            && let Some(seat) = seats.get_mut(&attempt.task.workload)
        {
            seat.tell(attempt.reminder());
        }
    }
}
