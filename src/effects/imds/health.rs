//! The health of one replica's channel to its metadata service. Time is an argument.
//!
//! A failure changes the health only, never the last known document.

use std::collections::BTreeSet;
use std::time::Duration;

use super::no_information::NoInformation;
use allclear_core::model::isolation::ImdsHealth as Health;
use allclear_core::model::time::Timestamp;

/// The default for `stall_after` (`SPEC.md` 2.5).
pub const STALL_AFTER: Duration = Duration::from_secs(15);
/// The service may need two minutes to switch the feature on; until then silence means nothing.
pub const ENROLS_WITHIN: Duration = Duration::from_secs(130);

/// All times are of one monotonic clock.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ImdsHealthTracker {
    stall_after: Duration,
    opened_at: Timestamp,
    /// The service has answered at least once.
    enrolled: bool,
    last_document: Option<Timestamp>,
    /// The kinds of failures since the last document, with their HTTP status.
    failures: BTreeSet<(&'static str, u16)>,
}

impl ImdsHealthTracker {
    pub fn new(stall_after: Duration, opened_at: Timestamp) -> Self {
        Self { stall_after, opened_at, enrolled: false, last_document: None, failures: BTreeSet::new() }
    }

    /// Records a validated document.
    pub fn document(&mut self, fetched_at: Timestamp) {
        self.enrolled = true;
        self.last_document = Some(fetched_at);
        self.failures.clear();
    }

    /// Records a poll without a document. True for the first failure of its kind since the last document: the log then
    /// has every cause, and no cause twice.
    pub fn failed(&mut self, why: &NoInformation) -> bool {
        self.enrolled |= why.answered();
        why.is_failure() && self.failures.insert((why.word(), why.status()))
    }

    pub fn health(&self, now: Timestamp) -> Health {
        match (self.age(now), now.since(self.opened_at)) {
            (Some(age), _) if age < self.stall_after => Health::Healthy,
            (None, waited) if waited < self.patience() => Health::Unknown,
            (Some(_) | None, _) => Health::Stalled,
        }
    }

    /// The time since the last validated document.
    pub fn age(&self, now: Timestamp) -> Option<Duration> {
        self.last_document.map(|at| now.since(at))
    }

    /// The time limit before a stall; a service with answers but no document gets no extra time.
    const fn patience(&self) -> Duration {
        if self.enrolled { self.stall_after } else { ENROLS_WITHIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp(seconds * 1000)
    }

    fn channel() -> ImdsHealthTracker {
        ImdsHealthTracker::new(STALL_AFTER, at(100))
    }

    #[test]
    fn a_service_that_has_not_answered_yet_is_unknown_for_two_minutes_and_then_stalled() {
        let mut channel = channel();
        channel.failed(&NoInformation::Refused);
        assert_eq!(channel.health(at(229)), Health::Unknown);
        assert_eq!(channel.health(at(230)), Health::Stalled);
        assert_eq!(channel.age(at(230)), None);
    }

    #[test]
    fn a_service_that_answers_without_a_document_stalls_as_soon_as_any_other() {
        let mut channel = channel();
        channel.failed(&NoInformation::EmptyBody);
        assert_eq!(channel.health(at(114)), Health::Unknown);
        assert_eq!(channel.health(at(115)), Health::Stalled);
    }

    #[test]
    fn a_document_is_good_for_the_stall_time_and_failures_do_not_shorten_it() {
        let mut channel = channel();
        channel.document(at(160));
        channel.failed(&NoInformation::EmptyBody);
        assert_eq!(channel.health(at(174)), Health::Healthy);
        assert_eq!(channel.health(at(175)), Health::Stalled);
        assert_eq!(channel.age(at(175)), Some(Duration::from_secs(15)));
        channel.document(at(176));
        assert_eq!(channel.health(at(176)), Health::Healthy);
    }

    #[test]
    fn each_kind_of_failure_is_told_once_until_a_document_arrives() {
        let mut channel = channel();
        let timeout = NoInformation::Timeout { after: Duration::from_secs(10) };
        assert!(channel.failed(&timeout) && channel.failed(&NoInformation::NotAllowed { code: 403 }));
        assert!(!channel.failed(&timeout) && !channel.failed(&NoInformation::NotAllowed { code: 403 }));
        let broken = NoInformation::Status { code: 500, said: String::new() };
        assert!(channel.failed(&broken) && channel.failed(&NoInformation::BadGateway));
        channel.document(at(160));
        assert!(channel.failed(&timeout));
    }

    #[test]
    fn a_poll_that_gave_way_to_an_approval_is_no_failure() {
        let mut channel = channel();
        assert!(!channel.failed(&NoInformation::GaveWay));
    }
}
