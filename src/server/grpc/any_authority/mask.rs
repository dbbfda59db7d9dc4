//! Finds the value of `:authority` in the bytes of an HTTP/2 client, and writes a host name of the same length over it.
//! The length of no frame and of no string changes, and the value is read as plain text, so every table of the two
//! sides keeps its order (RFC 9113, section 4; RFC 7541, section 6).

/// The connection preface of a client.
const PREFACE_BYTES: usize = 24;
const HEAD_BYTES: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const PADDED: u8 = 0x8;
const PRIORITY: u8 = 0x20;
const PRIORITY_BYTES: usize = 5;

/// The entry of the static table with the name of the authority. gRPC's C core writes the name itself.
const AUTHORITY: u64 = 1;
const NAME: &[u8] = b":authority";
/// A longer integer is refused by the reader of the headers.
const LARGEST_SHIFT: u32 = 56;
const HUFFMAN: u8 = 0x80;
/// A letter of any host name.
const LETTER: u8 = b'a';

/// The place in the frames of one client.
pub(super) struct AuthorityMask {
    head: [u8; HEAD_BYTES],
    known: usize,
    /// Bytes that are no part of a header block: of the preface, of other frames, of priorities.
    skipped: usize,
    /// Bytes of the header block in this frame.
    block: usize,
    /// Bytes of padding behind the header block.
    padding: usize,
    /// The next byte has the length of the padding; then these bytes of priority follow.
    padded: Option<usize>,
    field: Field,
}

/// The place in a header block.
#[derive(Clone, Copy)]
enum Field {
    Begin,
    /// The rest of an integer, with its value so far.
    Integer {
        of: IntegerOf,
        value: u64,
        shift: u32,
    },
    NameLength,
    /// The rest of a name, whose letters so far are the first ones of `NAME`; `None` for another name.
    Name {
        left: u64,
        known: Option<usize>,
    },
    ValueLength {
        is_authority: bool,
    },
    Value {
        left: u64,
        is_authority: bool,
    },
    /// The block is no header block: the reader of the headers refuses it.
    Unreadable,
}

#[derive(Clone, Copy)]
enum IntegerOf {
    /// An indexed field, or the size of a table: nothing follows.
    Whole,
    /// The index of a name; the value follows.
    NameIndex,
    NameLength,
    ValueLength {
        is_authority: bool,
    },
}

impl Default for AuthorityMask {
    fn default() -> Self {
        Self {
            head: [0; HEAD_BYTES],
            known: 0,
            skipped: PREFACE_BYTES,
            block: 0,
            padding: 0,
            padded: None,
            field: Field::Begin,
        }
    }
}

impl AuthorityMask {
    /// Masks the next bytes of the client.
    pub(super) fn mask(&mut self, bytes: &mut [u8]) {
        let mut at = 0;
        while at < bytes.len() {
            let skipped = self.skipped.min(bytes.len() - at);
            self.skipped -= skipped;
            at += skipped;
            if let Some(byte) = bytes.get_mut(at) {
                self.pass(byte);
                at += 1;
            }
        }
    }

    fn pass(&mut self, byte: &mut u8) {
        if let Some(priority) = self.padded.take() {
            self.padding = usize::from(*byte);
            self.begin_block(priority, 1);
        } else if self.block > 0 {
            self.field = self.field.next(byte);
            self.block -= 1;
            if self.block == 0 {
                self.skipped = std::mem::take(&mut self.padding);
            }
        } else {
            self.head[self.known] = *byte;
            self.known += 1;
            if self.known == HEAD_BYTES {
                self.known = 0;
                self.begin_frame();
            }
        }
    }

    fn begin_frame(&mut self) {
        let [high, middle, low, kind, flags, ..] = self.head;
        self.block = u32::from_be_bytes([0, high, middle, low]) as usize;
        match kind {
            HEADERS => {
                self.field = Field::Begin;
                let priority = if flags & PRIORITY == 0 { 0 } else { PRIORITY_BYTES };
                if flags & PADDED == 0 {
                    self.begin_block(priority, 0);
                } else if self.block > 0 {
                    self.padded = Some(priority);
                }
            }
            CONTINUATION => {}
            _ => self.skipped = std::mem::take(&mut self.block),
        }
    }

    /// Takes what is not of the header block from the length of the frame.
    fn begin_block(&mut self, priority: usize, of_padding: usize) {
        let payload = self.block - of_padding;
        // Padding that is longer than the frame ends the connection.
        self.padding = self.padding.min(payload);
        self.skipped = priority.min(payload - self.padding);
        self.block = payload - self.padding - self.skipped;
        if self.block == 0 {
            self.skipped += std::mem::take(&mut self.padding);
        }
    }
}

impl Field {
    /// The place after this byte. Changes a byte of the authority.
    fn next(self, byte: &mut u8) -> Self {
        let now = *byte;
        match self {
            Self::Begin if now & 0x80 != 0 => Self::integer(IntegerOf::Whole, now, 0x7f),
            Self::Begin if now & 0x40 != 0 => Self::integer(IntegerOf::NameIndex, now, 0x3f),
            Self::Begin if now & 0x20 != 0 => Self::integer(IntegerOf::Whole, now, 0x1f),
            Self::Begin => Self::integer(IntegerOf::NameIndex, now, 0x0f),
            Self::Integer { of, value, shift } => {
                let value = value + (u64::from(now & 0x7f) << shift);
                match (now & 0x80 != 0, shift + 7) {
                    (true, shift) if shift < LARGEST_SHIFT => Self::Integer { of, value, shift },
                    (true, _) => Self::Unreadable,
                    (false, _) => of.then(value),
                }
            }
            Self::NameLength => Self::integer(IntegerOf::NameLength, now, 0x7f),
            Self::ValueLength { is_authority } => {
                if is_authority {
                    *byte &= !HUFFMAN;
                }
                Self::integer(IntegerOf::ValueLength { is_authority }, now, 0x7f)
            }
            Self::Name { left, known } => {
                let known = known.filter(|known| NAME.get(*known) == Some(&now)).map(|known| known + 1);
                if left == 1 {
                    Self::ValueLength { is_authority: known == Some(NAME.len()) }
                } else {
                    Self::Name { left: left - 1, known }
                }
            }
            Self::Value { left, is_authority } => {
                if is_authority {
                    *byte = LETTER;
                }
                if left == 1 { Self::Begin } else { Self::Value { left: left - 1, is_authority } }
            }
            Self::Unreadable => Self::Unreadable,
        }
    }

    /// The begin of an integer, in the bits of a mask.
    fn integer(of: IntegerOf, byte: u8, mask: u8) -> Self {
        let value = u64::from(byte & mask);
        if byte & mask == mask { Self::Integer { of, value, shift: 0 } } else { of.then(value) }
    }
}

impl IntegerOf {
    /// The place behind an integer with this value.
    fn then(self, value: u64) -> Field {
        match (self, value) {
            (Self::Whole, _) | (Self::ValueLength { .. }, 0) => Field::Begin,
            (Self::NameIndex, 0) => Field::NameLength,
            (Self::NameIndex, index) => Field::ValueLength { is_authority: index == AUTHORITY },
            (Self::NameLength, 0) => Field::ValueLength { is_authority: false },
            (Self::NameLength, left) => Field::Name { left, known: Some(0) },
            (Self::ValueLength { is_authority }, left) => Field::Value { left, is_authority },
        }
    }
}

#[cfg(test)]
mod tests;
