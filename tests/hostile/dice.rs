//! Random numbers, identical in every run, and the number of rounds.

/// Splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Seeded by the environment's seed, and by `number`.
    pub(crate) fn of(number: u64) -> Self {
        let seed = std::env::var("ALLCLEAR_SEED").map_or(0, |seed| seed.parse().expect("ALLCLEAR_SEED is a number"));
        let mut dice = Self(seed ^ number.wrapping_mul(0xA076_1D64_78BD_642F));
        dice.next();
        dice
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    /// True once in so many times.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    /// Mostly a small number, sometimes an extreme number.
    pub(crate) fn number(&mut self) -> u64 {
        match self.below(8) {
            0 => *self.one(&[u64::MAX, u64::MAX - 1, i64::MAX as u64, i64::MIN.cast_unsigned(), u64::from(u32::MAX)]),
            1 => self.next(),
            _ => self.next() % 20,
        }
    }
}

/// The number of rounds with long tests, or a quarter of it, times the factor of the environment.
pub(crate) fn rounds(long: u64) -> u64 {
    let usual = if crate::left_out::runs_long_tests() { long } else { long.div_ceil(4) };
    let times =
        std::env::var("ALLCLEAR_HOSTILE").map_or(1, |times| times.parse().expect("ALLCLEAR_HOSTILE is a number"));
    usual * times
}
