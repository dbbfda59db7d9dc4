//! Event ids in the platform's format (GUID, upper case), from a seed.

use crate::random::Random;
use allclear_core::model::id::EventId;

pub(super) fn event_id(random: &mut Random) -> EventId {
    let (high, low) = (random.word(), random.word());
    EventId::new(&format!(
        "{:08X}-{:04X}-4{:03X}-{:04X}-{:012X}",
        high >> 32,
        (high >> 16) & 0xFFFF,
        high & 0xFFF,
        0x8000 | ((low >> 48) & 0x3FFF),
        low & 0xFFFF_FFFF_FFFF,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_look_like_the_platforms_and_repeat_with_the_seed_only() {
        let mut random = Random::new(7);
        let (first, second) = (event_id(&mut random), event_id(&mut random));
        assert_eq!(event_id(&mut Random::new(7)), first);
        assert_ne!(first, second);
        assert_ne!(event_id(&mut Random::new(8)), first);
        let parts: Vec<usize> = first.as_str().split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(first.as_received(), first.as_str().to_uppercase());
    }
}
