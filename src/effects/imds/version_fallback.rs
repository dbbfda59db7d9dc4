//! The state of the service: whether any answer has arrived yet, and the accepted api-version.
//!
//! Refuses to change the version silently: an older version hides types of events and fields.

use super::no_information::NoInformation;
use super::version::ApiVersion;

/// Answers under a fallback before the configured version is requested again: about an hour of polls. One wrong 400
/// must not hide features of the configured version for the rest of the run.
const ANSWERS_UNDER_FALLBACK: u32 = 3600;

/// Answers 404 in a row that count as a refusal: one 404 in passing must not hide features for an hour.
const NOT_SERVED_IN_A_ROW: u32 = 3;

pub(super) struct VersionFallback {
    /// The configured version first, then its fallbacks.
    versions: Vec<ApiVersion>,
    current: usize,
    /// Refusals since the last document; each version's refusal is logged once.
    refusals: usize,
    /// Answers 404 in a row, since the last refusal.
    not_served: u32,
    answers_under_fallback: u32,
    answered: bool,
}

impl VersionFallback {
    pub(super) fn new(configured: ApiVersion) -> Self {
        let fallbacks = configured.fallbacks().collect::<Vec<_>>();
        let versions = core::iter::once(configured).chain(fallbacks).collect();
        Self { versions, current: 0, refusals: 0, not_served: 0, answers_under_fallback: 0, answered: false }
    }

    pub(super) fn version(&self) -> ApiVersion {
        self.versions[self.current]
    }

    /// True after the first answer, which may take two minutes.
    pub(super) fn has_answered(&self) -> bool {
        self.answered
    }

    /// Records a document.
    pub(super) fn answered(&mut self) {
        self.answered = true;
        self.refusals = 0;
        self.not_served = 0;
        if self.current > 0 {
            self.answers_under_fallback += 1;
            if self.answers_under_fallback >= ANSWERS_UNDER_FALLBACK {
                self.turn_to(0);
                tracing::info!(version = %self.version(), "configured api-version requested again");
            }
        }
    }

    /// Records a failure. A rejected version is replaced by the next; after the last, the configured version is tried
    /// again.
    pub(super) fn failed(&mut self, why: &NoInformation) {
        self.answered |= why.answered();
        self.not_served = if let NoInformation::NotServed { .. } = why { self.not_served + 1 } else { 0 };
        if let NoInformation::VersionRefused { newest, .. } = why {
            self.refused(newest);
        } else if self.not_served == NOT_SERVED_IN_A_ROW {
            self.not_served = 0;
            self.refused(&[]);
        }
    }

    fn refused(&mut self, newest: &[String]) {
        let refused = self.version().to_string();
        self.turn_to((self.current + 1) % self.versions.len());
        self.refusals = self.refusals.saturating_add(1);
        if self.refusals > self.versions.len() {
            return;
        }
        tracing::warn!(
            %refused,
            next = %self.version(),
            offered = newest.join(" "),
            "api-version refused by the metadata endpoint; an older api-version hides some event types and fields: set \
             [metadata] api_version to a version that the endpoint accepts"
        );
    }

    fn turn_to(&mut self, index: usize) {
        self.current = index;
        self.answers_under_fallback = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal() -> NoInformation {
        NoInformation::VersionRefused { said: String::new(), newest: Vec::new() }
    }

    fn versions_after(fallback: &mut VersionFallback, why: &NoInformation, times: usize) -> Vec<String> {
        let step = |_| {
            fallback.failed(why);
            fallback.version().to_string()
        };
        (0..times).map(step).collect()
    }

    #[test]
    fn refusals_go_down_the_fallbacks_and_then_back_to_the_configured_version() {
        let mut fallback = VersionFallback::new(ApiVersion::newest());
        assert_eq!(versions_after(&mut fallback, &refusal(), 3), ["2019-08-01", "2017-08-01", "2020-07-01"]);
    }

    #[test]
    fn no_other_failure_changes_the_version() {
        let mut fallback = VersionFallback::new(ApiVersion::newest());
        let not_served = NoInformation::NotServed { said: String::new() };
        assert_eq!(versions_after(&mut fallback, &not_served, 2), ["2020-07-01", "2020-07-01"]);
        for why in [NoInformation::EmptyBody, NoInformation::Status { code: 400, said: String::new() }] {
            assert_eq!(versions_after(&mut fallback, &why, 2), ["2020-07-01", "2020-07-01"]);
        }
        assert_eq!(versions_after(&mut fallback, &not_served, 3), ["2020-07-01", "2020-07-01", "2019-08-01"]);
    }

    #[test]
    fn the_configured_version_is_asked_for_again_after_an_hour_under_a_fallback() {
        let mut fallback = VersionFallback::new(ApiVersion::newest());
        fallback.failed(&refusal());
        for _ in 1..ANSWERS_UNDER_FALLBACK {
            fallback.answered();
        }
        assert_eq!(fallback.version().to_string(), "2019-08-01");
        fallback.answered();
        assert_eq!(fallback.version().to_string(), "2020-07-01");
    }
}
