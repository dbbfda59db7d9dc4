//! Texts from hooks, made fit for a log, a status and a terminal.

/// One line without cursor movement, colour changes, or changes of the writing direction.
pub fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() || turns(letter) { ' ' } else { letter }).collect()
}

/// Encodes every byte that is not `plain` as `%` and two digits.
pub(super) fn percent_encoded(text: &str, plain: impl Fn(u8) -> bool) -> String {
    let encoded = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encoded).collect()
}

/// Marks of direction, and separators of lines and paragraphs.
const fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_stays_and_what_disturbs_others_is_a_blank() {
        assert_eq!(one_line("größe 3 of 7 → 維護"), "größe 3 of 7 → 維護");
        assert_eq!(one_line("a\tb\nc\r\u{1b}[31md\u{9b}e\u{202e}f\u{2028}g\0"), "a b c  [31md e f g ");
    }
}
