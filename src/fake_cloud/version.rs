//! The api-versions of the endpoint and what each of them shows (`imds.md`, requests).

use crate::machine::document::Kind;

/// In the order in which they appeared.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum ApiVersion {
    V2017_03_01,
    V2017_08_01,
    V2017_11_01,
    V2019_01_01,
    V2019_04_01,
    V2019_08_01,
    V2020_07_01,
}

impl ApiVersion {
    pub(super) const ALL: [Self; 7] = [
        Self::V2017_03_01,
        Self::V2017_08_01,
        Self::V2017_11_01,
        Self::V2019_01_01,
        Self::V2019_04_01,
        Self::V2019_08_01,
        Self::V2020_07_01,
    ];

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_word() == word)
    }

    pub(super) const fn as_word(self) -> &'static str {
        match self {
            Self::V2017_03_01 => "2017-03-01",
            Self::V2017_08_01 => "2017-08-01",
            Self::V2017_11_01 => "2017-11-01",
            Self::V2019_01_01 => "2019-01-01",
            Self::V2019_04_01 => "2019-04-01",
            Self::V2019_08_01 => "2019-08-01",
            Self::V2020_07_01 => "2020-07-01",
        }
    }

    /// The earliest one answers without the header.
    pub(super) fn wants_header(self) -> bool {
        self >= Self::V2017_08_01
    }

    pub(super) fn has_underscore(self) -> bool {
        self < Self::V2017_08_01
    }

    pub(super) fn has_description(self) -> bool {
        self >= Self::V2019_04_01
    }

    pub(super) fn has_source(self) -> bool {
        self >= Self::V2019_08_01
    }

    pub(super) fn has_duration(self) -> bool {
        self >= Self::V2020_07_01
    }

    /// Older versions hide younger types without a word.
    pub(super) fn shows(self, kind: &Kind) -> bool {
        match kind {
            Kind::Freeze | Kind::Reboot | Kind::Redeploy => true,
            Kind::Preempt => self >= Self::V2017_11_01,
            Kind::Terminate => self >= Self::V2019_01_01,
            Kind::Other(_) => self >= Self::V2020_07_01,
        }
    }
}
