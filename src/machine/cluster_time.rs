//! The cluster's time as one replica knows it.

use super::time::Timestamp;

/// What one replica's clocks show at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Never goes back.
    pub steady: Timestamp,
    pub wall: Timestamp,
}

/// The leader's wall clock, but never behind the log, whose last entry may have been stamped by a leader with a faster
/// clock. From there on it goes on, so that nothing waits for ever. While something is open it goes on by the steady
/// clock alone, whoever leads and whatever becomes of the wall clocks: deadlines hang on it.
#[derive(Debug, Default)]
pub struct ClusterTime {
    /// The last applied entry.
    logged: Option<Mark>,
    /// What the cluster's time was when it was last known otherwise.
    carried: Option<Mark>,
    /// Another replica leads, and told what it carries.
    follows: bool,
    is_busy: bool,
}

/// What time it was, and when that was on the steady clock.
#[derive(Clone, Copy, Debug)]
struct Mark {
    time: Timestamp,
    at: Timestamp,
}

impl Mark {
    fn now(self, clocks: Clocks) -> Timestamp {
        self.time.plus(clocks.steady.since(self.at))
    }
}

impl ClusterTime {
    /// An entry of this time was applied; now something is open, or nothing is.
    pub fn applied(&mut self, clocks: Clocks, entry: Timestamp, is_busy: bool) {
        let at = clocks.steady;
        if is_busy && !self.is_busy && !self.follows {
            self.carried = Some(Mark { time: self.now(clocks).max(entry), at });
        }
        self.is_busy = is_busy;
        self.logged = Some(Mark { time: entry, at });
    }

    /// The leader, another replica, told what time it was at a moment of the steady clock.
    pub const fn follow(&mut self, time: Timestamp, at: Timestamp) {
        self.carried = Some(Mark { time, at });
        self.follows = true;
    }

    /// This replica leads: its own wall clock counts as soon as nothing is open.
    pub const fn lead(&mut self) {
        self.follows = false;
    }

    /// Another replica leads and has told the time. Before that it is a guess, unless this one leads.
    pub const fn follows(&self) -> bool {
        self.follows
    }

    pub fn now(&self, clocks: Clocks) -> Timestamp {
        let carried = self.carried.filter(|_| self.follows || self.is_busy);
        let time = carried.map_or(clocks.wall, |mark| mark.now(clocks));
        self.logged.map_or(time, |logged| logged.now(clocks).max(time))
    }

    /// The time of the last applied entry, carried on by the steady clock alone: never ahead of the cluster's, whatever
    /// this machine's wall clock says.
    pub fn of_the_log(&self, clocks: Clocks) -> Timestamp {
        self.logged.map_or_else(|| self.now(clocks), |mark| mark.now(clocks))
    }
}
