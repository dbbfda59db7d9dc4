//! `NotBefore` in every observed spelling: RFC 1123 in GMT, and ISO 8601 in old documents and the mock.
//!
//! Never rejects: an unreadable date is `None`, and the minimum notice of the type counts instead.

use jiff::civil;
use jiff::fmt::rfc2822::DateTimeParser;
use jiff::tz::TimeZone;

use allclear_core::model::time::Timestamp;

/// The limit in bytes; the longest known spelling has 33.
const MAX_DATE: usize = 128;

/// The timestamp in UTC, cut to milliseconds.
pub(super) fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_DATE {
        return None;
    }
    iso_8601(text).or_else(|| rfc_1123(text)).map(|moment| Timestamp(moment.as_millisecond()))
}

/// Parses ISO 8601, without an offset as UTC, the time zone of the service. A date without a time is not accepted:
/// midnight could be a day too early or too late.
fn iso_8601(text: &str) -> Option<jiff::Timestamp> {
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    let moment: civil::DateTime = if text.contains(':') { text.parse().ok()? } else { return None };
    moment.to_zoned_datetime(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
}

/// Parses RFC 1123 without the weekday: the vendor's own page has printed wrong weekdays, which parsers reject.
fn rfc_1123(text: &str) -> Option<jiff::Timestamp> {
    let after_weekday = text.split_once(',').map_or(text, |(_, rest)| rest).trim();
    let (date, zone) = after_weekday.rsplit_once(char::is_whitespace)?;
    let zone = if ["UTC", "GMT", "Z"].iter().any(|utc| zone.eq_ignore_ascii_case(utc)) { "GMT" } else { zone };
    DateTimeParser::new().parse_timestamp(format!("{} {zone}", date.trim())).ok()
}

#[cfg(test)]
mod tests {
    use super::read;

    /// 11 April 2022, 22:26:58 UTC: a Monday.
    const MOMENT: i64 = 1_649_716_018_000;

    #[test]
    fn every_spelling_that_has_been_seen_is_the_same_moment() {
        for text in [
            "Mon, 11 Apr 2022 22:26:58 GMT",
            "Fri, 11 Apr 2022 22:26:58 GMT",
            "Mon, 11 Apr 2022 22:26:58 UTC",
            "mon, 11 apr 2022 22:26:58 gmt",
            "Monday, 11 Apr 2022 22:26:58 GMT",
            "11 Apr 2022 22:26:58 GMT",
            "  Mon,  11 Apr 2022 22:26:58  GMT ",
            "Mon, 11 Apr 2022 22:26:58 +0000",
            "Tue, 12 Apr 2022 00:26:58 +0200",
            "2022-04-11T22:26:58Z",
            "2022-04-11T22:26:58",
            "2022-04-11 22:26:58",
            "2022-04-11T22:26:58.0000000Z",
            "2022-04-11T22:26:58.0009999",
            "2022-04-11T22:26:58+00:00",
            "2022-04-12T00:26:58+02:00",
        ] {
            assert_eq!(read(text).map(|at| at.0), Some(MOMENT), "{text:?}");
        }
    }

    #[test]
    fn one_digit_days_and_fractions_are_read() {
        assert_eq!(read("Mon, 5 Jun 2023 16:26:59 GMT").map(|at| at.0), Some(1_685_982_419_000));
        assert_eq!(read("Mon, 05 Jun 2023 16:26:59 GMT").map(|at| at.0), Some(1_685_982_419_000));
        assert_eq!(read("2023-06-05T16:26:59.25").map(|at| at.0), Some(1_685_982_419_250));
    }

    #[test]
    fn whatever_else_stands_there_is_unknown() {
        let long = "9".repeat(100_000);
        for text in
            ["", " ", "soon", "Mon,", ",", "GMT", "2022-04-11", "2022-13-45T99:00:00Z", "1649716018", "é, é", &long]
        {
            assert_eq!(read(text), None, "{text:?}");
        }
    }
}
