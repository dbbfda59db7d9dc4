//! Limits the bytes of reports that one replica puts into the log. An endpoint with a different answer at each poll
//! costs no more than an endpoint with a different answer now and then.

use crate::model::command::{Command, ReportDocument};
use crate::model::id::VmName;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::observation::concerns_us;
use core::time::Duration;

/// The bytes that may be spent at once.
pub const AT_ONCE: usize = 2 << 20;

/// The bytes that return per second: 57 MiB per hour.
pub const EACH_SECOND: usize = 16 << 10;

/// A budget of bytes that returns with time. Half of the budget is reserved for reports that concern this cluster. The
/// clock is the caller's monotonic clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Allowance {
    spent: usize,
    at: Timestamp,
}

impl Allowance {
    /// Whether this number of bytes may be spent now.
    pub fn admits(&self, bytes: usize, concerns_us: bool, now: Timestamp) -> bool {
        let most = if concerns_us { AT_ONCE } else { AT_ONCE / 2 };
        // A report above the whole budget waits until the full budget has returned, and not for ever.
        let spent = self.left_spent(now);
        spent == 0 || spent.saturating_add(bytes) <= most
    }

    /// The log accepted the bytes, or may have.
    pub fn spend(&mut self, bytes: usize, now: Timestamp) {
        (self.spent, self.at) = (self.left_spent(now).saturating_add(bytes), now);
    }

    /// Whether a command may be sent now. Only document reports are limited: other commands of a replica do not depend
    /// on its endpoint.
    pub fn admits_report(&self, report: &Command, state: &State, me: &VmName, now: Timestamp) -> bool {
        let Command::ReportDocument(ReportDocument { document, .. }) = report else { return true };
        self.admits(document.bytes(), concerns_us(document, state, me), now)
    }

    pub fn spend_on(&mut self, told: &Command, now: Timestamp) {
        if let Command::ReportDocument(ReportDocument { document, .. }) = told {
            self.spend(document.bytes(), now);
        }
    }

    fn left_spent(&self, now: Timestamp) -> usize {
        let millis = usize::try_from(now.since(self.at).as_millis()).unwrap_or(usize::MAX);
        self.spent.saturating_sub(millis.saturating_mul(EACH_SECOND) / 1_000)
    }

    /// The longest wait.
    pub const LONGEST: Duration = Duration::from_secs((AT_ONCE / EACH_SECOND) as u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWS: usize = 64 << 10;

    /// The number of reports that go into the log within this many seconds, with one report due each second.
    fn told(seconds: i64, concerns_us: bool) -> usize {
        let mut allowance = Allowance::default();
        let mut told = 0;
        for now in (0..seconds).map(|second| Timestamp(second * 1_000)) {
            if allowance.admits(NEWS, concerns_us, now) {
                allowance.spend(NEWS, now);
                told += 1;
            }
        }
        told
    }

    #[test]
    fn news_at_each_poll_of_an_hour_cost_what_comes_back_in_an_hour() {
        let most = |at_once: usize| (at_once + 3_600 * EACH_SECOND) / NEWS;
        let [others, ours] = [told(3_600, false), told(3_600, true)];
        assert!(others <= most(AT_ONCE / 2) && ours <= most(AT_ONCE), "{others} and {ours}");
        assert!(others >= most(AT_ONCE / 2) - 1 && ours >= most(AT_ONCE) - 1, "{others} and {ours}");
    }

    #[test]
    fn what_concerns_us_is_told_at_once_after_whatever_does_not() {
        let mut allowance = Allowance::default();
        let now = Timestamp(0);
        while allowance.admits(NEWS, false, now) {
            allowance.spend(NEWS, now);
        }
        let told = (0..).take_while(|_| {
            let admitted = allowance.admits(NEWS, true, now);
            allowance.spend(NEWS, now);
            admitted
        });
        assert_eq!(told.count(), AT_ONCE / 2 / NEWS);
        assert!(!allowance.admits(1, true, now));
    }

    #[test]
    fn what_is_larger_than_all_waits_and_not_for_ever() {
        let mut allowance = Allowance::default();
        assert!(allowance.admits(AT_ONCE * 2, false, Timestamp(0)));
        allowance.spend(AT_ONCE, Timestamp(0));
        assert!(!allowance.admits(AT_ONCE * 2, true, Timestamp(1)));
        assert!(allowance.admits(AT_ONCE * 2, true, Timestamp(0).plus(Allowance::LONGEST)));
    }
}
