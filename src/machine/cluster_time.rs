//! The cluster's time as one replica knows it (`members.md` 5). It goes on by a steady clock; what a wall clock says counts
//! only where a majority of the voters says the same, so one that is wrong changes nothing.

use alloc::vec::Vec;
use core::time::Duration;

use super::time::Timestamp;

/// Wall clocks that are no further apart agree.
const AGREE_WITHIN: Duration = Duration::from_secs(2);
/// A leader waits this long for others to tell their clocks before it goes by its own.
const AGREES_WITHIN: Duration = Duration::from_secs(10);
/// A smaller difference is not worth a step.
const STEP_ABOVE: Duration = Duration::from_millis(100);

/// What one replica's clocks show at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Never goes back.
    pub steady: Timestamp,
    pub wall: Timestamp,
}

/// What the leader tells, or what this replica carries on as the leader; never behind the log, whose last entry may have
/// been stamped by a leader with a faster clock.
#[derive(Debug, Default)]
pub struct ClusterTime {
    /// The last applied entry.
    logged: Option<Mark>,
    /// What the cluster's time was when it was last told, agreed or logged; `None` before the first.
    carried: Option<Mark>,
    /// Another replica leads, and told what it carries.
    follows: bool,
    /// A leader that knew it told the time, or a majority agreed about it.
    is_known: bool,
    /// As a leader that does not know the time: since when, on the steady clock.
    in_doubt_since: Option<Timestamp>,
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
        let logged = Mark { time: entry, at: clocks.steady };
        if self.carried.is_none_or(|carried| carried.now(clocks) < entry) {
            self.carried = Some(logged);
        }
        (self.logged, self.is_busy) = (Some(logged), is_busy);
    }

    /// The leader, another replica, told what time it was at a moment of the steady clock, and whether it knows that.
    pub const fn follow(&mut self, time: Timestamp, at: Timestamp, is_known: bool) {
        self.carried = Some(Mark { time, at });
        (self.follows, self.is_known, self.in_doubt_since) = (true, is_known, None);
    }

    /// It is no guess.
    pub const fn is_known(&self) -> bool {
        self.is_known
    }

    /// This replica leads, and carries on the time that it knows.
    pub const fn lead(&mut self) {
        self.follows = false;
    }

    /// As the leader: by how many milliseconds the wall clocks of voters are ahead of the cluster's time, this replica's
    /// own first. True when the time was set by what a majority of so many voters agrees about.
    ///
    /// Where nobody knows the time and no majority agrees for a while, the leader's own wall clock counts. While something
    /// is open the time is not set, unless it was not known yet: deadlines hang on it.
    pub fn agree(&mut self, clocks: Clocks, ahead: &[i64], voters: usize) -> bool {
        let since = *self.in_doubt_since.get_or_insert(clocks.steady);
        let is_left_alone = clocks.steady.since(since) >= AGREES_WITHIN || voters <= 2;
        let own = ahead.first().copied().filter(|_| !self.is_known && is_left_alone);
        let Some(offset) = agreed(ahead, voters / 2 + 1).or(own).filter(|_| !self.follows) else { return false };
        if self.is_known && (self.is_busy || Duration::from_millis(offset.unsigned_abs()) < STEP_ABOVE) {
            return false;
        }
        let time = Timestamp(self.now(clocks).0.saturating_add(offset));
        let least = self.logged.map_or(time, |logged| logged.now(clocks));
        self.carried = Some(Mark { time: time.max(least), at: clocks.steady });
        self.is_known = true;
        true
    }

    /// Names the time that a leader carries on until it is set: what was measured against another one is of no use.
    pub fn base(&self) -> i64 {
        self.carried.map_or(0, |carried| carried.time.0.saturating_sub(carried.at.0))
    }

    /// Another replica leads and has told the time. Before that it is a guess, unless this one leads.
    pub const fn follows(&self) -> bool {
        self.follows
    }

    pub fn now(&self, clocks: Clocks) -> Timestamp {
        let time = self.carried.map_or(clocks.wall, |carried| carried.now(clocks));
        self.logged.map_or(time, |logged| logged.now(clocks).max(time))
    }

    /// The time of the last applied entry, carried on by the steady clock alone: never ahead of the cluster's, whatever
    /// this machine's wall clock says.
    pub fn of_the_log(&self, clocks: Clocks) -> Timestamp {
        self.logged.map_or_else(|| self.now(clocks), |mark| mark.now(clocks))
    }
}

/// The middle of the most clocks that agree, if they are so many.
fn agreed(ahead: &[i64], needed: usize) -> Option<i64> {
    let mut sorted: Vec<i64> = ahead.into();
    sorted.sort_unstable();
    let within = i64::try_from(AGREE_WITHIN.as_millis()).unwrap_or(i64::MAX);
    let is_near = |first: usize, each: &i64| each.saturating_sub(sorted[first]) <= within;
    let together = |first: usize| sorted[first..].iter().take_while(|each| is_near(first, each)).count();
    let (first, count) = (0..sorted.len()).map(|first| (first, together(first))).max_by_key(|(_, count)| *count)?;
    (count >= needed).then(|| sorted[first + (count - 1) / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn the_clocks_of_a_majority_count_whatever_the_others_show() {
        let cases: [(&[i64], usize, Option<i64>); 7] = [
            (&[0], 1, Some(0)),
            (&[HOUR, 3, 5], 2, Some(3)),
            (&[0, 3, -HOUR], 2, Some(0)),
            (&[0, HOUR], 2, None),
            (&[0, HOUR, -HOUR], 2, None),
            (&[HOUR, HOUR + 2_000, 1, 2_001, 7], 3, Some(7)),
            (&[], 1, None),
        ];
        for (ahead, needed, expected) in cases {
            assert_eq!(agreed(ahead, needed), expected, "{ahead:?}");
        }
    }

    #[test]
    fn one_wrong_clock_changes_nothing_though_it_is_the_leaders() {
        let mut time = ClusterTime::default();
        let clocks = |steady: i64, wall: i64| Clocks { steady: Timestamp(steady), wall: Timestamp(wall) };
        assert!(time.agree(clocks(0, 5_000), &[0, 1, 2], 3));
        let jumped = clocks(1_000, HOUR);
        assert_eq!(time.now(jumped), Timestamp(6_001));
        assert!(!time.agree(jumped, &[HOUR - 6_001, 0, 1], 3), "the others agree with the time");
        time.applied(jumped, time.now(jumped), false);
        assert_eq!(time.now(clocks(2_000, 7_000)), Timestamp(7_001), "also when it has jumped back");
    }

    #[test]
    fn a_time_that_is_not_known_is_set_though_something_is_open_and_no_other() {
        let clocks = |steady: i64| Clocks { steady: Timestamp(steady), wall: Timestamp(HOUR) };
        let mut time = ClusterTime::default();
        time.applied(clocks(0), Timestamp(100), true);
        assert_eq!(time.now(clocks(10)), Timestamp(110), "as old as the log");
        assert!(time.agree(clocks(10), &[HOUR, HOUR, 0], 3));
        assert!(!time.agree(clocks(20), &[HOUR, HOUR, 0], 3), "something is open");
        time.applied(clocks(30), Timestamp(HOUR), false);
        assert!(time.agree(clocks(40), &[HOUR, HOUR, 0], 3));
    }
}
