//! Frames with authorities in every form, and bytes that are no HTTP/2.

use super::*;

const PATH: &[u8] = b"/run/allclear/operator.sock";

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [_, high, middle, low] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[high, middle, low, kind, flags, 0, 0, 0, 1], payload].concat()
}

fn text(first: u8, letters: &[u8]) -> Vec<u8> {
    [&[first | u8::try_from(letters.len()).unwrap()], letters].concat()
}

/// A block with an indexed field, a new size of the table, a literal name, and the authority in this form.
fn block(first: &[u8], authority: &[u8]) -> Vec<u8> {
    let other = |name: &[u8]| [&[0x00][..], &text(0, name), &text(0, b"\x41/x")].concat();
    let literal = [other(b"x-a"), other(b":authorities"), other(b":auth")].concat();
    let path = [&[0x44][..], &text(0, b"/grpc.health.v1.Health/Check")].concat();
    [&[0x83, 0x3f, 0xe1, 0x1f, 0xff, 0x20][..], &path, &literal, first, authority, &[0x86]].concat()
}

fn masked(bytes: &[u8], size: usize) -> Vec<u8> {
    let (mut mask, mut bytes) = (AuthorityMask::default(), bytes.to_vec());
    bytes.chunks_mut(size).for_each(|piece| mask.mask(piece));
    bytes
}

#[test]
fn an_authority_becomes_a_name_of_its_length_and_nothing_else_changes() {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let long = [&[0x7f, 200 - 127, b'/'][..], &[b'/'; 199]].concat();
    let masked_long = [&[0x7f, 200 - 127][..], &[LETTER; 200]].concat();
    let of_name = |letters: usize| text(0, &vec![LETTER; letters]);
    for (given, expected) in [
        (text(0, PATH), of_name(PATH.len())),
        (text(HUFFMAN, b"\x62\x75"), of_name(2)),
        (text(0, b""), text(0, b"")),
        (long, masked_long),
    ] {
        let by_name = |first: u8| [&[first], &*text(0, b":authority")].concat();
        let by_index = [[0x41], [0x01], [0x11]].map(Vec::from);
        for first in by_index.into_iter().chain([0x40, 0x00, 0x10].map(by_name)) {
            let frames = |authority: &[u8]| {
                let block = block(&first, authority);
                let (begin, rest) = block.split_at(block.len() / 2);
                let padded = [&[3, 9, 9, 9, 9, 9][..], &block, &[0x41, 1, b'/']].concat();
                let settings = frame(4, 0, &[0x41; 6]);
                let split = [frame(HEADERS, 0, begin), frame(CONTINUATION, 4, rest)].concat();
                let all = [
                    preface.to_vec(),
                    settings,
                    frame(HEADERS, 4, &block),
                    frame(0, 1, &[0x41, 1, b'/']),
                    frame(HEADERS, 4 | PADDED | PRIORITY, &padded),
                    split,
                ];
                all.concat()
            };
            for size in [1, 2, 7, 10_000] {
                assert_eq!(masked(&frames(&given), size), frames(&expected), "{first:x?}, pieces of {size}");
            }
        }
    }
}

/// Splitmix64.
fn number(seed: u64) -> u64 {
    let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

#[test]
fn what_is_no_http2_is_survived_in_any_pieces() {
    for seed in 0..2_000_u64 {
        let byte = |at: u64| u8::try_from(number(seed * 1_000 + at) >> 56).unwrap();
        let kind = if seed % 3 == 0 { byte(400) } else { HEADERS };
        let payload: Vec<u8> = (0..u64::from(byte(401))).map(byte).collect();
        let bytes = [vec![0; PREFACE_BYTES], frame(kind, byte(402), &payload), payload.clone()].concat();
        assert_eq!(masked(&bytes, 1), masked(&bytes, 5));
        assert_eq!(masked(&bytes, 5), masked(&bytes, bytes.len()));
    }
}
