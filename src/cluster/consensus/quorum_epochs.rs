//! Counts how often a leader has regained its quorum within its term. No loss goes uncounted.

use std::time::{Duration, Instant};

/// The quorum epochs of the last leadership.
#[derive(Debug, Default)]
pub(crate) struct QuorumEpochs {
    term: u64,
    count: u64,
    /// Until when the last acknowledgement is valid; `None` after a loss.
    good_until: Option<Instant>,
    /// The send time of the last message acknowledged by a quorum, in any term of leadership of this replica.
    acknowledged: Option<Instant>,
}

impl QuorumEpochs {
    /// Records the last acknowledgement of a quorum for a leader of this term; returns the epoch and whether the quorum
    /// is there now. A call after the expiry of the previous acknowledgement counts as a loss: a frozen leader cannot
    /// know the events meanwhile.
    pub(crate) fn record_acknowledgement(
        &mut self,
        term: u64,
        acknowledged: Option<Instant>,
        now: Instant,
        lease: Duration,
    ) -> (u64, bool) {
        if self.term != term {
            *self = Self { term, count: 0, good_until: None, acknowledged: self.acknowledged };
        }
        self.acknowledged = self.acknowledged.max(acknowledged);
        let good_until = acknowledged.map(|acknowledged| acknowledged + lease).filter(|until| now < *until);
        if good_until.is_some() && self.good_until.is_none_or(|until| now >= until) {
            self.count += 1;
        }
        self.good_until = good_until;
        (self.count, good_until.is_some())
    }

    /// Records the end of this replica's leadership.
    pub(crate) fn end(&mut self) {
        self.good_until = None;
    }

    pub(crate) fn acknowledged(&self) -> Option<Instant> {
        self.acknowledged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_millis(600);

    #[test]
    fn every_loss_of_the_quorum_begins_a_new_turn() {
        let (mut turns, start) = (QuorumEpochs::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        let mut look =
            |term, acked: Option<u64>, now| turns.record_acknowledgement(term, acked.map(at), at(now), LEASE);
        assert_eq!(look(3, None, 0), (0, false));
        assert_eq!(look(3, Some(10), 20), (1, true));
        assert_eq!(look(3, Some(500), 600), (1, true));
        assert_eq!(look(3, Some(500), 1100), (1, false));
        assert_eq!(look(3, Some(1200), 1300), (2, true));
        assert_eq!(look(4, Some(1400), 1500), (1, true));
    }

    #[test]
    fn a_leader_that_was_frozen_begins_a_new_turn_even_if_it_finds_its_quorum_again_at_once() {
        let (mut turns, start) = (QuorumEpochs::default(), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(turns.record_acknowledgement(3, Some(start), at(1), LEASE), (1, true));
        assert_eq!(turns.record_acknowledgement(3, Some(at(10_000)), at(10_001), LEASE), (2, true));
    }

    #[test]
    fn a_leadership_that_ended_leaves_its_last_contact_behind() {
        let (mut turns, start) = (QuorumEpochs::default(), Instant::now());
        turns.record_acknowledgement(3, Some(start), start, LEASE);
        turns.end();
        assert_eq!(turns.acknowledged(), Some(start));
    }
}
