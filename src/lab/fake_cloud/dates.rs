//! Timestamps as texts: `NotBefore` as in documents, and the formats of the control interface and the request log.

use jiff::tz::TimeZone;

use allclear_core::model::document::NotBefore;
use allclear_core::model::time::Timestamp;

/// RFC 1123; blank where the platform writes no time, as of an event in progress.
pub(super) fn not_before(not_before: NotBefore) -> String {
    let NotBefore::At(at) = not_before else { return String::new() };
    rfc1123(at)
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
        assert_eq!(not_before(NotBefore::At(at)), "Sat, 02 Apr 2022 14:26:58 GMT");
        assert_eq!(rfc3339(at), "2022-04-02T14:26:58.999Z");
        assert_eq!(not_before(NotBefore::Unknown), "");
        assert_eq!(not_before(NotBefore::At(Timestamp(i64::MAX))), "");
    }
}
