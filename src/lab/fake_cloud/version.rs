//! The api-versions of the endpoint, and the differences between the versions (`SPEC.md` 17.1).

use allclear_core::model::document::EventType;

/// The known versions, in the order of release, which is also the order of the strings.
const KNOWN: [&str; 7] =
    ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"];

#[derive(Clone, Copy, Debug)]
pub(super) struct EmulatedVersion(&'static str);

impl EmulatedVersion {
    pub(super) fn parse(word: &str) -> Option<Self> {
        KNOWN.into_iter().find(|known| *known == word).map(Self)
    }

    /// Whether the version requires the header: all versions but the earliest.
    pub(super) fn wants_header(self) -> bool {
        self.0 >= "2017-08-01"
    }

    pub(super) fn has_underscore(self) -> bool {
        self.0 < "2017-08-01"
    }

    /// The earliest version writes times as ISO 8601, later versions as RFC 1123.
    pub(super) fn has_iso_times(self) -> bool {
        self.0 < "2017-08-01"
    }

    pub(super) fn has_description(self) -> bool {
        self.0 >= "2019-04-01"
    }

    pub(super) fn has_source(self) -> bool {
        self.0 >= "2019-08-01"
    }

    pub(super) fn has_duration(self) -> bool {
        self.0 >= "2020-07-01"
    }

    /// Older versions hide younger types without a word.
    pub(super) fn shows(self, kind: &EventType) -> bool {
        match kind {
            EventType::Freeze | EventType::Reboot | EventType::Redeploy => true,
            EventType::Preempt => self.0 >= "2017-11-01",
            EventType::Terminate => self.0 >= "2019-01-01",
            EventType::Other(_) => self.0 >= "2020-07-01",
        }
    }
}
