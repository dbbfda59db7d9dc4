//! Event ids that look like the platform's (GUID, upper case), from a seed.

use crate::machine::id::EventId;
use crate::simulator::random::Random;

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Guids(Random);

impl Guids {
    pub(super) fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    pub(super) fn next_id(&mut self) -> EventId {
        let (high, low) = (self.0.word(), self.0.word());
        EventId::new(&format!(
            "{:08X}-{:04X}-4{:03X}-{:04X}-{:012X}",
            high >> 32,
            (high >> 16) & 0xFFFF,
            high & 0xFFF,
            0x8000 | ((low >> 48) & 0x3FFF),
            low & 0xFFFF_FFFF_FFFF,
        ))
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
