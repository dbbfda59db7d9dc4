//! Parses HTTP/2 frame by frame. Frames that cost work and carry no call are allowed at the rate of honest replicas.
//! Calls and their messages are not slowed down: a snapshot has megabytes.

use std::time::Duration;

use super::rate_limit::RateLimiter;

const HEAD_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 0x1;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;

/// The price of a frame without a request. A call costs 1, and 1 more for each `PIECE_OF_A_HEAD` bytes of its head.
const PRICE: u32 = 256;
const PIECE_OF_A_HEAD: u32 = 64;
/// 256 frames without a request, or more calls than a leader can have.
const AT_ONCE: u32 = 256 * PRICE;
const A_SECOND: u32 = 64 * PRICE;
/// A shorter data frame could have been merged with others, unless preceded by long frames.
const SHORT_DATA: usize = 1024;
const SHORT_AT_ONCE: u32 = 256;

/// Parses the input of one connection.
pub(super) struct Frames {
    head: [u8; HEAD_BYTES],
    /// Known bytes of the head.
    known: usize,
    /// Bytes until the next frame begins.
    skipped: usize,
    /// Short pieces of messages allowed by calls and long pieces.
    earned: u32,
    pace: RateLimiter,
}

impl Frames {
    /// Starts after `bytes` bytes without frames.
    pub(super) fn after(bytes: usize) -> Self {
        let pace = RateLimiter::new(AT_ONCE, A_SECOND);
        Self { head: [0; HEAD_BYTES], known: 0, skipped: bytes, earned: 0, pace }
    }

    /// The pause of reading after this input; `None` if longer than `at_most`.
    pub(super) fn wait(&mut self, heard: &[u8], at_most: Duration) -> Option<Duration> {
        let price = self.price(heard);
        if price == 0 { Some(Duration::ZERO) } else { self.pace.wait(price, at_most) }
    }

    fn price(&mut self, mut heard: &[u8]) -> u32 {
        let mut price: u32 = 0;
        while !heard.is_empty() {
            let skipped = self.skipped.min(heard.len());
            (self.skipped, heard) = (self.skipped - skipped, &heard[skipped..]);
            let more = (HEAD_BYTES - self.known).min(heard.len());
            self.head[self.known..self.known + more].copy_from_slice(&heard[..more]);
            (self.known, heard) = (self.known + more, &heard[more..]);
            if self.known == HEAD_BYTES {
                self.known = 0;
                let [high, middle, low, kind, flags, ..] = self.head;
                let length = u32::from_be_bytes([0, high, middle, low]);
                self.skipped = length as usize;
                price = price.saturating_add(self.price_of(length, kind, flags));
            }
        }
        price
    }

    fn price_of(&mut self, length: u32, kind: u8, flags: u8) -> u32 {
        let is_plain = flags & PADDED == 0;
        match kind {
            HEADERS if is_plain && flags & PRIORITY == 0 => {
                self.earn(1);
                1 + length / PIECE_OF_A_HEAD
            }
            DATA if is_plain && length as usize >= SHORT_DATA => {
                self.earn(1);
                0
            }
            // A call ends once.
            DATA if is_plain && flags & END_STREAM != 0 => 0,
            DATA if is_plain && length > 0 && self.earned > 0 => {
                self.earned -= 1;
                0
            }
            _ => PRICE,
        }
    }

    fn earn(&mut self, short: u32) {
        self.earned = (self.earned + short).min(SHORT_AT_ONCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_MOST: Duration = Duration::from_secs(10);

    fn frame(kind: u8, flags: u8, length: u32) -> Vec<u8> {
        let [_, high, middle, low] = length.to_be_bytes();
        let mut bytes = vec![high, middle, low, kind, flags, 0, 0, 0, 1];
        bytes.resize(HEAD_BYTES + length as usize, 6);
        bytes
    }

    fn call(length: u32) -> Vec<u8> {
        [frame(HEADERS, 4, 60), frame(DATA, 0, length), frame(DATA, END_STREAM, 0)].concat()
    }

    /// The number of frames without a pause, of very many.
    fn unhindered(one: &[u8]) -> usize {
        let mut frames = Frames::after(0);
        (0..100_000).take_while(|_| frames.wait(one, AT_MOST) == Some(Duration::ZERO)).count()
    }

    #[tokio::test(start_paused = true)]
    async fn frames_that_ask_for_nothing_come_now_and_then() {
        let most = usize::try_from(AT_ONCE / PRICE).unwrap();
        // PRIORITY, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION, PRIORITY_UPDATE, and unknown ones.
        for kind in [2, 3, 4, 6, 7, 8, 9, 16, 99, 255] {
            assert_eq!(unhindered(&frame(kind, 0, 8)), most, "frames of the kind {kind}");
        }
        for (flags, length) in [(0, 0), (0, 1), (PADDED, 1), (PADDED, 16_384)] {
            assert_eq!(unhindered(&frame(DATA, flags, length)), most, "{length} bytes with {flags}");
        }
        for flags in [PADDED, PRIORITY] {
            assert_eq!(unhindered(&frame(HEADERS, flags, 60)), most);
        }
        // Calls that are broken off at once.
        let reset = unhindered(&[frame(HEADERS, 5, 60), frame(3, 0, 4)].concat());
        assert!(reset < most, "{reset} calls were reset");
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_is_not_slowed_down() {
        assert!(unhindered(&call(200)) > 30_000);
        let piece: Vec<u8> = (0..32).flat_map(|_| frame(DATA, 0, 16_384)).chain(frame(DATA, 0, 22)).collect();
        let mut frames = Frames::after(24);
        assert_eq!(frames.wait(&[7; 24], AT_MOST), Some(Duration::ZERO));
        assert_eq!(frames.wait(&frame(HEADERS, 4, 60), AT_MOST), Some(Duration::ZERO));
        for _ in 0..512 {
            assert_eq!(frames.wait(&piece, AT_MOST), Some(Duration::ZERO));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn it_does_not_matter_how_words_are_cut() {
        let short = frame(DATA, 0, 3).repeat(3);
        let words = [call(2000), frame(6, 0, 8), frame(2, 0, 5), call(7), short].concat();
        let whole = Frames::after(0).price(&words);
        assert_eq!(whole, 2 + 3 * PRICE);
        for size in [1, 2, 3, 8, 9, 10, 100] {
            let mut frames = Frames::after(0);
            assert_eq!(words.chunks(size).map(|piece| frames.price(piece)).sum::<u32>(), whole, "pieces of {size}");
        }
    }
}
