//! The pause before the next attempt to connect.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// The pause doubles after each failure, up to a bound; a random part between a half and all of the pause prevents
/// many clients from connecting at once.
#[derive(Default)]
pub(super) struct Backoff {
    failures: u32,
    random: RandomState,
}

impl Backoff {
    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }

    pub(super) fn next(&mut self) -> Duration {
        let longest = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        let [jitter, ..] = self.random.hash_one(self.failures).to_le_bytes();
        self.failures = self.failures.saturating_add(1);
        longest / 2 + longest / 2 * u32::from(jitter) / 255
    }
}

/// An id of this run, different after every start.
pub(super) fn boot() -> String {
    format!("{:016x}", RandomState::new().hash_one(std::process::id()))
}

#[test]
fn a_pause_grows_to_its_bound_and_begins_anew() {
    let mut pace = Backoff::default();
    let pauses: Vec<_> = (0..100).map(|_| pace.next()).collect();
    assert!(pauses[0] >= FIRST / 2 && pauses[0] <= FIRST, "{pauses:?}");
    assert!(pauses.iter().all(|pause| *pause <= LONGEST), "{pauses:?}");
    assert!(pauses[99] >= LONGEST / 2, "{pauses:?}");
    pace.reset();
    assert!(pace.next() <= FIRST);
}
