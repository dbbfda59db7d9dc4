//! Makes text from outside (an event's id, a description, the output of a hook) fit for a terminal or a journal.

use std::fmt::Write as _;

/// The replacement for invisible characters, so that their place is noticed.
const MARK: char = '\u{fffd}';

/// Makes text safe: no character moves the cursor, changes colours, changes the writing direction, or is invisible. All
/// blanks become spaces.
pub fn sanitize(text: &str) -> String {
    let seen = |letter: char| match letter {
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        hidden if is_hidden(hidden) => MARK,
        letter => letter,
    };
    text.chars().map(seen).collect()
}

/// Whether a reader could take the word, as a part of a command, for another word or for an option.
pub fn is_misleading(word: &str) -> bool {
    sanitize(word) != word || word.starts_with('-')
}

/// A word quoted for a shell, whatever characters `word` contains.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Makes JSON safe without a change of its meaning: invisible characters are written as their numbers. Such characters
/// occur in strings only, where JSON allows the number for every character.
pub fn harmless_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for letter in json.chars() {
        if is_hidden(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{unit:04x}");
            }
        } else {
            shown.push(letter);
        }
    }
    shown
}

/// True for characters that steer a terminal, and for invisible characters: direction marks, joiners, line and
/// paragraph separators, tags, and private characters.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(
            letter,
            '\u{ad}'
                | '\u{61c}'
                | '\u{180e}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{e000}'..='\u{f8ff}'
                | '\u{e0000}'..='\u{10ffff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIDDEN: [char; 10] =
        ['\0', '\r', '\n', '\u{1b}', '\u{85}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}'];

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        for text in ["Überholung der Maschine db-1: 100 %", "維護", "تحديث", "a\u{fffd}b"] {
            assert_eq!(sanitize(text), text);
            assert_eq!(harmless_json(&format!("{text:?}")), format!("{text:?}"));
        }
    }

    #[test]
    fn what_means_something_to_a_shell_is_quoted() {
        assert_eq!(quoted("7B4C-99"), "7B4C-99");
        assert_eq!(quoted("db-0/postgres/drain#2"), "'db-0/postgres/drain#2'");
        assert_eq!(quoted("$(reboot) it's"), r"'$(reboot) it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn what_cannot_be_seen_is_marked_and_blanks_are_spaces() {
        assert_eq!(sanitize("a\u{a0}b\u{2003}c"), "a b c");
        for hidden in HIDDEN {
            assert_eq!(sanitize(&format!("x{hidden}y")), "x\u{fffd}y", "{hidden:?}");
        }
    }

    #[test]
    fn json_means_the_same_when_nothing_in_it_is_hidden() {
        for hidden in HIDDEN {
            let text = format!("x{hidden}\"\\y");
            let json = harmless_json(&serde_json::to_string(&text).unwrap());
            assert!(!json.contains(is_hidden), "{json}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
