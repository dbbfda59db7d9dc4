//! Removes secret values from the messages of programs and servers that received the values.

use core::cmp::Reverse;

/// The minimal length of a removed value. Shorter values occur in many words by chance, and their removal would make
/// messages unreadable; and a value of three letters can be guessed anyway.
pub const SHORTEST: usize = 4;
const INSTEAD: &[u8] = b"***";

/// The values to remove, the longest first, since a value may be part of another. Stored without line breaks, because
/// messages may break lines elsewhere.
#[derive(Clone, Default)]
pub struct Secrets(Vec<Vec<u8>>);

impl Secrets {
    /// The secrets of all values: each value, each of its lines, and the passwords inside.
    pub fn of<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let mut all = Vec::new();
        for value in values {
            let value = value.trim();
            let whole: String = value.chars().filter(|letter| !is_break(*letter)).collect();
            let lines = value.lines().map(|line| line.trim().to_owned());
            let passwords = value.lines().flat_map(passwords).map(str::to_owned);
            all.extend([whole, as_json(value)].into_iter().chain(lines).chain(passwords).map(String::into_bytes));
        }
        Self::sorted(all)
    }

    fn sorted(mut all: Vec<Vec<u8>>) -> Self {
        all.retain(|secret| secret.len() >= SHORTEST);
        all.sort_by(|one, other| (Reverse(one.len()), one).cmp(&(Reverse(other.len()), other)));
        all.dedup();
        Self(all)
    }

    /// Adds one value.
    #[must_use]
    pub fn and(self, value: Option<&str>) -> Self {
        let mut all = self.0;
        all.extend(Self::of(value).0);
        Self::sorted(all)
    }

    /// Replaces the secrets in a text.
    pub fn cut(&self, text: &str) -> String {
        let mut cutter = self.cutter();
        let mut left = cutter.push(text.as_bytes());
        left.extend(cutter.finish());
        String::from_utf8_lossy(&left).into_owned()
    }

    /// A [`Cutter`] for text that arrives in pieces.
    pub fn cutter(&self) -> Cutter {
        Cutter { secrets: self.clone(), held: Vec::new(), said: 0 }
    }

    /// True if a value is too short to be cut out.
    pub fn is_too_short(value: &str) -> bool {
        (1..SHORTEST).contains(&value.trim().len())
    }
}

fn is_break(letter: char) -> bool {
    letter == '\n' || letter == '\r'
}

/// The value as a JSON string without its quotes, since messages are often JSON.
fn as_json(value: &str) -> String {
    let quoted = serde_json::Value::from(value).to_string();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

/// Passwords in an address, `scheme://user:password@host`, and in settings, `user=me password=...`.
fn passwords(line: &str) -> Vec<&str> {
    let authorities = line.split("://").skip(1).map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let of_addresses = authorities.filter_map(|it| Some(it.rsplit_once('@')?.0.split_once(':')?.1));
    // A password may contain characters that end an address.
    let whole = line.split_once("://").and_then(|(_, rest)| Some(rest.rsplit_once('@')?.0.split_once(':')?.1));
    let settings = line.split("password=").skip(1);
    let of_settings = settings.map(|rest| match rest.split_at_checked(1) {
        Some((quote @ ("'" | "\""), quoted)) => quoted.split(quote).next().unwrap_or_default(),
        _ => rest.split(|letter: char| letter.is_whitespace() || "&;,".contains(letter)).next().unwrap_or_default(),
    });
    of_addresses.chain(whole).chain(of_settings).collect()
}

/// Removes secrets from text that arrives in pieces, for any split, and also with line breaks inside a secret.
pub struct Cutter {
    secrets: Secrets,
    /// Bytes that may be the beginning of a secret.
    held: Vec<u8>,
    /// The number of leading bytes of `held` that were returned already: the rest of the secret may still be held.
    said: usize,
}

enum Match {
    /// A whole secret of this length in bytes, line breaks included.
    Whole(usize),
    /// The text ends within a secret, after this many bytes of the secret.
    Begun(usize),
    None,
}

impl Cutter {
    /// Adds a piece and returns the safe part; held bytes follow with the next piece.
    pub fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        self.held.extend_from_slice(piece);
        self.take(false)
    }

    /// Ends the text and returns the rest.
    pub fn finish(&mut self) -> Vec<u8> {
        self.take(true)
    }

    fn take(&mut self, is_over: bool) -> Vec<u8> {
        let (held, before) = (core::mem::take(&mut self.held), core::mem::take(&mut self.said));
        let (mut said, mut at) = (Vec::with_capacity(held.len()), 0);
        while at < held.len() {
            let (rest, unsaid) = (&held[at..], at.max(before));
            let length = match self.secrets.begins(rest, is_over) {
                Match::Whole(length) => length,
                // The text was truncated within a secret.
                Match::Begun(_) if is_over => rest.len(),
                Match::Begun(matched) => {
                    let is_told = matched < SHORTEST && has_break(rest);
                    // A complete line is returned despite a few letters in common with a secret by chance.
                    said.extend_from_slice(if is_told { &held[unsaid..] } else { &[] });
                    self.said = if is_told { rest.len() } else { unsaid - at };
                    self.held = rest.to_vec();
                    break;
                }
                Match::None => {
                    said.extend((unsaid == at).then_some(held[at]));
                    at += 1;
                    continue;
                }
            };
            at += length;
            if unsaid < at {
                said.extend_from_slice(INSTEAD);
                said.extend(held[unsaid..at].iter().filter(|byte| has_break(core::slice::from_ref(*byte))));
            }
        }
        said
    }
}

fn has_break(text: &[u8]) -> bool {
    text.iter().any(|byte| is_break(char::from(*byte)))
}

impl Secrets {
    fn begins(&self, text: &[u8], is_over: bool) -> Match {
        for secret in &self.0 {
            match begins(text, secret) {
                Match::None => {}
                Match::Begun(matched) if is_over && matched < SHORTEST => {}
                found => return found,
            }
        }
        Match::None
    }
}

/// Compares the beginning of a text with a secret, ignoring line breaks in the text.
fn begins(text: &[u8], secret: &[u8]) -> Match {
    let mut matched = 0;
    for (at, byte) in text.iter().enumerate() {
        if matched == secret.len() {
            return Match::Whole(at);
        }
        // More line breaks are not realistic, and the held text must stay bounded.
        if at > 2 * secret.len() {
            return Match::None;
        }
        if *byte == secret[matched] {
            matched += 1;
        } else if matched == 0 || !is_break(char::from(*byte)) {
            return Match::None;
        }
    }
    if matched == secret.len() {
        return Match::Whole(text.len());
    }
    Match::Begun(matched)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(values: &[&str], text: &str) -> String {
        Secrets::of(values.iter().copied()).cut(text)
    }

    /// Cuts a text in pieces of this size.
    fn in_pieces(secrets: &Secrets, text: &str, size: usize) -> String {
        let mut cutter = secrets.cutter();
        let mut said: Vec<u8> = text.as_bytes().chunks(size).flat_map(|piece| cutter.push(piece)).collect();
        said.extend(cutter.finish());
        String::from_utf8(said).unwrap()
    }

    #[test]
    fn what_was_given_in_confidence_is_not_repeated_not_even_in_part() {
        assert_eq!(cut(&["word", "wordlong"], "no word of wordlong, wordy wor"), "no *** of ***, ***y wor");
        assert_eq!(cut(&[" größe "], "die größe, größer"), "die ***, ***r");
        assert_eq!(cut(&["aaaab"], "aaaaab aaaa"), "a*** ***", "cut off within it, perhaps");
        assert_eq!(cut(&["wordlong", "word"], "a word"), "a ***", "at the end as well");
        assert_eq!(cut(&[], "word"), "word");
    }

    #[test]
    fn of_a_few_letters_nothing_is_cut() {
        assert_eq!(cut(&["on", "15", "yes", ""], "on 15 yes"), "on 15 yes");
        assert!(Secrets::is_too_short("yes") && !Secrets::is_too_short("yess") && !Secrets::is_too_short(" \n"));
    }

    #[test]
    fn a_password_in_a_value_is_a_secret_too() {
        let address = "postgres://me:p:w@rd@db-0:5432/orders";
        assert_eq!(cut(&[address], &format!("{address} p:w@rd db-0 me")), "*** *** db-0 me");
        assert_eq!(cut(&["postgres://me:a/b?c@db-0"], "a/b?c"), "***");
        assert_eq!(cut(&["user=me password=horse host=db"], "me horse host=db"), "me *** host=db");
        assert_eq!(cut(&["user=me password='battery staple'"], "battery staple"), "***");
    }

    #[test]
    fn lines_of_a_secret_are_secret_and_lines_broken_in_it_do_not_hide_it() {
        let key = "-----BEGIN-----\nabcdefgh\nijklmnop\n-----END-----\n";
        assert_eq!(cut(&[key], "x abcdefgh, ijklmnop"), "x ***, ***");
        assert_eq!(cut(&[key], &format!("is {key}")), "is ***\n\n\n\n");
        assert_eq!(cut(&["battery staple"], "bat\ntery\r\n stap\nle"), "***\n\r\n\n");
        assert_eq!(cut(&["a \"quoted\"\nword"], r#"{"A":"a \"quoted\"\nword"}"#), r#"{"A":"***"}"#);
    }

    #[test]
    fn however_it_comes_in_pieces_it_is_cut_and_the_rest_is_whole() {
        let secrets = Secrets::of(["battery staple", "horse\nbattery", "größe"]);
        let text = "the horse\nbattery staple of größe and horse\nbat\nten größ\nbattery stable";
        let expected = secrets.cut(text);
        assert_eq!(expected, "the ***\n staple of *** and ***\nbat\nten größ\n*** stable");
        for size in 1..text.len() {
            assert_eq!(in_pieces(&secrets, text, size), expected, "{size}");
        }
    }

    /// A part held until the next line would be returned too late, or never.
    #[test]
    fn a_line_is_not_held_back_for_the_few_letters_at_its_end() {
        let mut cutter = Secrets::of(["battery"]).cutter();
        assert_eq!(cutter.push(b"progress: bat\n"), b"progress: bat\n");
        assert_eq!(cutter.push(b"tery, bat\n"), b"***, bat\n", "the rest of it is kept back");
        assert_eq!(cutter.push(b"progress: batt\n"), b"progress: ");
        assert_eq!(cutter.push(b"ery\n"), b"***\n\n");
        assert_eq!(cutter.push(&[b"batt".as_slice(), &[b'\n'; 100]].concat()).len(), 104, "not for ever");
    }
}
