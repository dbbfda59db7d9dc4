//! Durations of an event, computed from the log.

use crate::model::document::NotBefore;
use crate::model::event::Event;
use crate::model::time::Timestamp;
use crate::model::workload::Phase;
use core::time::Duration;

impl Event {
    /// The time from the announcement to the end of the notice; `None` without a readable end.
    pub fn announced_notice(&self) -> Option<Duration> {
        match self.announcement.not_before {
            NotBefore::At(at) => Some(at.since(self.first_seen())),
            NotBefore::Unknown => None,
        }
    }

    /// The time from the first hook that prepares until the last such hook is settled; `None` without such a hook, or
    /// while a hook still runs.
    pub fn time_to_prepare(&self) -> Option<Duration> {
        let hooks = || self.attempts.iter().filter(|attempt| attempt.hook.phase < Phase::Restore);
        let begun = hooks().map(|attempt| attempt.begun_at).min()?;
        let ended: Option<Timestamp> = hooks()
            .map(|attempt| attempt.outcome.as_ref().map(|(_, at)| *at))
            .try_fold(begun, |last, at| Some(last.max(at?)));
        Some(ended?.since(begun))
    }

    /// The time from the announcement until the platform accepted the approval; `None` without acceptance, and for an
    /// approval by an isolated replica before the log had the event.
    pub fn time_to_all_clear(&self) -> Option<Duration> {
        let accepted = self.accepted_at().filter(|at| *at >= self.first_seen())?;
        Some(accepted.since(self.first_seen()))
    }

    /// The longest impact observed by the replicas of the event's VMs; `None` without an observation.
    pub fn impact(&self) -> Option<Duration> {
        self.impacts.values().max().copied()
    }
}
