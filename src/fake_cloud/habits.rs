//! How one VM's endpoint writes and answers, where the real one varies or nobody knows: all valid, none a fault.

use serde::{Deserialize, Serialize};

#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub(super) struct Habits {
    pub(super) dates: Dates,
    pub(super) incarnation: IncarnationForm,
    /// The newest api-version that is served; later ones are refused.
    pub(super) newest_version: String,
    /// Whether `/metadata/{version}/scheduledevents`, the first preview's form, is still there.
    pub(super) path_form: bool,
    /// Whether more than five requests in a second are answered with 429.
    pub(super) rate_limit: bool,
    /// Whether a `DocumentIncarnation` in an approval must be the current one.
    pub(super) checks_incarnation: bool,
    /// The answer to an approval of an event that is unknown, over, or Started.
    pub(super) unknown_status: u16,
    pub(super) finished_status: u16,
    pub(super) started_status: u16,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            dates: Dates::Rfc1123,
            incarnation: IncarnationForm::Number,
            newest_version: "2020-07-01".into(),
            path_form: false,
            rate_limit: false,
            checks_incarnation: false,
            unknown_status: 400,
            finished_status: 400,
            started_status: 200,
        }
    }
}

/// How `NotBefore` is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Dates {
    Rfc1123,
    Iso8601,
    OneDigitDay,
    Utc,
    WrongWeekday,
    Padded,
    Garbage,
    Blank,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum IncarnationForm {
    Number,
    Text,
}

/// What is to change; the rest stays.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HabitsChange {
    dates: Option<Dates>,
    incarnation: Option<IncarnationForm>,
    newest_version: Option<String>,
    path_form: Option<bool>,
    rate_limit: Option<bool>,
    checks_incarnation: Option<bool>,
    unknown_status: Option<u16>,
    finished_status: Option<u16>,
    started_status: Option<u16>,
}

impl HabitsChange {
    pub(super) fn mistakes(&self) -> Vec<String> {
        let statuses = [self.unknown_status, self.finished_status, self.started_status].into_iter().flatten();
        let mut mistakes: Vec<String> =
            statuses.filter(|status| !(200..600).contains(status)).map(super::fault::no_status).collect();
        if let Some(version) = &self.newest_version
            && super::version::ApiVersion::from_word(version).is_none()
        {
            let known = super::version::ApiVersion::ALL.map(super::version::ApiVersion::as_word).join(", ");
            mistakes.push(format!("newest_version: there is no api-version \"{version}\"; use one of {known}"));
        }
        mistakes
    }

    pub(super) fn apply(&self, habits: &mut Habits) {
        let Self { dates, incarnation, newest_version, path_form, rate_limit, checks_incarnation, .. } = self.clone();
        replace(&mut habits.dates, dates);
        replace(&mut habits.incarnation, incarnation);
        replace(&mut habits.newest_version, newest_version);
        replace(&mut habits.path_form, path_form);
        replace(&mut habits.rate_limit, rate_limit);
        replace(&mut habits.checks_incarnation, checks_incarnation);
        replace(&mut habits.unknown_status, self.unknown_status);
        replace(&mut habits.finished_status, self.finished_status);
        replace(&mut habits.started_status, self.started_status);
    }
}

fn replace<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
