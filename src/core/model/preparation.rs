//! When an event is prepared, and until when its hooks may run.

use crate::model::attempt::{Attempt, ENDED_WITHIN};
use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Phase};
use core::time::Duration;

impl Event {
    pub fn preparation_starts(&self) -> Timestamp {
        let usual = self.usual_preparation_start();
        self.asked_to_prepare_from().map_or(usual, |from| from.max(self.first_seen()).min(usual))
    }

    /// The start of the preparation by policy.
    pub fn usual_preparation_start(&self) -> Timestamp {
        let Some(treatment) = &self.treatment else { return self.first_seen() };
        let ahead = treatment.ahead.map(|ahead| self.notice_ends().minus(ahead));
        let opens = treatment.opening.map(|opening| opening.opens);
        ahead.into_iter().chain(opens).min().map_or(self.first_seen(), |at| at.max(self.first_seen()))
    }

    /// The window of the event's rule has closed before the preparation began, and there is time for another opening.
    pub fn has_missed_window(&self, now: Timestamp) -> bool {
        let Some((treatment, opening)) = self.treatment.as_ref().and_then(|it| Some((it, it.opening?))) else {
            return false;
        };
        let has_time = treatment.ahead.is_some_and(|ahead| now < self.notice_ends().minus(ahead));
        let is_wanted_now = self.asked_to_prepare_from().is_some_and(|from| now >= from);
        let has_begun = self.slots_since.is_some() || !self.attempts.is_empty();
        now >= opening.closes && has_time && !is_wanted_now && !has_begun && self.stage() <= Stage::Preparing
    }

    /// When the event is approved although not every hook is settled: the budget counts from the time at which the
    /// event has all slots (R9), and anew from an operator's retry and from `halted_until`.
    pub fn budget_ends(&self) -> Option<Timestamp> {
        let budget = self.treatment.as_ref().and_then(|treatment| treatment.budget)?;
        let from = self.slots_since?.max(self.preparation_starts());
        let later = [self.last_retry(), self.halted_until].into_iter().flatten();
        Some(later.fold(from, Timestamp::max).plus(budget))
    }

    /// Lets the budget count from now on: no hook could begin, or a hook before the others stopped them.
    pub(crate) fn restart_budget(&mut self, now: Timestamp) {
        self.halted_until = self.halted_until.max(Some(now));
    }

    /// When the event is approved without the hooks that are missing then. `None` without a budget, and for a budget that
    /// is longer than the notice: Azure starts the event first.
    pub fn approved_without_hooks_at(&self) -> Option<Timestamp> {
        self.budget_ends().filter(|ends| *ends < self.notice_ends())
    }

    /// Hooks end this long before the notice ends.
    pub fn margin(&self) -> Duration {
        self.treatment.as_ref().map_or(Duration::ZERO, |treatment| treatment.margin)
    }

    /// The latest end of a hook that prepares. A last call may use the whole notice.
    pub fn preparation_ends(&self) -> Timestamp {
        let notice = self.notice_ends().minus(self.margin());
        let is_hurried = self.last_call_since.is_some() || self.is_reopened();
        self.budget_for_hooks_ends().filter(|_| !is_hurried).map_or(notice, |ends| ends.min(notice))
    }

    /// When the budget leaves no further time for hooks: when the budget is exhausted, every run has been ended.
    pub fn budget_for_hooks_ends(&self) -> Option<Timestamp> {
        let budget = self.treatment.as_ref().and_then(|treatment| treatment.budget)?;
        Some(self.budget_ends()?.minus(ENDED_WITHIN.min(budget / 4)))
    }

    /// The latest end of a hook of this phase. A restore takes as long as necessary, and so does the undo of a hook
    /// that began.
    pub fn latest_end_of_phase(&self, phase: Phase) -> Option<Timestamp> {
        (phase < Phase::Restore && !self.stage().is_over()).then(|| self.preparation_ends())
    }

    /// The latest end of a running attempt: the attempt's own deadline, or earlier when the time for the phase has
    /// become shorter.
    pub fn deadline_of(&self, attempt: &Attempt) -> Timestamp {
        let ends = if attempt.intent == Intent::Undo { None } else { self.latest_end_of_phase(attempt.hook.phase) };
        ends.map_or(attempt.deadline, |ends| ends.min(attempt.deadline))
    }
}
