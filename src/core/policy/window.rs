//! The weekly window of a rule: while a notice is long, the preparation starts when the window is open.

use crate::model::time::Timestamp;
use crate::model::treatment::Opening;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

const DAY: i64 = 24 * 60 * 60;
/// The Unix epoch was a Thursday.
const DAYS_FROM_MONDAY_TO_EPOCH: i64 = 3;
/// A search ends here; each day of the week has come by then.
const SEARCHED_AHEAD: Duration = Duration::from_hours(24 * 9);

/// A part of some days of the week, in local time.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Window {
    /// The days on which the window opens, from Monday on.
    pub days: [bool; 7],
    /// In local minutes since midnight.
    pub opens: u16,
    /// In local minutes since midnight. Not later than `opens`: on the next day.
    pub closes: u16,
    pub zone: Zone,
}

/// A time zone.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Zone {
    pub name: String,
    /// The seconds by which local time is ahead of UTC before the first change.
    pub first: i32,
    /// From each time on, the seconds by which local time is ahead of UTC; in the order of the times.
    pub changes: Vec<(Timestamp, i32)>,
}

impl Window {
    /// The first time from `from` on, and before `until`, at which the window is open.
    pub fn next_opening(&self, from: Timestamp, until: Timestamp) -> Option<Opening> {
        let until = until.min(from.plus(SEARCHED_AHEAD));
        let today = self.zone.local_seconds(from).div_euclid(DAY);
        // The window of yesterday may still be open.
        (today - 1..)
            .map_while(|day| {
                let opens = self.zone.time_at(day * DAY + i64::from(self.opens) * 60);
                (opens < until).then_some((day, opens))
            })
            .filter(|(day, _)| self.days[weekday(*day)])
            .find_map(|(day, opens)| {
                let to_next_day = if self.closes <= self.opens { DAY } else { 0 };
                let closes = self.zone.time_at(day * DAY + to_next_day + i64::from(self.closes) * 60);
                (closes > from).then_some(Opening { opens: opens.max(from), closes })
            })
            .filter(|opening| opening.opens < until)
    }
}

/// From Monday on, of a number of days since the Unix epoch.
fn weekday(day: i64) -> usize {
    usize::try_from((day + DAYS_FROM_MONDAY_TO_EPOCH).rem_euclid(7)).unwrap_or_default()
}

impl Zone {
    fn ahead_at(&self, at: Timestamp) -> i64 {
        let before = self.changes.iter().take_while(|(from, _)| *from <= at).last();
        i64::from(before.map_or(self.first, |(_, ahead)| *ahead))
    }

    /// The seconds that local clocks show, counted from the Unix epoch.
    fn local_seconds(&self, at: Timestamp) -> i64 {
        at.0.div_euclid(1_000) + self.ahead_at(at)
    }

    /// The time at which local clocks show this. A time that clocks skip is as long after the change as clocks skipped;
    /// of two times, it is the first.
    fn time_at(&self, local: i64) -> Timestamp {
        let by = |ahead: i64| Timestamp((local - ahead).saturating_mul(1_000));
        let earlier = self.ahead_at(by(0).minus(Duration::from_hours(24)));
        let later = self.ahead_at(by(0).plus(Duration::from_hours(24)));
        let is_right = |ahead: &i64| self.ahead_at(by(*ahead)) == *ahead;
        by([earlier, later].into_iter().find(is_right).unwrap_or(earlier))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 60 * 60 * 1_000;
    /// Monday, 5 January 1970.
    const MONDAY: i64 = 4 * 24 * HOUR;

    fn window(days: &[usize], opens: u16, closes: u16) -> Window {
        let mut on = [false; 7];
        for day in days {
            on[*day] = true;
        }
        Window { days: on, opens: opens * 60, closes: closes * 60, zone: utc() }
    }

    fn utc() -> Zone {
        Zone { name: "UTC".into(), first: 0, changes: Vec::new() }
    }

    /// Two hours ahead between two changes of an hour at 01:00 UTC, as in Berlin: on the first and the third Monday.
    fn with_summer() -> Zone {
        let week = 7 * 24 * HOUR;
        let changes = [(MONDAY + HOUR, 7_200), (MONDAY + 2 * week + HOUR, 3_600)];
        Zone { name: "summer".into(), first: 3_600, changes: changes.map(|(at, ahead)| (Timestamp(at), ahead)).into() }
    }

    fn open(window: &Window, from: i64, until: i64) -> Option<i64> {
        window
            .next_opening(Timestamp(MONDAY + from * HOUR), Timestamp(MONDAY + until * HOUR))
            .map(|opening| (opening.opens.0 - MONDAY) / HOUR)
    }

    #[test]
    fn a_window_opens_on_its_days_and_is_open_until_it_closes() {
        let weekend = window(&[5, 6], 2, 5);
        for (from, expected) in [(0, 122), (122, 122), (124, 124), (125, 146), (149, 7 * 24 + 122)] {
            assert_eq!(open(&weekend, from, 1_000), Some(expected), "{from}");
        }
        assert_eq!(open(&weekend, 0, 122), None, "the time before which it has to be open is not in the search");
        assert_eq!(open(&weekend, 0, 123), Some(122));
        assert_eq!(open(&window(&[], 2, 5), 0, 1_000), None);
        let closes = weekend.next_opening(Timestamp(MONDAY), Timestamp(i64::MAX)).map(|opening| opening.closes.0);
        assert_eq!(closes, Some(MONDAY + 125 * HOUR));
    }

    #[test]
    fn a_window_over_midnight_belongs_to_the_day_on_which_it_opens() {
        let night = window(&[0], 22, 4);
        for (from, expected) in [(0, 22), (23, 23), (27, 27), (28, 7 * 24 + 22)] {
            assert_eq!(open(&night, from, 1_000), Some(expected), "{from}");
        }
        let always = window(&[0, 1, 2, 3, 4, 5, 6], 0, 0);
        assert_eq!(open(&always, 31, 1_000), Some(31));
    }

    #[test]
    fn a_window_is_in_local_time_also_after_a_change_of_the_clocks() {
        let every_day = [0, 1, 2, 3, 4, 5, 6];
        let early = Window { zone: with_summer(), ..window(&every_day, 4, 5) };
        // Sunday 03:00 UTC is 04:00; from Monday on it is 02:00 UTC, and two weeks later 03:00 again.
        for (from, expected) in [(-24, -21), (0, 2), (24, 26), (2 * 168, 2 * 168 + 3)] {
            assert_eq!(open(&early, from, 1_000), Some(expected), "{from}");
        }
        // Clocks skip 02:30, and show it twice two weeks later.
        let half_past_two = Window { opens: 150, closes: 151, ..early };
        let opens = |from: i64| {
            half_past_two.next_opening(Timestamp(MONDAY + from * HOUR), Timestamp(i64::MAX)).unwrap().opens.0
        };
        assert_eq!(opens(0), MONDAY + HOUR + HOUR / 2);
        assert_eq!(opens(2 * 168), MONDAY + 2 * 168 * HOUR + HOUR / 2);
    }
}
