//! Sends the leader's heartbeats (from `status`), and runs openraft's clock only while an election is possible.
//!
//! openraft's own timer fires five times per heartbeat in every replica. The timer is half of the cost of an idle
//! replica.

use std::time::{Duration, Instant};

use openraft::ServerState;

/// After this long without a heartbeat, a heartbeat is missing. A lease is three heartbeats at the default timings and
/// expires before any election, so this time delays no election.
pub(super) fn late(every: Duration) -> Duration {
    every * 3 / 2
}

/// Whether an election may be due: not while this replica leads, nor while a leader was heard recently.
pub(super) fn may_elect(state: ServerState, heard: Option<Instant>, every: Duration) -> bool {
    match state {
        ServerState::Leader => false,
        ServerState::Follower | ServerState::Learner => heard.is_none_or(|heard| heard.elapsed() >= late(every)),
        ServerState::Candidate | ServerState::Shutdown => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openraft_looks_at_the_time_wherever_an_election_may_be_due() {
        let (every, now) = (Duration::from_mins(1), Instant::now());
        let (fresh, stale) = (Some(now), now.checked_sub(late(every)));
        for (state, heard, expected) in [
            (ServerState::Leader, None, false),
            (ServerState::Follower, fresh, false),
            (ServerState::Learner, fresh, false),
            (ServerState::Follower, stale, true),
            (ServerState::Follower, None, true),
            (ServerState::Learner, stale, true),
            (ServerState::Candidate, fresh, true),
        ] {
            assert_eq!(may_elect(state, heard, every), expected, "{state:?}, heard {heard:?}");
        }
    }
}
