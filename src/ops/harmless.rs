//! Text from outside, such as an event's description or what a hook wrote, as it may reach a terminal.

/// Stands where something was that cannot be seen, so that its place is noticed.
const MARK: char = '\u{fffd}';

/// Nothing in it moves the cursor, changes colours, turns the direction of writing, or cannot be seen. Any blank is a
/// space.
pub(super) fn harmless(text: &str) -> String {
    let seen = |letter: char| match letter {
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => ' ',
        hidden if hidden.is_control() || is_hidden(hidden) => MARK,
        letter => letter,
    };
    text.chars().map(seen).collect()
}

/// Marks of direction, what joins or divides unseen, line and paragraph separators, tags, and private letters.
const fn is_hidden(letter: char) -> bool {
    matches!(
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

    #[test]
    fn what_can_be_read_stays_as_it_is() {
        for text in ["Überholung der Maschine db-1: 100 %", "維護", "تحديث", "a\u{fffd}b"] {
            assert_eq!(harmless(text), text);
        }
    }

    #[test]
    fn what_cannot_be_seen_is_marked_and_blanks_are_spaces() {
        assert_eq!(harmless("a\u{a0}b\u{2003}c"), "a b c");
        for hidden in ['\0', '\r', '\n', '\u{1b}', '\u{85}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{feff}', '\u{e0041}']
        {
            assert_eq!(harmless(&format!("x{hidden}y")), "x\u{fffd}y", "{hidden:?}");
        }
    }
}
