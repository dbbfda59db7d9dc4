//! Durations of an event, computed from the log.

use crate::model::document::NotBefore;
use crate::model::event::Event;
use crate::model::time::Timestamp;
use crate::model::workload::Phase;
use core::time::Duration;

impl Event {
    /// From its announcement to the end of its notice; `None` when the platform names none that can be read.
    pub fn announced_notice(&self) -> Option<Duration> {
        match self.announcement.not_before {
            NotBefore::At(at) => Some(at.since(self.first_seen())),
            NotBefore::Unknown => None,
        }
    }

    /// From the first hook that prepares until the last one is settled; `None` when there was none, or one still runs.
    pub fn time_to_prepare(&self) -> Option<Duration> {
        let hooks = || self.attempts.iter().filter(|attempt| attempt.hook.phase < Phase::Restore);
        let begun = hooks().map(|attempt| attempt.begun_at).min()?;
        let ended: Option<Timestamp> = hooks()
            .map(|attempt| attempt.outcome.as_ref().map(|(_, at)| *at))
            .try_fold(begun, |last, at| Some(last.max(at?)));
        Some(ended?.since(begun))
    }

    /// From its announcement until the platform took the approval; `None` when it never did.
    pub fn time_to_all_clear(&self) -> Option<Duration> {
        Some(self.accepted_at()?.since(self.first_seen()))
    }

    /// The longest of what the replicas of its VMs observed; `None` when none of them could.
    pub fn impact(&self) -> Option<Duration> {
        self.impacts.values().max().copied()
    }
}
