//! Corrupted bytes: cut off, flipped, mixed. The bytes are refused or read, and nothing panics.

use crate::wire::golden::golden;
use crate::wire::record::Record;
use crate::wire::samples::samples;

const SEED: u64 = 0x00A1_1C1E_A200_2026;
const ROUNDS: usize = 300;

#[test]
fn whatever_is_cut_off_is_refused() {
    for (name, record, bytes) in goldens() {
        for end in 0..bytes.len() {
            assert!(record.decode(&bytes[..end]).is_err(), "{name} cut off at {end}");
        }
    }
}

#[test]
fn every_single_flipped_bit_is_survived() {
    for (name, record, bytes) in goldens() {
        for bit in (0..bytes.len() * 8).step_by(crate::every_third()) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            survive(&name, &record, &flipped);
        }
    }
}

#[test]
fn mixed_up_bytes_never_panic() {
    let mut random = Random(SEED);
    let goldens = goldens();
    for (name, record, bytes) in &goldens {
        for _ in 0..ROUNDS {
            let mut mixed = bytes.clone();
            let (_, _, other) = &goldens[random.below(goldens.len())];
            for _ in 0..=random.below(8) {
                match random.below(3) {
                    0 if !mixed.is_empty() => {
                        let at = random.below(mixed.len());
                        mixed[at] = random.byte();
                    }
                    1 => mixed.insert(random.below(mixed.len() + 1), random.byte()),
                    _ => {
                        let part = random.below(other.len() + 1);
                        let at = random.below(mixed.len() + 1);
                        mixed.splice(at..at, other[part..].iter().copied());
                    }
                }
            }
            survive(name, record, &mixed);
        }
    }
}

/// An accepted value is a valid value, which can be stored and read back.
fn survive(name: &str, record: &Record, bytes: &[u8]) {
    if let Ok(read) = record.decode(bytes) {
        assert_eq!(record.decode(&read.encode()), Ok(read), "{name} from {bytes:?}");
    }
}

fn goldens() -> Vec<(String, Record, Vec<u8>)> {
    let mut golden = golden();
    let with_bytes = |(name, record): (String, Record)| golden.remove(&name).map(|bytes| (name, record, bytes));
    let goldens: Vec<_> = samples().into_iter().filter_map(with_bytes).collect();
    assert!(goldens.len() > 30, "the golden bytes are gone");
    goldens
}

/// Splitmix64: identical bytes in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(limit).unwrap()).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}
