//! Encodes text for URLs and headers.

use std::fmt::Write as _;

/// Percent-encodes all but letters, digits and `/@_-`; without a full stop, so that signed parts can be told apart.
pub(super) fn percent(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"/@_-".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_plain_is_written_as_its_bytes() {
        assert_eq!(percent("A-1@7/all_clear"), "A-1@7/all_clear");
        assert_eq!(percent("db.0 ü%"), "db%2E0%20%C3%BC%25");
    }
}
