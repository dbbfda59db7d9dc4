//! Event ids that look like the platform's (GUID, upper case), from a seed.

use crate::machine::id::EventId;

/// `SplitMix64`: one word of state, the same ids from the same seed on every machine.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Guids(u64);

impl Guids {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next_id(&mut self) -> EventId {
        let (high, low) = (self.word(), self.word());
        EventId::new(&format!(
            "{:08X}-{:04X}-4{:03X}-{:04X}-{:012X}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFF,
            0x8000 | ((low >> 48) & 0x3FFF),
            low & 0xFFFF_FFFF_FFFF,
        ))
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_look_like_the_platforms_and_repeat_with_the_seed_only() {
        let mut guids = Guids::new(7);
        let (first, second) = (guids.next_id(), guids.next_id());
        assert_eq!(Guids::new(7).next_id(), first);
        assert_ne!(first, second);
        assert_ne!(Guids::new(8).next_id(), first);
        let parts: Vec<usize> = first.as_str().split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(first.as_str(), first.as_str().to_uppercase());
    }
}
