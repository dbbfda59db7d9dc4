//! The api-versions of the scheduled events endpoint: the types of events each version shows, and the path of requests.
//!
//! Refuses to negotiate: the list that the service offers leaves out versions of this endpoint (`SPEC.md` 17.1).

use core::fmt;

use allclear_core::model::document::EventType;

/// An existing api-version, identified by its date.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
pub struct ApiVersion(&'static str);

impl ApiVersion {
    /// Oldest first. The older path form, with the version in the path, was removed.
    const KNOWN: [&'static str; 7] =
        ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"];

    /// The newest there is.
    pub const fn newest() -> Self {
        Self("2020-07-01")
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::KNOWN.into_iter().find(|known| *known == word).map(Self)
    }

    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// Fallbacks in order, if this version is rejected: the last without a hidden type of event, then the last resort.
    pub(super) fn fallbacks(self) -> impl Iterator<Item = Self> {
        ["2019-08-01", "2017-08-01"].into_iter().map(Self).filter(move |other| *other != self)
    }

    /// True if documents of this version list events of this type. Otherwise the absence of an event means nothing.
    pub fn shows(self, kind: &EventType) -> bool {
        let since = match kind {
            EventType::Freeze | EventType::Reboot | EventType::Redeploy => return true,
            EventType::Preempt => "2017-11-01",
            EventType::Terminate => "2019-01-01",
            EventType::Other(_) => "2020-07-01",
        };
        self.0 >= since
    }

    /// The path and query of the events of this version.
    pub(super) fn events_path(self) -> String {
        format!("/metadata/scheduledevents?api-version={self}")
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(word: &str) -> ApiVersion {
        ApiVersion::parse(word).unwrap()
    }

    #[test]
    fn only_versions_that_exist_are_versions() {
        for word in ApiVersion::KNOWN {
            assert_eq!(version(word).to_string(), word);
        }
        for word in ["", "latest", "path/2017-03-01", "2031-01-01", "2020-07-01 ", "2020-07-01&x=1"] {
            assert_eq!(ApiVersion::parse(word), None, "{word:?}");
        }
    }

    #[test]
    fn each_version_shows_the_types_that_its_row_of_the_table_adds() {
        let rows = [
            ("2017-03-01", [true, false, false, false]),
            ("2017-08-01", [true, false, false, false]),
            ("2017-11-01", [true, true, false, false]),
            ("2019-01-01", [true, true, true, false]),
            ("2019-04-01", [true, true, true, false]),
            ("2019-08-01", [true, true, true, false]),
            ("2020-07-01", [true, true, true, true]),
        ];
        let kinds =
            [EventType::Redeploy, EventType::Preempt, EventType::Terminate, EventType::Other("Hibernate".into())];
        for (word, shown) in rows {
            assert_eq!(kinds.each_ref().map(|kind| version(word).shows(kind)), shown, "{word}");
        }
    }

    #[test]
    fn only_two_versions_are_ever_fallen_back_to() {
        let fallbacks = |word| version(word).fallbacks().map(|other| other.to_string()).collect::<Vec<_>>();
        assert_eq!(fallbacks("2020-07-01"), ["2019-08-01", "2017-08-01"]);
        assert_eq!(fallbacks("2019-08-01"), ["2017-08-01"]);
    }
}
