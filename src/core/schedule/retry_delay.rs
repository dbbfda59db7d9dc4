//! The pauses between the attempts of a hook.

use crate::model::workload::Phase;
use crate::schedule::step::Step;
use core::time::Duration;

/// The pause before the second attempt; doubled for each further attempt.
const RETRY_AFTER: Duration = Duration::from_secs(1);

const RETRY_AFTER_AT_MOST: Duration = Duration::from_secs(30);

const RESTORE_AGAIN_AFTER_AT_MOST: Duration = Duration::from_mins(1);

/// The pause before a blocked hook is tried again.
pub(super) const BLOCKED_RETRY_AFTER: Duration = Duration::from_secs(5);

/// The pause before the next attempt of a hook, after this number of runs.
pub(super) fn step_retry_delay(step: &Step<'_>, runs: usize) -> Duration {
    if step.id.phase == Phase::Restore {
        return (RETRY_AFTER * (1 << doublings(runs, 6))).min(RESTORE_AGAIN_AFTER_AT_MOST);
    }
    backoff(runs)
}

/// The pause before the next attempt or question, after this number of runs.
pub(super) fn backoff(runs: usize) -> Duration {
    (RETRY_AFTER * (1 << doublings(runs, 5))).min(RETRY_AFTER_AT_MOST)
}

fn doublings(runs: usize, most: u32) -> u32 {
    u32::try_from(runs.saturating_sub(1)).unwrap_or(u32::MAX).min(most)
}
