//! What the replica gives to workloads, takes back and asks for: the other half of the book.

use tokio::time::Instant;

use super::attempt::{Attempt, Reach};
use super::book::{Book, end, not_connected, not_known, send, stop, tell, tell_progress};
use super::seat::Seat;
use super::{Terms, Told};
use crate::machine::id::WorkloadName;
use crate::machine::time::Timestamp;
use crate::machine::workload::OnAbsent;
use crate::workloads::{Ended, News, Standing, Task};

impl Book {
    pub(super) fn run(&mut self, task: &Task, terms: Terms, until: Instant, now: Instant) {
        let key = &task.attempt;
        match self.attempts.get(key).map(|attempt| &attempt.standing) {
            Some(Standing::Running) => return,
            Some(Standing::Ended(ended)) => return tell(&self.reports, key, News::Ended(ended.clone())),
            None => {}
        }
        let reach = if terms.is_inherited { Reach::Inherited } else { Reach::Unsent };
        let mut attempt = Attempt::new(task.clone(), reach, terms.deadline, until);
        let mut seat = self.seats.get_mut(&task.workload);
        let claimed = seat.as_mut().and_then(|seat| seat.take_claim(key));
        let is_live = seat.as_ref().is_some_and(|seat| seat.is_live());
        let is_gone = seat.as_ref().is_none_or(|seat| seat.has_lapsed());
        match (claimed, seat) {
            (Some(Standing::Ended(ended)), _) => {
                attempt.is_told_by_workload = true;
                end(&self.reports, key, &mut attempt, ended);
            }
            (Some(Standing::Running), Some(seat)) => {
                attempt.reach = Reach::Sent;
                seat.tell(attempt.reminder());
            }
            _ if terms.is_inherited && (is_live || is_gone) => {
                end(&self.reports, key, &mut attempt, not_known(&task.workload));
            }
            (_, Some(seat)) if !terms.is_inherited && is_live => send(seat, &mut attempt),
            // The log may not know yet that it is away.
            (_, Some(seat)) if seat.has_lapsed() && seat.workload.on_absent != OnAbsent::Hold => {
                end(&self.reports, key, &mut attempt, not_connected(&task.workload));
            }
            _ => {
                attempt.progress.news = Some((format!("waits for {} to connect", task.workload), None));
                tell_progress(&self.reports, key, &mut attempt, now);
            }
        }
        self.attempts.insert(key.clone(), attempt);
    }

    /// Ends a running attempt. One that is running nowhere is cancelled already.
    pub(super) fn cancel(&mut self, key: &str, now: Instant) {
        let Some(attempt) = self.attempts.get_mut(key) else { return };
        match &attempt.standing {
            Standing::Ended(ended) => tell(&self.reports, key, News::Ended(ended.clone())),
            Standing::Running if attempt.reach == Reach::Unsent => end(&self.reports, key, attempt, Ended::Cancelled),
            Standing::Running => stop(&mut self.seats, attempt, now, false),
        }
    }

    pub(super) fn known(&self, key: &str) -> Option<Standing> {
        self.attempts.get(key).map(|attempt| attempt.standing.clone())
    }

    pub(super) fn attempts(&self) -> Vec<(String, Standing)> {
        self.attempts.iter().map(|(key, attempt)| (key.clone(), attempt.standing.clone())).collect()
    }

    /// Attempts that workloads say they know, and that nobody here has taken up, with how they ended.
    pub(super) fn claims(&self) -> Vec<(WorkloadName, String, Option<Ended>)> {
        let of = |(name, seat): (&WorkloadName, &Seat)| {
            seat.claims().map(|(key, ended)| (name.clone(), key.clone(), ended.clone())).collect::<Vec<_>>()
        };
        self.seats.iter().flat_map(of).collect()
    }

    pub(super) fn dismiss_claim(&mut self, name: &WorkloadName, key: &str) {
        if let Some(seat) = self.seats.get_mut(name) {
            seat.dismiss_claim(key, "nobody waits for it any more");
        }
    }

    /// The log has its outcome.
    pub(super) fn forget(&mut self, key: &str) {
        if self.attempts.get(key).is_none_or(Attempt::is_running) {
            return;
        }
        let Some(attempt) = self.attempts.remove(key).filter(|attempt| attempt.is_told_by_workload) else { return };
        if let Some(seat) = self.seats.get_mut(attempt.workload()) {
            seat.tell(Told::Acknowledged(key.to_owned()));
        }
    }

    /// False when it is as before, which it mostly is.
    pub(super) fn change_deadline(
        &mut self,
        key: &str,
        deadline: Timestamp,
        on_the_wall: Timestamp,
        until: Instant,
    ) -> bool {
        let attempt = self.attempts.get_mut(key).filter(|attempt| attempt.is_running());
        let is_changed = attempt.is_some_and(|attempt| attempt.change_deadline(deadline, on_the_wall, until));
        if is_changed {
            self.remind(key);
        }
        is_changed
    }

    /// Tells a workload again until when an attempt has to be done.
    pub(super) fn remind(&mut self, key: &str) {
        let Some(attempt) = self.attempts.get(key).filter(|attempt| attempt.is_running()) else { return };
        if attempt.reach == Reach::Sent
            && let Some(seat) = self.seats.get_mut(attempt.workload())
        {
            seat.tell(attempt.reminder());
        }
    }
}
