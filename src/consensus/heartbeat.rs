//! Sends a leader's heartbeats, and lets openraft look at the time only while that may elect somebody.
//!
//! Its own timer goes off five times in each heartbeat, in every replica, and is half of what an idle replica costs.

use std::time::{Duration, Instant};

use openraft::ServerState;
use openraft::rt::WatchReceiver as _;
use tokio::time::sleep_until;

use super::node::Consensus;

/// What keeps openraft's sense of time.
#[derive(Debug, PartialEq, Eq)]
enum Clock {
    /// This replica leads: heartbeats are sent from here.
    Heartbeats,
    /// A leader is heard, so no election can be due yet.
    None,
    Openraft,
}

impl Consensus {
    /// Runs until the replica stops.
    pub(crate) async fn beat(self) {
        let every = self.options.timing.heartbeat;
        let (mut metrics, mut heard) = (self.raft.metrics(), self.heard.subscribe());
        let mut next = Instant::now();
        loop {
            let now = Instant::now();
            let clock = clock(metrics.borrow_watched().state, *heard.borrow_and_update(), every);
            self.raft.runtime_config().tick(clock == Clock::Openraft);
            if clock == Clock::Heartbeats && next <= now {
                if self.raft.trigger().heartbeat().await.is_err() {
                    return;
                }
                next = now + every;
            }
            let look = if clock == Clock::Heartbeats { next } else { now + late(every) };
            tokio::select! {
                () = sleep_until(look.into()) => {}
                _ = heard.changed() => {}
                changed = metrics.changed() => if changed.is_err() {
                    return;
                },
                () = self.stop.cancelled() => return,
            }
        }
    }
}

/// After so long without a heartbeat one is missing. A lease is three heartbeats at the default timings and is waited for
/// before any election, so none begins later for it.
pub(super) fn late(every: Duration) -> Duration {
    every * 3 / 2
}

fn clock(state: ServerState, heard: Option<Instant>, every: Duration) -> Clock {
    match state {
        ServerState::Leader => Clock::Heartbeats,
        ServerState::Follower | ServerState::Learner if heard.is_some_and(|heard| heard.elapsed() < late(every)) => {
            Clock::None
        }
        ServerState::Follower | ServerState::Learner | ServerState::Candidate | ServerState::Shutdown => {
            Clock::Openraft
        }
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
            (ServerState::Leader, None, Clock::Heartbeats),
            (ServerState::Follower, fresh, Clock::None),
            (ServerState::Learner, fresh, Clock::None),
            (ServerState::Follower, stale, Clock::Openraft),
            (ServerState::Follower, None, Clock::Openraft),
            (ServerState::Learner, stale, Clock::Openraft),
            (ServerState::Candidate, fresh, Clock::Openraft),
        ] {
            assert_eq!(clock(state, heard, every), expected, "{state:?}, heard {heard:?}");
        }
    }
}
