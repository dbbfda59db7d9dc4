//! The api-versions of the scheduled events endpoint: what each can show, and how it is written in a request.
//!
//! Refuses to negotiate: the list that the service offers leaves out versions of this endpoint (`imds.md`, requests).

use core::fmt;

use crate::machine::document::Kind;

/// One api-version, in the query form or in the older path form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiVersion {
    form: Form,
    /// A date, or `latest` in the path form.
    date: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Query,
    Path,
}

/// Bytes; a date has 10.
const MAX_VERSION: usize = 16;
/// Before the version of the path form, as in `path/latest`.
const PATH_FORM: &str = "path/";

impl ApiVersion {
    /// Those that exist in the query form, oldest first.
    pub const KNOWN: [&'static str; 7] =
        ["2017-03-01", "2017-08-01", "2017-11-01", "2019-01-01", "2019-04-01", "2019-08-01", "2020-07-01"];

    /// The newest there is.
    pub fn newest() -> Self {
        Self::query("2020-07-01")
    }

    /// A date such as `2020-07-01`, known or not; `path/2017-03-01` or `path/latest` for the path form.
    pub fn from_word(word: &str) -> Option<Self> {
        let (form, date) = word.strip_prefix(PATH_FORM).map_or((Form::Query, word), |date| (Form::Path, date));
        // It becomes part of an address: nothing may stand in it that means something there.
        let plain = date.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
        let latest = form == Form::Path && date == "latest";
        let usable = latest || (plain && !date.is_empty() && date.len() <= MAX_VERSION);
        usable.then(|| Self { form, date: date.into() })
    }

    /// Tried in this order when this one is refused: the last without a hidden type of event, then the last resort.
    pub(super) fn fallbacks(&self) -> impl Iterator<Item = Self> {
        ["2019-08-01", "2017-08-01"].into_iter().map(Self::query).filter(move |other| other != self)
    }

    /// Whether documents of this version list events of this type. Where it is false, an event's absence says nothing.
    pub fn shows(&self, kind: &Kind) -> bool {
        let since = match kind {
            Kind::Freeze | Kind::Reboot | Kind::Redeploy => return true,
            Kind::Preempt => "2017-11-01",
            Kind::Terminate => "2019-01-01",
            Kind::Other(_) => "2020-07-01",
        };
        self.form == Form::Query && self.date.as_str() >= since
    }

    /// The path and query of the events of this version.
    pub(super) fn events_path(&self) -> String {
        match self.form {
            Form::Query => format!("/metadata/scheduledevents?api-version={}", self.date),
            Form::Path => format!("/metadata/{}/scheduledevents", self.date),
        }
    }

    fn query(date: &str) -> Self {
        Self { form: Form::Query, date: date.into() }
    }
}

impl fmt::Display for ApiVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.form {
            Form::Query => f.write_str(&self.date),
            Form::Path => write!(f, "{PATH_FORM}{}", self.date),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(word: &str) -> ApiVersion {
        ApiVersion::from_word(word).unwrap()
    }

    #[test]
    fn versions_are_written_as_they_are_read() {
        for word in ApiVersion::KNOWN.into_iter().chain(["2031-01-01", "path/latest", "path/2017-03-01"]) {
            assert_eq!(version(word).to_string(), word);
        }
    }

    #[test]
    fn nothing_that_would_change_the_address_is_a_version() {
        for word in
            ["", "latest", "path/", "path/..", "2020-07-01&x=1", "2020/07/01", "2020-07-01 ", "éé", "path/path/1"]
        {
            assert_eq!(ApiVersion::from_word(word), None, "{word:?}");
        }
        assert_eq!(ApiVersion::from_word(&"1".repeat(17)), None);
    }

    #[test]
    fn each_version_shows_the_types_that_its_row_of_the_table_adds() {
        let rows = [
            ("path/latest", [true, false, false, false]),
            ("2017-03-01", [true, false, false, false]),
            ("2017-08-01", [true, false, false, false]),
            ("2017-11-01", [true, true, false, false]),
            ("2019-01-01", [true, true, true, false]),
            ("2019-04-01", [true, true, true, false]),
            ("2019-08-01", [true, true, true, false]),
            ("2020-07-01", [true, true, true, true]),
        ];
        let kinds = [Kind::Redeploy, Kind::Preempt, Kind::Terminate, Kind::Other("Hibernate".into())];
        for (word, shown) in rows {
            assert_eq!(kinds.each_ref().map(|kind| version(word).shows(kind)), shown, "{word}");
        }
    }

    #[test]
    fn only_two_versions_are_ever_fallen_back_to() {
        let fallbacks = |word| version(word).fallbacks().map(|other| other.to_string()).collect::<Vec<_>>();
        assert_eq!(fallbacks("2020-07-01"), ["2019-08-01", "2017-08-01"]);
        assert_eq!(fallbacks("2019-08-01"), ["2017-08-01"]);
        assert_eq!(fallbacks("path/latest"), ["2019-08-01", "2017-08-01"]);
    }
}
