//! How often somebody may ask: so many at once, and so many a second after that.

use crate::machine::time::Timestamp;
use crate::replica::clock;

pub(super) struct Pace {
    at_once: u64,
    a_second: u64,
    /// In thousandths, so that a millisecond counts.
    left: u64,
    at: Timestamp,
}

impl Pace {
    pub(super) fn new(at_once: u64, a_second: u64) -> Self {
        Self { at_once, a_second, left: at_once * 1000, at: clock::steady() }
    }

    /// False when it is too much.
    pub(super) fn take(&mut self) -> bool {
        self.take_at(clock::steady())
    }

    fn take_at(&mut self, now: Timestamp) -> bool {
        let passed = u64::try_from(now.since(self.at).as_millis()).unwrap_or(u64::MAX);
        self.left = self.left.saturating_add(passed.saturating_mul(self.a_second)).min(self.at_once * 1000);
        self.at = now;
        let is_granted = self.left >= 1000;
        self.left -= if is_granted { 1000 } else { 0 };
        is_granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_at_once_and_then_so_many_a_second() {
        let mut pace = Pace { at_once: 3, a_second: 2, left: 3000, at: Timestamp(0) };
        let mut granted = |ms| (0..10).filter(|_| pace.take_at(Timestamp(ms))).count();
        assert_eq!([granted(0), granted(499), granted(500), granted(1500), granted(60_000)], [3, 0, 1, 2, 3]);
    }
}
