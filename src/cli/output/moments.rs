//! Timestamps and durations for people: `12:03:00 UTC, in 1 min 20 s`.

use std::time::Duration;

use allclear_core::model::time::Timestamp;
use allclear_server::replica::clock::{from_rfc3339, rfc3339};

/// Length of a time in RFC 3339 with milliseconds.
const WRITTEN: usize = "2026-01-31T12:00:00.000Z".len();
/// Length of the date.
const DATE: usize = "2026-01-31".len();
const TO_SECONDS: usize = "2026-01-31T12:00:00".len();

/// A duration in the two largest units with a value.
pub(in crate::cli) fn span(span: Duration) -> String {
    let seconds = span.as_secs();
    let of = |large: u64, (big, small): (&str, &str), unit: u64| {
        let (big_count, small_count) = (seconds / large, seconds % large / unit);
        if small_count == 0 { format!("{big_count} {big}") } else { format!("{big_count} {big} {small_count} {small}") }
    };
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => of(60, ("min", "s"), 1),
        3_600..86_400 => of(3_600, ("h", "min"), 60),
        _ => of(86_400, ("d", "h"), 3_600),
    }
}

/// `in 3 min 20 s`, `now`, `20 s ago`.
pub(in crate::cli) fn relative(now: Timestamp, at: Timestamp) -> String {
    let ahead = at.0.saturating_sub(now.0);
    let apart = Duration::from_millis(ahead.unsigned_abs());
    if apart < Duration::from_secs(1) {
        "now".into()
    } else if ahead > 0 {
        format!("in {}", span(apart))
    } else {
        format!("{} ago", span(apart))
    }
}

/// `12:03:00 UTC`, with the date where `at` is on another day.
pub(in crate::cli) fn clock(now: Timestamp, at: Timestamp) -> String {
    let (now, at) = (rfc3339(now), rfc3339(at));
    let (Some(date), Some(time)) = (at.get(..DATE), at.get(DATE + 1..TO_SECONDS)) else { return at };
    if now.get(..DATE) == Some(date) { format!("{time} UTC") } else { format!("{date} {time} UTC") }
}

pub(in crate::cli) fn moment(now: Timestamp, at: Timestamp) -> String {
    format!("{}, {}", clock(now, at), relative(now, at))
}

/// Rewrites a timestamp of a message like `moment`; a text without a timestamp is returned unchanged.
pub(in crate::cli) fn written(now: Timestamp, text: &str) -> String {
    from_rfc3339(text).map_or_else(|| text.into(), |at| moment(now, at))
}

/// Every time within a sentence.
pub(in crate::cli) fn within(now: Timestamp, text: &str) -> String {
    rewritten(text, |at| format!("{} ({})", clock(now, at), relative(now, at)))
}

/// Every time within a sentence, with its date: for an answer without the cluster's time. The clock of this machine may
/// be wrong.
pub(in crate::cli) fn dated(text: &str) -> String {
    rewritten(text, |at| clock(Timestamp(0), at))
}

fn rewritten(text: &str, words: impl Fn(Timestamp) -> String) -> String {
    let (mut told, mut rest) = (String::new(), text);
    while let Some(first) = rest.chars().next() {
        let time = rest.get(..WRITTEN).filter(|found| found.ends_with('Z')).and_then(from_rfc3339);
        let length = if let Some(at) = time {
            told.push_str(&words(at));
            WRITTEN
        } else {
            told.push(first);
            first.len_utf8()
        };
        rest = &rest[length..];
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> Timestamp {
        from_rfc3339("2026-01-31T12:00:00.000Z").unwrap()
    }

    #[test]
    fn spans_are_told_in_two_units() {
        for (seconds, told) in [
            (0, "0 s"),
            (59, "59 s"),
            (60, "1 min"),
            (200, "3 min 20 s"),
            (3_600, "1 h"),
            (5_459, "1 h 30 min"),
            (90_000, "1 d 1 h"),
            (86_400 * 30, "30 d"),
        ] {
            assert_eq!(span(Duration::from_secs(seconds)), told);
        }
    }

    #[test]
    fn a_moment_is_told_by_the_clock_and_from_now() {
        assert_eq!(written(now(), "2026-01-31T12:03:20.000Z"), "12:03:20 UTC, in 3 min 20 s");
        assert_eq!(written(now(), "2026-01-31T11:59:20.400Z"), "11:59:20 UTC, 39 s ago");
        assert_eq!(written(now(), "2026-01-31T12:00:00.300Z"), "12:00:00 UTC, now");
        assert_eq!(written(now(), "2026-02-01T01:00:00Z"), "2026-02-01 01:00:00 UTC, in 13 h");
        assert_eq!(written(now(), "soon"), "soon");
    }

    #[test]
    fn times_within_a_sentence_are_told_the_same_way() {
        let text = "held until 2026-01-31T13:00:00.000Z: é 2026, Z";
        assert_eq!(within(now(), text), "held until 13:00:00 UTC (in 1 h): é 2026, Z");
        assert_eq!(within(now(), ""), "");
        assert_eq!(dated(text), "held until 2026-01-31 13:00:00 UTC: é 2026, Z");
    }
}
