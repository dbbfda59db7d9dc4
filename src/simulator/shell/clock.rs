//! The cluster's time as one replica knows it, by the rules of `replica::clock`; clocks are arguments.

use crate::machine::time::Timestamp;

/// What one replica's clocks show at a moment.
#[derive(Clone, Copy)]
pub(in crate::simulator) struct Clocks {
    pub(in crate::simulator) steady: Timestamp,
    pub(in crate::simulator) wall: Timestamp,
}

#[derive(Default)]
pub(super) struct ClusterTime {
    logged: Option<Mark>,
    carried: Option<Mark>,
    follows: bool,
    is_busy: bool,
}

#[derive(Clone, Copy)]
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
    pub(super) fn applied(&mut self, clocks: Clocks, entry: Timestamp, is_busy: bool) {
        let at = clocks.steady;
        if is_busy && !self.is_busy && !self.follows {
            self.carried = Some(Mark { time: self.now(clocks).max(entry), at });
        }
        self.is_busy = is_busy;
        self.logged = Some(Mark { time: entry, at });
    }

    pub(super) fn follow(&mut self, clocks: Clocks, time: Timestamp) {
        self.carried = Some(Mark { time, at: clocks.steady });
        self.follows = true;
    }

    pub(super) fn lead(&mut self) {
        self.follows = false;
    }

    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    pub(super) fn now(&self, clocks: Clocks) -> Timestamp {
        let carried = self.carried.filter(|_| self.follows || self.is_busy);
        let time = carried.map_or(clocks.wall, |mark| mark.now(clocks));
        self.logged.map_or(time, |logged| logged.now(clocks).max(time))
    }

    pub(super) fn of_the_log(&self, clocks: Clocks) -> Timestamp {
        self.logged.map_or_else(|| self.now(clocks), |mark| mark.now(clocks))
    }
}
