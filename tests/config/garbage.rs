//! For any content of the file or the environment, the result is a configuration or mistakes, never a panic.

use super::read_with;

const WHOLE: &str = include_str!("../../deploy/allclear.example.toml");

/// A small random generator: identical bytes in every run, so that a failure is reproducible.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }
}

#[test]
fn damaged_files_never_panic() {
    const BITS: &[&str] = &[
        "[", "]", "{", "}", "\"", "'", "=", ".", "\n", "#", "[[", "]]", "-1", "9e99", "\u{0}", "ü", "1s", "true", "__",
    ];
    let mut dice = Dice(0x5eed);
    for _ in 0..1_000 / crate::every_third() {
        let mut text: Vec<char> = WHOLE.chars().collect();
        for _ in 0..=dice.roll(4) {
            let at = dice.roll(text.len());
            let end = (at + dice.roll(40)).min(text.len());
            text.splice(at..end, BITS[dice.roll(BITS.len())].chars());
        }
        let text: String = text.into_iter().collect();
        let _ = read_with(&text, &[]).map(|config| config.to_string());
    }
}

#[test]
fn garbage_never_panics() {
    const LETTERS: &[char] =
        &['a', '1', '.', '=', '[', ']', '{', '}', '"', '\'', '\n', '\\', '#', ',', '-', '_', '\u{7f}', '語'];
    let mut dice = Dice(0xbad);
    for _ in 0..3_000 {
        let length = dice.roll(80);
        let text: String = (0..length).map(|_| LETTERS[dice.roll(LETTERS.len())]).collect();
        let name = format!("ALLCLEAR__{}", text.replace('.', "__"));
        let _ = read_with(&text, &[(&name, &text), ("ALLCLEAR__CLUSTER__TLS", &text)]);
    }
}

#[test]
fn deep_nesting_never_overflows() {
    for (open, close) in [("[", "]"), ("{a=", "}"), ("a.", "a=1")] {
        let text = open.repeat(100_000) + &close.repeat(if close == "a=1" { 1 } else { 100_000 });
        let _ = read_with(&text, &[]);
        let _ = read_with(&format!("a = {text}"), &[("ALLCLEAR__POLICY", &text)]);
        let _ = read_with(&format!("[{}a]", "a.".repeat(100_000)), &[]);
    }
}
