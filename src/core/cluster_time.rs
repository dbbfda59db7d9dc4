//! Cluster time as one replica knows it (`SPEC.md` 13). Cluster time advances by a monotonic clock. The platform's
//! time sets cluster time if the endpoints of a majority of the voters agree; otherwise a majority of the wall clocks
//! does. One wrong clock or endpoint changes nothing.

use crate::model::time::Timestamp;
use crate::platform_time::{Interval, shared_by_most};
use alloc::vec::Vec;
use core::time::Duration;

/// Wall clocks with at most this difference agree.
const AGREE_WITHIN: Duration = Duration::from_secs(2);

/// A leader waits this long for clock readings of other voters before falling back to its own clock.
const AGREES_WITHIN: Duration = Duration::from_secs(10);

/// An endpoint without an answer for this long is not waited for.
pub const ASKS_FOR: Duration = AGREES_WITHIN;

/// Log time never goes back. If log time keeps cluster time ahead of the right time by more than this, cluster time is
/// too wrong to compare with the end of a notice; a notice seems to end earlier by the difference.
const HELD_UP_AT_MOST: Duration = Duration::from_mins(1);

/// A smaller difference is not corrected.
const STEP_ABOVE: Duration = Duration::from_millis(100);

/// The clocks of one replica at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// The monotonic clock.
    pub steady: Timestamp,
    pub wall: Timestamp,
}

/// The trust in cluster time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Trust {
    /// No time is known. A leader stamps no entry with this time.
    #[default]
    Unknown,
    /// A leader uses its own wall clock without confirmation: no time of the platform is compared with this time.
    Guessed,
    Known,
}

string_enum!(Trust { Unknown => "unknown", Guessed => "guessed", Known => "known" });

/// One voter's reading of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockReading {
    /// By how many milliseconds the voter's wall clock is ahead of cluster time; `None` before the first measurement.
    pub wall: Option<i64>,
    /// By how many milliseconds the platform's time is ahead, as shown by the voter's metadata endpoint; `None` without
    /// a date.
    pub platform: Option<Interval>,
    /// The voter's endpoint has not answered yet.
    pub is_asking: bool,
}

/// The time received from the leader, or advanced by this replica as the leader; never behind the log, whose last entry
/// may have been stamped by a leader with a faster clock.
#[derive(Debug, Default)]
pub struct ClusterTime {
    /// The last applied entry.
    logged: Option<ClockMark>,
    /// Cluster time when last received, agreed or logged; `None` before the first.
    carried: Option<ClockMark>,
    /// Another replica leads, and has sent its time.
    follows: bool,
    trust: Trust,
    /// On a leader without a known time: the start of this condition, on the monotonic clock.
    in_doubt_since: Option<Timestamp>,
    is_busy: bool,
}

/// A cluster time, and its time on the monotonic clock.
#[derive(Clone, Copy, Debug)]
struct ClockMark {
    time: Timestamp,
    at: Timestamp,
}

impl ClockMark {
    fn now(self, clocks: Clocks) -> Timestamp {
        self.time.plus(clocks.steady.since(self.at))
    }
}

impl ClusterTime {
    /// Records the time of an applied entry, and whether an event is open.
    pub fn applied(&mut self, clocks: Clocks, entry: Timestamp, is_busy: bool) {
        let logged = ClockMark { time: entry, at: clocks.steady };
        if self.carried.is_none_or(|carried| carried.now(clocks) < entry) {
            self.carried = Some(logged);
        }
        (self.logged, self.is_busy) = (Some(logged), is_busy);
    }

    /// Adopts the time that another replica, the leader, had at `at` on the monotonic clock, and the leader's trust in
    /// this time. False if this replica's time is trusted more, and kept.
    pub fn follow(&mut self, time: Timestamp, at: Timestamp, trust: Trust) -> bool {
        (self.follows, self.in_doubt_since) = (true, None);
        if trust < self.trust {
            return false;
        }
        (self.carried, self.trust) = (Some(ClockMark { time, at }), trust);
        true
    }

    /// The trust in the current time.
    pub const fn trust(&self) -> Trust {
        self.trust
    }

    /// This replica leads, and advances the known time.
    pub const fn lead(&mut self) {
        self.follows = false;
    }

    /// Adopts, as a leader without a known time, the time of a replica with a known time. True when the time was
    /// adopted.
    pub fn adopt(&mut self, clocks: Clocks, time: Timestamp) -> bool {
        if self.follows || self.trust == Trust::Known || (self.is_busy && self.trust == Trust::Guessed) {
            return false;
        }
        let (before, was) = (self.now(clocks), self.trust);
        self.set(clocks, time, Trust::Known);
        was != self.trust || self.now(clocks) != before
    }

    /// Agrees on the time, as the leader, from the `readings` of the `voters` voters, this replica's reading first, as
    /// far as received. True when the time was set.
    ///
    /// While an event is open, the time by which its deadlines were set is not changed.
    pub fn agree(&mut self, clocks: Clocks, readings: &[ClockReading], voters: usize) -> bool {
        if self.follows {
            return false;
        }
        let since = *self.in_doubt_since.get_or_insert(clocks.steady);
        let is_patient = self.trust == Trust::Unknown && clocks.steady.since(since) < AGREES_WITHIN;
        let own = readings.first().map_or(0, own_guess);
        let sure = agreed_time_ahead(readings, voters, self.trust, is_patient);
        let (ahead, trust) = match sure {
            Some(ahead) => (ahead, Trust::Known),
            None if self.trust != Trust::Unknown || is_patient => return false,
            // Open events began by the time of the log.
            None if self.is_busy => (0, Trust::Guessed),
            None => (own, Trust::Guessed),
        };
        let is_step = Duration::from_millis(ahead.unsigned_abs()) >= STEP_ABOVE;
        if self.trust != Trust::Unknown && (self.is_busy || !is_step) {
            if !is_step {
                self.trust = self.trust.max(trust);
            }
            return false;
        }
        let before = self.now(clocks);
        let was = self.trust;
        self.set(clocks, Timestamp(before.0.saturating_add(ahead)), trust);
        was != self.trust || self.now(clocks) != before
    }

    fn set(&mut self, clocks: Clocks, time: Timestamp, trust: Trust) {
        let least = self.logged.map_or(time, |logged| logged.now(clocks));
        self.carried = Some(ClockMark { time: time.max(least), at: clocks.steady });
        self.trust = if least.since(time) > HELD_UP_AT_MOST { Trust::Guessed } else { trust };
    }

    /// Identifies the time that a leader advances, until the time is set: a measurement against another time is of no
    /// use.
    pub fn base(&self) -> i64 {
        self.carried.map_or(0, |carried| carried.time.0.saturating_sub(carried.at.0))
    }

    /// Another replica leads and has sent its time. Before that the time is a guess, unless this replica leads.
    pub const fn follows(&self) -> bool {
        self.follows
    }

    pub fn now(&self, clocks: Clocks) -> Timestamp {
        let time = self.carried.map_or(clocks.wall, |carried| carried.now(clocks));
        self.logged.map_or(time, |logged| logged.now(clocks).max(time))
    }

    /// The time of the last applied entry, advanced by the monotonic clock alone: never ahead of cluster time,
    /// regardless of this machine's wall clock.
    pub fn of_the_log(&self, clocks: Clocks) -> Timestamp {
        self.logged.map_or_else(|| self.now(clocks), |mark| mark.now(clocks))
    }
}

/// By how many milliseconds the right time is ahead of cluster time; `None` if unknown.
///
/// A leader that `is_patient` waits for missing readings before trusting a single endpoint.
fn agreed_time_ahead(readings: &[ClockReading], voters: usize, trust: Trust, is_patient: bool) -> Option<i64> {
    let majority = voters / 2 + 1;
    let walls: Vec<i64> = readings.iter().filter_map(|reading| reading.wall).collect();
    let platform: Vec<Interval> = readings.iter().filter_map(|reading| reading.platform).collect();
    if let Some((_, shared)) = shared_by_most(&platform).filter(|(count, _)| *count >= majority) {
        return Some(within(shared, walls));
    }
    let is_awaited = readings.iter().any(|reading| reading.is_asking);
    // A single voter has no other clock to agree with. And the missing endpoints may be the endpoints that set the
    // time.
    let waits = is_awaited && (trust == Trust::Known || (voters == 1 && is_patient));
    if let Some(ahead) = agreed(&walls, majority).filter(|_| !waits) {
        return Some(ahead);
    }
    let is_complete = walls.len() >= voters && !is_awaited;
    if trust == Trust::Known || (is_patient && !is_complete) {
        return None;
    }
    chosen(&platform, &walls)
}

/// The time of a leader without a second clock: its wall clock, unless its own endpoint contradicts the clock.
fn own_guess(own: &ClockReading) -> i64 {
    let wall = own.wall.unwrap_or(0);
    let contradicts = |shown: &Interval| !agrees(shown.distance_to(wall));
    own.platform.filter(contradicts).map_or(wall, Interval::middle)
}

fn agrees(distance: i64) -> bool {
    Duration::from_millis(distance.unsigned_abs()) <= AGREE_WITHIN
}

/// The wall clocks within the platform's interval refine the time. Without such a clock cluster time stays unchanged if
/// possible within the interval.
fn within(platform: Interval, walls: Vec<i64>) -> i64 {
    let mut fitting: Vec<i64> = walls.into_iter().filter(|wall| platform.holds(*wall)).collect();
    fitting.sort_unstable();
    let middle = fitting.get(fitting.len().saturating_sub(1) / 2).copied();
    middle.unwrap_or_else(|| if platform.holds(0) { 0 } else { platform.middle() })
}

/// The wall clock confirmed by an endpoint; `None` if two confirmed wall clocks disagree.
fn chosen(platform: &[Interval], walls: &[i64]) -> Option<i64> {
    let nearest = |shown: &Interval| {
        let nearest = walls.iter().min_by_key(|wall| shown.distance_to(**wall).unsigned_abs());
        nearest.copied().filter(|wall| agrees(shown.distance_to(*wall)))
    };
    let right: Vec<i64> = platform.iter().filter_map(nearest).collect();
    agreed(&right, right.len())
}

/// The middle clock of the largest agreeing group, if the group has `needed` clocks.
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
mod tests;
