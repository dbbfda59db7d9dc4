//! How fast clients write, as it is seen from one look to the next.

use std::collections::VecDeque;

use super::screen::{Colour, Screen};
use crate::cli::stage::VMS;
use crate::databases::writers::Progress;
use crate::machine::time::Timestamp;

/// Looks that are shown.
const LOOKS: usize = 40;
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

#[derive(Default)]
pub(super) struct Pulse {
    /// When, and how many had been acknowledged by then.
    looks: VecDeque<(Timestamp, u64)>,
}

impl Pulse {
    pub(super) fn see(&mut self, at: Timestamp, acknowledged: u64) {
        if self.looks.len() > LOOKS {
            self.looks.pop_front();
        }
        self.looks.push_back((at, acknowledged));
    }

    /// From each look to the next, per second.
    fn rates(&self) -> Vec<u64> {
        let pairs = self.looks.iter().zip(self.looks.iter().skip(1));
        pairs.map(|(before, now)| per_second(before, now)).collect()
    }

    /// Over the last second or so.
    pub(super) fn rate(&self) -> u64 {
        let from = self.looks.len().saturating_sub(10);
        self.looks.get(from).zip(self.looks.back()).map_or(0, |(before, now)| per_second(before, now))
    }

    /// For the board.
    pub(super) fn line(&self, progress: &Progress, screen: &Screen) -> String {
        let on = progress.latest.map_or("nobody", |latest| VMS[latest.place]);
        let rates = self.rates();
        let is_still = rates.last() == Some(&0);
        let bars = screen.paint(if is_still { Colour::Red } else { Colour::Green }, &bars(&rates));
        format!("writes {:>6} per second on {on}  {bars}", rates.last().copied().unwrap_or(0))
    }
}

fn per_second(before: &(Timestamp, u64), now: &(Timestamp, u64)) -> u64 {
    let millis = u64::try_from(now.0.since(before.0).as_millis()).unwrap_or(u64::MAX);
    (now.1 - before.1).saturating_mul(1000) / millis.max(1)
}

/// Numbers as heights; a dot where there is nothing at all.
pub(super) fn bars(numbers: &[u64]) -> String {
    let most = numbers.iter().copied().max().unwrap_or(0).max(1);
    let bar = |number: &u64| match *number {
        0 => '.',
        number => {
            let height = number.saturating_mul(BARS.len() as u64).div_ceil(most).saturating_sub(1);
            usize::try_from(height).ok().and_then(|height| BARS.get(height)).copied().unwrap_or('█')
        }
    };
    numbers.iter().map(bar).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nothing_is_told_from_what_is_little() {
        assert_eq!(bars(&[0, 1, 40, 80]), ".▁▄█");
        assert_eq!(bars(&[0, 0]), "..");
        assert_eq!(bars(&[]), "");
    }

    #[test]
    fn a_rate_is_of_the_time_that_really_passed() {
        let mut pulse = Pulse::default();
        for (at, acknowledged) in [(1_000, 0), (1_100, 100), (1_300, 100), (1_350, 150)] {
            pulse.see(Timestamp(at), acknowledged);
        }
        assert_eq!(pulse.rates(), [1_000, 0, 1_000]);
        assert_eq!(pulse.rate(), 150 * 1000 / 350);
    }
}
