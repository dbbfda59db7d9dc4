//! Bounds how far a message may be ahead of this replica. Terms and positions grow one by one, so an honest message is
//! never far ahead. A term at the end of its range would end all elections.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::types::{LogId, RaftVote};

/// At the shortest election timeout, a cluster in permanent election needs two months for this many terms. A replica
/// does not know how long its disconnection lasted, so the bound does not grow with time. Reaching the end of the
/// numbers by such steps takes a million million messages.
pub(super) const TERMS_AT_MOST: u64 = 1 << 24;
/// Thirty years of a thousand entries a second.
const ENTRIES_AT_MOST: u64 = 1 << 40;

/// The last stored term of this replica, shared by all clones.
#[derive(Debug, Clone, Default)]
pub(super) struct OwnTerm(Arc<AtomicU64>);

impl OwnTerm {
    pub(super) fn stored(&self, term: u64) {
        self.0.store(term, Ordering::SeqCst);
    }

    fn now(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A message that no replica sends under the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Leap {
    #[error("term {term} is more than {TERMS_AT_MOST} terms ahead of {own}, the term of this replica")]
    Term { term: u64, own: u64 },
    #[error(
        "position {index} is more than {ENTRIES_AT_MOST} entries ahead of {own}, the last position of this replica"
    )]
    Index { index: u64, own: u64 },
    #[error("the position {index} of term {of} is of a later term than the message, which is of term {term}")]
    Later { index: u64, of: u64, term: u64 },
}

impl OwnTerm {
    /// Rejects a vote with a term too far ahead.
    pub(super) fn check(&self, vote: &RaftVote) -> Result<(), Leap> {
        let (term, own) = (vote.leader_id.term, self.now());
        if term <= own.saturating_add(TERMS_AT_MOST) { Ok(()) } else { Err(Leap::Term { term, own }) }
    }

    /// Rejects a vote as `check` does, and positions too far ahead of `last`, or of a later term than the vote.
    pub(super) fn check_all(
        &self,
        vote: &RaftVote,
        last: Option<u64>,
        positions: impl IntoIterator<Item = LogId>,
    ) -> Result<(), Leap> {
        self.check(vote)?;
        let (term, own) = (vote.leader_id.term, last.unwrap_or(0));
        for position in positions {
            let (of, index) = (position.committed_leader_id().term, position.index());
            if of > term {
                return Err(Leap::Later { index, of, term });
            }
            if index > own.saturating_add(ENTRIES_AT_MOST) {
                return Err(Leap::Index { index, own });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::codec;
    use super::*;
    use allclear_wire::pb::allclear::raft::v1 as pb;

    fn vote(term: u64) -> RaftVote {
        codec::vote(Some(pb::Vote { term, node: 1, committed: false })).unwrap()
    }

    #[test]
    fn whoever_was_away_for_two_months_of_elections_is_caught_up_with_and_a_leap_is_refused() {
        let own = OwnTerm::default();
        own.stored(7);
        assert_eq!(own.check(&vote(7 + TERMS_AT_MOST)), Ok(()));
        for term in [8 + TERMS_AT_MOST, u64::MAX] {
            assert_eq!(own.check(&vote(term)), Err(Leap::Term { term, own: 7 }));
        }
        // At the end itself nothing overflows.
        own.stored(u64::MAX);
        assert_eq!(own.check(&vote(u64::MAX)), Ok(()));
    }

    #[test]
    fn positions_beyond_what_can_have_been_written_are_refused() {
        let own = OwnTerm::default();
        let at = |term, index| codec::log_id(pb::LogId { term, index });
        let check = |position| own.check_all(&vote(3), Some(10), [at(1, 1), position]);
        assert_eq!(check(at(3, 10 + ENTRIES_AT_MOST)), Ok(()));
        let index = 11 + ENTRIES_AT_MOST;
        assert_eq!(check(at(3, index)), Err(Leap::Index { index, own: 10 }));
        assert_eq!(check(at(3, u64::MAX)), Err(Leap::Index { index: u64::MAX, own: 10 }));
        assert_eq!(check(at(4, 11)), Err(Leap::Later { index: 11, of: 4, term: 3 }));
        assert_eq!(own.check_all(&vote(3), None, []), Ok(()));
    }
}
