//! Chance from a seed (`SplitMix64`): one word of state, the same draws on every machine.

use std::time::Duration;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 up to but without `end`; 0 if there is no choice.
    pub fn below(&mut self, end: u64) -> u64 {
        let wide = u128::from(self.word()) * u128::from(end);
        u64::try_from(wide >> 64).unwrap_or(0)
    }

    /// Both ends are possible.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most.saturating_sub(least) + 1)
    }

    pub fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// In whole milliseconds.
    pub fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }

    pub fn secs(&mut self, least: u64, most: u64) -> Duration {
        self.millis(least * 1000, most * 1000)
    }

    /// A random element of a non-empty list.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.index(of.len())]
    }

    /// A random element, each as often as its weight says.
    pub fn weighted<T: Clone>(&mut self, of: &[(u64, T)]) -> T {
        let mut left = self.below(of.iter().map(|(weight, _)| weight).sum());
        for (weight, one) in of {
            if left < *weight {
                return one.clone();
            }
            left -= weight;
        }
        of[0].1.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_draws_the_same_and_stays_within_bounds() {
        let draws = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.between(3, 7)).collect::<Vec<_>>()
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
        assert!(draws(3).iter().all(|draw| (3..=7).contains(draw)));
        assert_eq!(Random::new(1).below(0), 0);
    }
}
