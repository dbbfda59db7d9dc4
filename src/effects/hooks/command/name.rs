//! Attempt ids as names of folders.

use crate::hooks::text::percent_encoded;

/// A file name has at most 255 bytes, and some encoded names get a short prefix.
const MAX_NAME: usize = 240;

/// Whether an attempt of this id can have a folder: the id is not empty, and not much longer than usual ids.
pub(super) fn is_usable(attempt: &str) -> bool {
    (1..=MAX_NAME).contains(&encode(attempt).len())
}

/// An attempt id as a file name: no two ids share a name, and no name begins with a dot or leaves the spool.
pub(super) fn encode(attempt: &str) -> String {
    percent_encoded(attempt, |byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}

/// The inverse of `encode`.
pub(super) fn decode(name: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    let attempt = String::from_utf8(bytes).ok()?;
    (is_usable(&attempt) && encode(&attempt) == name).then_some(attempt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_attempt_id_has_a_file_name_of_its_own_that_stays_in_the_spool() {
        for attempt in ["17", "a/b", "..", ".lock", "a%2Fb", "é", "A", "a", "a b\n", &"é".repeat(MAX_NAME / 6)] {
            let name = encode(attempt);
            assert!(!name.starts_with('.') && !name.contains('/') && name.len() <= 255, "{name}");
            assert_eq!(decode(&name).as_deref(), Some(attempt));
        }
    }

    #[test]
    fn names_that_are_not_of_attempts_are_not_read_as_such() {
        for name in ["", ".lock", ".aside", "lost+found", "%", "%4", "%41", "%zz", "%FF", &"a".repeat(MAX_NAME + 1)] {
            assert_eq!(decode(name), None, "{name}");
        }
    }
}
