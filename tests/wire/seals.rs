//! The checksum of stored values keeps its bytes, and detects every change of a bit, every cut and every value in the
//! place of another value.

use allclear::wire::checksum::{Corrupted, append_checksum, seal_text, unseal_text, verify_checksum};

const PLACE: &[u8] = b"vote";
const MESSAGE: &[u8] = b"\x08\x03\x11\x04\x03\x02\x01\x00\x00\x00\x00\x18\x01";
/// The message, the tag of an unused field, and the checksum.
const SEALED: &[u8] = b"\x08\x03\x11\x04\x03\x02\x01\x00\x00\x00\x00\x18\x01\xfd\xff\xff\xff\x0f\xd6\x05\xfe\x04";

#[test]
fn a_seal_keeps_its_bytes() {
    assert_eq!(append_checksum(PLACE, MESSAGE.into()), SEALED);
    assert_eq!(verify_checksum(PLACE, SEALED), Ok(MESSAGE));
    assert_eq!(seal_text(b"outcome.json", b"{}".into()), b"{}\nd2eda312\n");
    assert_eq!(unseal_text(b"outcome.json", b"{}\nd2eda312\n"), Ok(&b"{}"[..]));
}

#[test]
fn the_checksum_is_crc_32c_of_the_length_of_the_place_the_place_and_the_text() {
    let sum = |bytes: &[u8]| {
        bytes.iter().fold(!0_u32, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| if sum & 1 == 1 { (sum >> 1) ^ 0x82f6_3b78 } else { sum >> 1 })
        })
    };
    assert_eq!(!sum(b"123456789"), 0xe306_9283, "the check value of CRC-32C");
    let all = [&12_u64.to_le_bytes()[..], b"outcome.json", b"{}"].concat();
    assert_eq!(seal_text(b"outcome.json", b"{}".into()), format!("{{}}\n{:08x}\n", !sum(&all)).into_bytes());
}

#[test]
fn what_has_no_seal_is_from_before_there_were_any() {
    for bytes in [&b""[..], b"{}", MESSAGE, &[0; 100]] {
        assert_eq!((verify_checksum(PLACE, bytes), unseal_text(PLACE, bytes)), (Ok(bytes), Ok(bytes)));
    }
}

#[test]
fn no_flipped_bit_is_read_as_something_else() {
    let text = seal_text(PLACE, MESSAGE.into());
    for bit in 0..SEALED.len() * 8 {
        let mut flipped = SEALED.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(verify_checksum(PLACE, &flipped), Err(Corrupted), "bit {bit}");
    }
    for bit in 0..text.len() * 8 {
        let mut flipped = text.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // If the seal is no longer recognised, the reader of the text finds more content than expected.
        let is_whole = unseal_text(PLACE, &flipped) == Ok(&flipped[..]) && flipped.starts_with(MESSAGE);
        assert!(is_whole || unseal_text(PLACE, &flipped) == Err(Corrupted), "bit {bit}");
    }
}

#[test]
fn what_is_cut_off_has_no_seal_and_what_is_in_another_place_another_one() {
    for end in MESSAGE.len()..SEALED.len() {
        assert_eq!(verify_checksum(PLACE, &SEALED[..end]), Ok(&SEALED[..end]));
    }
    assert_eq!(verify_checksum(b"committed", SEALED), Err(Corrupted));
    assert_eq!(unseal_text(b"mark.json", &seal_text(b"outcome.json", b"{}".into())), Err(Corrupted));
}
