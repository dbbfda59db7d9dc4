//! The cluster's time as one replica knows it (`members.md` 5). It advances by a monotonic clock. The platform's time
//! sets it, where the endpoints of a majority of the voters agree; otherwise a majority of the wall clocks does. One
//! wrong clock or endpoint changes nothing.

use crate::model::time::Timestamp;
use crate::platform_time::{Interval, shared_by_most};
use alloc::vec::Vec;
use core::time::Duration;

/// Wall clocks that are no further apart agree.
const AGREE_WITHIN: Duration = Duration::from_secs(2);

/// A leader waits this long for others to tell their clocks before it goes by its own.
const AGREES_WITHIN: Duration = Duration::from_secs(10);

/// An endpoint that has not answered for so long is not waited for.
pub const ASKS_FOR: Duration = AGREES_WITHIN;

/// The log never goes back. A time that it holds up for longer than this is too far from the right one to tell when a notice
/// ends; a notice seems to end so much earlier.
const HELD_UP_AT_MOST: Duration = Duration::from_mins(1);

/// A smaller difference is not worth a step.
const STEP_ABOVE: Duration = Duration::from_millis(100);

/// What one replica's clocks show at a moment.
#[derive(Clone, Copy, Debug)]
pub struct Clocks {
    /// Never goes back.
    pub steady: Timestamp,
    pub wall: Timestamp,
}

/// How far the cluster's time is to be believed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Trust {
    /// Nobody has told it. A leader stamps nothing by it.
    #[default]
    Unknown,
    /// A leader goes by its own wall clock, and nothing says that it is right: no time of the platform is compared with it.
    Guessed,
    Known,
}

string_enum!(Trust { Unknown => "unknown", Guessed => "guessed", Known => "known" });

/// What one voter tells of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockReading {
    /// By how many milliseconds its wall clock is ahead of the cluster's time; `None` before it was measured.
    pub wall: Option<i64>,
    /// By how many the platform's time is, as its metadata endpoint shows it; `None` where that tells no date.
    pub platform: Option<Interval>,
    /// Its endpoint has yet to answer for the first time.
    pub is_asking: bool,
}

/// What the leader tells, or what this replica carries on as the leader; never behind the log, whose last entry may have
/// been stamped by a leader with a faster clock.
#[derive(Debug, Default)]
pub struct ClusterTime {
    /// The last applied entry.
    logged: Option<ClockMark>,
    /// What the cluster's time was when it was last told, agreed or logged; `None` before the first.
    carried: Option<ClockMark>,
    /// Another replica leads, and told what it carries.
    follows: bool,
    trust: Trust,
    /// As a leader that does not know the time: since when, on the steady clock.
    in_doubt_since: Option<Timestamp>,
    is_busy: bool,
}

/// What time it was, and when that was on the steady clock.
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
    /// An entry of this time was applied; now something is open, or nothing is.
    pub fn applied(&mut self, clocks: Clocks, entry: Timestamp, is_busy: bool) {
        let logged = ClockMark { time: entry, at: clocks.steady };
        if self.carried.is_none_or(|carried| carried.now(clocks) < entry) {
            self.carried = Some(logged);
        }
        (self.logged, self.is_busy) = (Some(logged), is_busy);
    }

    /// The leader, another replica, told what time it was at a moment of the steady clock, and how far that is to be
    /// believed. False where this replica knows better, and keeps what it knows.
    pub fn follow(&mut self, time: Timestamp, at: Timestamp, trust: Trust) -> bool {
        (self.follows, self.in_doubt_since) = (true, None);
        if trust < self.trust {
            return false;
        }
        (self.carried, self.trust) = (Some(ClockMark { time, at }), trust);
        true
    }

    /// How far it is to be believed.
    pub const fn trust(&self) -> Trust {
        self.trust
    }

    /// This replica leads, and carries on the time that it knows.
    pub const fn lead(&mut self) {
        self.follows = false;
    }

    /// As a leader that does not know the time: another replica does, and tells it. True when it was taken over.
    pub fn adopt(&mut self, clocks: Clocks, time: Timestamp) -> bool {
        if self.follows || self.trust == Trust::Known || (self.is_busy && self.trust == Trust::Guessed) {
            return false;
        }
        let (before, was) = (self.now(clocks), self.trust);
        self.set(clocks, time, Trust::Known);
        was != self.trust || self.now(clocks) != before
    }

    /// As the leader: what so many voters tell of the time, this replica first, as far as they have told anything. True
    /// when the time was set by that.
    ///
    /// While something is open, a time by which its deadlines were set goes on as it is.
    pub fn agree(&mut self, clocks: Clocks, readings: &[ClockReading], voters: usize) -> bool {
        if self.follows {
            return false;
        }
        let since = *self.in_doubt_since.get_or_insert(clocks.steady);
        let is_patient = self.trust == Trust::Unknown && clocks.steady.since(since) < AGREES_WITHIN;
        let own = readings.first().and_then(|own| own.wall).unwrap_or(0);
        let sure = agreed_time_ahead(readings, voters, self.trust, is_patient);
        let (ahead, trust) = match sure {
            Some(ahead) => (ahead, Trust::Known),
            None if self.trust != Trust::Unknown || is_patient => return false,
            // What is open was begun by the time of the log.
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

/// By how many milliseconds the right time is ahead of the cluster's, if that can be told.
///
/// A leader that `is_patient` waits for those who have yet to speak before it takes one endpoint's word.
fn agreed_time_ahead(readings: &[ClockReading], voters: usize, trust: Trust, is_patient: bool) -> Option<i64> {
    let majority = voters / 2 + 1;
    let walls: Vec<i64> = readings.iter().filter_map(|reading| reading.wall).collect();
    let platform: Vec<Interval> = readings.iter().filter_map(|reading| reading.platform).collect();
    if let Some((_, shared)) = shared_by_most(&platform).filter(|(count, _)| *count >= majority) {
        return Some(within(shared, walls));
    }
    let is_awaited = readings.iter().any(|reading| reading.is_asking);
    // Who is alone has nobody to agree with. And the endpoints that set the time may be those that have yet to answer.
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

/// The wall clocks within the platform's time make it finer. Where none is, it stays as it is when it can be right.
fn within(platform: Interval, walls: Vec<i64>) -> i64 {
    let mut fitting: Vec<i64> = walls.into_iter().filter(|wall| platform.holds(*wall)).collect();
    fitting.sort_unstable();
    let middle = fitting.get(fitting.len().saturating_sub(1) / 2).copied();
    middle.unwrap_or_else(|| if platform.holds(0) { 0 } else { platform.middle() })
}

/// The wall clock that an endpoint shows to be right; none where two are shown to be that do not agree.
fn chosen(platform: &[Interval], walls: &[i64]) -> Option<i64> {
    let is_near = |distance: i64| Duration::from_millis(distance.unsigned_abs()) <= AGREE_WITHIN;
    let nearest = |shown: &Interval| {
        let nearest = walls.iter().min_by_key(|wall| shown.distance_to(**wall).unsigned_abs());
        nearest.copied().filter(|wall| is_near(shown.distance_to(*wall)))
    };
    let right: Vec<i64> = platform.iter().filter_map(nearest).collect();
    agreed(&right, right.len())
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
mod tests;
