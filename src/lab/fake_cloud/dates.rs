//! Timestamps as texts: `NotBefore` as in documents, and the formats of the control interface and the request log.

use jiff::tz::TimeZone;

use allclear_core::model::document::NotBefore;
use allclear_core::model::time::Timestamp;

/// RFC 1123 or ISO 8601, in whole seconds; blank where the platform writes no time, as of an event in progress.
pub(super) fn not_before(not_before: NotBefore, is_iso: bool) -> String {
    match not_before {
        NotBefore::At(at) if is_iso => {
            jiff::Timestamp::from_millisecond(at.0.div_euclid(1000) * 1000).map(|at| at.to_string()).unwrap_or_default()
        }
        NotBefore::At(at) => rfc1123(at),
        NotBefore::Unknown => String::new(),
    }
}

/// The format of the header `Date`; a time beyond the year 9999 has no form.
pub(super) fn rfc1123(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map(|at| at.to_zoned_datetime(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
        .unwrap_or_default()
}

/// RFC 3339 with milliseconds.
pub(super) fn rfc3339(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).map(|at| format!("{at:.3}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_they_were_seen() {
        // 2022-04-02 is a Saturday.
        let at = Timestamp(1_648_909_618_999);
        assert_eq!(not_before(NotBefore::At(at), false), "Sat, 02 Apr 2022 14:26:58 GMT");
        assert_eq!(not_before(NotBefore::At(at), true), "2022-04-02T14:26:58Z");
        assert_eq!(rfc3339(at), "2022-04-02T14:26:58.999Z");
        for is_iso in [false, true] {
            assert_eq!(not_before(NotBefore::Unknown, is_iso), "");
            assert_eq!(not_before(NotBefore::At(Timestamp(i64::MAX)), is_iso), "");
        }
    }
}
