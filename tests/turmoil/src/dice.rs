//! Random decisions of a seed: one stream for each purpose, so that a new question for one purpose leaves all other
//! streams unchanged.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A stream of numbers (`SplitMix64`).
pub(crate) struct Dice(Mutex<u64>);

impl Dice {
    pub(crate) fn of(seed: u64, purpose: &str) -> Self {
        let mix = |state: u64, byte: u8| mixed(state ^ u64::from(byte));
        Self(Mutex::new(purpose.bytes().fold(mixed(seed), mix)))
    }

    pub(crate) fn next(&self) -> u64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(*state)
    }

    pub(crate) fn below(&self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True in `chance` of a hundred cases.
    pub(crate) fn percent(&self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// A duration from the first number of milliseconds up to, and without, the second.
    pub(crate) fn millis(&self, from: u64, below: u64) -> Duration {
        Duration::from_millis(from + self.below(below - from))
    }

    pub(crate) fn pick<'a, T>(&self, all: &'a [T]) -> &'a T {
        &all[usize::try_from(self.below(all.len() as u64)).unwrap_or(0)]
    }
}

fn mixed(state: u64) -> u64 {
    let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ (state >> 31)
}
