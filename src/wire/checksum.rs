//! Detection of corrupted values on disk: a checksum at the end of each value, over the value's place and bytes.
//!
//! Storage seldom, but silently, returns wrong bytes: a flipped bit, a block of another place, a torn write. A value
//! that is mistaken for another value would be worse than a replica that stops.
//!
//! In a message the checksum is a field that no message has, so that a program from before there were checksums skips
//! the field. A text has the checksum in a line of its own. A value from before there were checksums has no checksum,
//! and is read as before.

/// Field 536,870,911, the highest possible number, `fixed32`: the end of a message without a checksum never looks like a
/// checksum.
const TAG: [u8; 5] = [0xfd, 0xff, 0xff, 0xff, 0x0f];
const SEAL: usize = TAG.len() + size_of::<u32>();
/// Number of flipped bits up to which the tag is still recognized as a tag.
const NEARLY: u32 = 8;
/// The end of a line, eight digits, and again the end of a line.
const LINE: usize = 10;

#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("it is not what was written there: its checksum does not match, so the disk is damaged")]
pub struct Corrupted;

/// `place` is where the message is kept: a message found in another place is rejected as well.
pub fn append_checksum(place: &[u8], mut message: Vec<u8>) -> Vec<u8> {
    let sum = checksum(place, &message);
    message.extend_from_slice(&TAG);
    message.extend_from_slice(&sum.to_le_bytes());
    message
}

pub fn verify_checksum<'b>(place: &[u8], sealed: &'b [u8]) -> Result<&'b [u8], Corrupted> {
    let Some((message, end)) = sealed.len().checked_sub(SEAL).map(|at| sealed.split_at(at)) else { return Ok(sealed) };
    let flipped: u32 = end.iter().zip(TAG).map(|(found, tag)| (found ^ tag).count_ones()).sum();
    match flipped {
        0 if end[TAG.len()..] == checksum(place, message).to_le_bytes() => Ok(message),
        0..=NEARLY => Err(Corrupted),
        _ => Ok(sealed),
    }
}

/// Appends the checksum of a text, as one line.
pub fn seal_text(place: &[u8], mut text: Vec<u8>) -> Vec<u8> {
    let sum = checksum(place, &text);
    text.extend_from_slice(format!("\n{sum:08x}\n").as_bytes());
    text
}

/// Verifies the checksum of a text. A text without a checksum is complete, or its reader finds the text cut off or
/// followed by other bytes.
pub fn unseal_text<'b>(place: &[u8], sealed: &'b [u8]) -> Result<&'b [u8], Corrupted> {
    let Some((text, end)) = sealed.len().checked_sub(LINE).map(|at| sealed.split_at(at)) else { return Ok(sealed) };
    match end {
        [b'\n', digits @ .., b'\n'] if *digits == *format!("{:08x}", checksum(place, text)).as_bytes() => Ok(text),
        [b'\n', .., b'\n'] => Err(Corrupted),
        _ => Ok(sealed),
    }
}

/// CRC-32C of the place's length, the place and the bytes: detects every flip of up to five bits of our stored
/// values.
fn checksum(place: &[u8], bytes: &[u8]) -> u32 {
    let length = (place.len() as u64).to_le_bytes();
    let all = length.iter().chain(place).chain(bytes);
    !all.fold(!0, |sum, byte| TABLE[usize::from(sum.to_le_bytes()[0] ^ byte)] ^ (sum >> 8))
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut at: u32 = 0;
    while at < 256 {
        let mut sum = at;
        let mut bit = 0;
        while bit < 8 {
            sum = if sum & 1 == 1 { (sum >> 1) ^ 0x82f6_3b78 } else { sum >> 1 };
            bit += 1;
        }
        table[at as usize] = sum;
        at += 1;
    }
    table
};
