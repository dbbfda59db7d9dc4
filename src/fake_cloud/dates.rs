//! `NotBefore` in every form that was seen on the wire.

use jiff::tz::TimeZone;

use super::habits::Dates;
use crate::machine::document::NotBefore;
use crate::machine::time::Timestamp;

pub(super) fn written(not_before: NotBefore, dates: Dates) -> String {
    let NotBefore::At(at) = not_before else { return String::new() };
    match dates {
        Dates::Rfc1123 => in_form(at, "%a, %d %b %Y %H:%M:%S GMT"),
        Dates::Iso8601 => in_form(at, "%Y-%m-%dT%H:%M:%SZ"),
        Dates::OneDigitDay => in_form(at, "%a, %-d %b %Y %H:%M:%S GMT"),
        Dates::Utc => in_form(at, "%a, %d %b %Y %H:%M:%S UTC"),
        Dates::WrongWeekday => {
            let next_day = at.plus(core::time::Duration::from_hours(24));
            format!("{}{}", in_form(next_day, "%a"), in_form(at, ", %d %b %Y %H:%M:%S GMT"))
        }
        Dates::Padded => in_form(at, "  %a, %d %b %Y %H:%M:%S GMT "),
        Dates::Garbage => "as soon as possible".into(),
        Dates::Blank => String::new(),
    }
}

/// RFC 3339 with milliseconds, as the control interface and the request log write times.
pub(super) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map(|at| format!("{at:.3}")).unwrap_or_default()
}

fn in_form(at: Timestamp, form: &str) -> String {
    // A time beyond the year 9999 has no form; blank is what the platform writes where it has none.
    jiff::Timestamp::from_millisecond(at.0)
        .map(|at| at.to_zoned_datetime(TimeZone::UTC).strftime(form).to_string())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_written_as_it_was_seen() {
        // 2022-04-02 is a Saturday.
        let at = NotBefore::At(Timestamp(1_648_909_618_999));
        let cases = [
            (Dates::Rfc1123, "Sat, 02 Apr 2022 14:26:58 GMT"),
            (Dates::Iso8601, "2022-04-02T14:26:58Z"),
            (Dates::OneDigitDay, "Sat, 2 Apr 2022 14:26:58 GMT"),
            (Dates::Utc, "Sat, 02 Apr 2022 14:26:58 UTC"),
            (Dates::WrongWeekday, "Sun, 02 Apr 2022 14:26:58 GMT"),
            (Dates::Padded, "  Sat, 02 Apr 2022 14:26:58 GMT "),
            (Dates::Garbage, "as soon as possible"),
            (Dates::Blank, ""),
        ];
        for (dates, expected) in cases {
            assert_eq!(written(at, dates), expected);
        }
        assert_eq!(written(NotBefore::Unknown, Dates::Rfc1123), "");
        assert_eq!(rfc3339(Timestamp(1_648_909_618_999)), "2022-04-02T14:26:58.999Z");
        assert_eq!(written(NotBefore::At(Timestamp(i64::MAX)), Dates::Rfc1123), "");
    }
}
