//! A file as input of the rules: its code without comments, string literals and inline tests, as tokens and as paths.
//! Not a parser of Rust: the module only distinguishes code from comments and literals.

use std::path::Path;

pub(super) struct Source {
    /// Relative to the root of the repository, with `/`.
    pub(super) path: String,
    pub(super) text: String,
}

/// The crates of a replica, whose modules have rules. `server` exports the modules of the other two under their names.
const OF_REPLICA: [&str; 3] = ["src/cluster/", "src/effects/", "src/server/"];
/// Crates inside the program's folder.
const CRATES: [&str; 9] = [
    "src/client/",
    "src/cluster/",
    "src/core/",
    "src/effects/",
    "src/files/",
    "src/lab/",
    "src/server/",
    "src/sim/",
    "src/wire/",
];

/// A word, `::`, or one other character.
pub(super) struct Token {
    pub(super) text: String,
    /// From 1.
    pub(super) line: usize,
}

impl Token {
    pub(super) fn is_word(&self) -> bool {
        self.text.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
    }
}

impl Source {
    pub(super) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    /// The crate of the file, as the folder at the beginning of the path.
    fn package(&self) -> &'static str {
        CRATES.iter().find(|folder| self.path.starts_with(**folder)).unwrap_or(&"src/")
    }

    fn inside(&self) -> &str {
        self.path.strip_prefix(self.package()).unwrap_or(&self.path)
    }

    /// The module of `<module>/…` or `<module>.rs` in a crate of the replica; `None` in crates without modules.
    pub(super) fn module(&self) -> Option<&str> {
        OF_REPLICA.iter().find_map(|package| self.module_in(package))
    }

    /// As `module`, of the crate in the folder `package`.
    pub(super) fn module_in(&self, package: &str) -> Option<&str> {
        if self.package() != package {
            return None;
        }
        let inside = self.inside();
        Some(inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs"))
    }

    /// Module depth below the crate's root.
    pub(super) fn depth(&self) -> usize {
        let inside = self.inside();
        let steps = inside.split('/').count();
        if inside.ends_with("mod.rs") { steps - 1 } else { steps }
    }

    /// True for a whole file of inline tests.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs") || self.path.contains("/tests/")
    }

    /// The tokens of the code, without the tests at the end.
    pub(super) fn tokens(&self) -> Vec<Token> {
        let code = without_words(&self.text);
        let mut tokens: Vec<Token> = Vec::new();
        for (at, line) in code.lines().enumerate() {
            let mut rest = line.trim_start();
            while let Some(first) = rest.chars().next() {
                let word = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
                let length = if word > 0 {
                    word
                } else if rest.starts_with("::") {
                    2
                } else {
                    first.len_utf8()
                };
                tokens.push(Token { text: rest[..length].to_owned(), line: at + 1 });
                rest = rest[length..].trim_start();
            }
        }
        if self.path.starts_with("src/") {
            let tests = tokens.windows(9).position(|tokens| {
                let texts: Vec<_> = tokens.iter().map(|token| token.text.as_str()).collect();
                texts[..8] == ["#", "[", "cfg", "(", "test", ")", "]", "mod"]
            });
            tokens.truncate(tests.unwrap_or(tokens.len()));
        }
        tokens
    }

    /// Every path of the code with its line: `use a::{b, c::d}` is `a::b` and `a::c::d`.
    pub(super) fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let tokens = self.tokens();
        let mut paths = Vec::new();
        let mut at = 0;
        while at < tokens.len() {
            at = if tokens[at].is_word() { path_at(&tokens, at, &[], &mut paths) } else { at + 1 };
        }
        paths
    }
}

/// Reads a path from its first word on; returns the end of the path.
fn path_at(tokens: &[Token], start: usize, prefix: &[String], paths: &mut Vec<(usize, Vec<String>)>) -> usize {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token: &Token| token.text == text);
    let mut path = prefix.to_vec();
    let mut at = start;
    path.push(tokens[at].text.clone());
    at += 1;
    // `use ::a` is no path that begins with `use`
    let is_keyword = ["use", "as", "in", "return"].contains(&tokens[start].text.as_str());
    while !is_keyword && is(at, "::") && tokens.get(at + 1).is_some_and(Token::is_word) {
        path.push(tokens[at + 1].text.clone());
        at += 2;
    }
    if !(is(at, "::") && is(at + 1, "{")) {
        paths.push((tokens[start].line, path));
        return at;
    }
    at += 2;
    while at < tokens.len() && !is(at, "}") {
        at = if tokens[at].is_word() { path_at(tokens, at, &path, paths) } else { at + 1 };
    }
    at + 1
}

/// The text with comments and the contents of literals blanked, with unchanged line numbers.
fn without_words(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let skipped = comment(rest).or_else(|| raw_text(rest, &code)).or_else(|| quoted(rest));
        let length = skipped.unwrap_or(first.len_utf8());
        let (taken, after) = rest.split_at(length);
        if skipped.is_some() {
            code.extend(taken.chars().map(|letter| if letter == '\n' { '\n' } else { ' ' }));
        } else {
            code.push_str(taken);
        }
        rest = after;
    }
    code
}

fn comment(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        return Some(text.find('\n').unwrap_or(text.len()));
    }
    text.strip_prefix("/*").map(|inside| inside.find("*/").map_or(text.len(), |end| end + 4))
}

/// `r"…"`, `r#"…"#`; the letter before the literal must not be part of a word.
fn raw_text(text: &str, before: &str) -> Option<usize> {
    let hashes = text.strip_prefix('r')?;
    let inside = hashes.trim_start_matches('#');
    let count = hashes.len() - inside.len();
    let inside = inside.strip_prefix('"')?;
    let in_a_word =
        before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') && !before.ends_with('b');
    let end = format!("\"{}", "#".repeat(count));
    (!in_a_word).then(|| inside.find(&end).map_or(text.len(), |at| 1 + count + 1 + at + end.len()))
}

/// `"…"` and `'x'`, but no lifetime.
fn quoted(text: &str) -> Option<usize> {
    let quote = text.chars().next().filter(|first| ['"', '\''].contains(first))?;
    let mut letters = text.char_indices().skip(1);
    if quote == '\'' {
        let letters: Vec<char> = text.chars().take(3).collect();
        if letters.get(1) != Some(&'\\') && letters.get(2) != Some(&'\'') {
            return None;
        }
    }
    while let Some((at, letter)) = letters.next() {
        if letter == '\\' {
            letters.next();
        } else if letter == quote {
            return Some(at + 1);
        }
    }
    Some(text.len())
}

/// Every file with one of the endings in these folders.
pub(super) fn below(root: &Path, folders: &[&str], endings: &[&str]) -> Vec<Source> {
    let mut paths = Vec::new();
    for folder in folders {
        collect(&root.join(folder), &mut paths);
    }
    let wanted = |path: &String| endings.iter().any(|ending| path.ends_with(&format!(".{ending}")));
    let relative = paths.iter().map(|path| path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/"));
    let mut relative: Vec<_> = relative.filter(wanted).collect();
    relative.sort();
    relative.into_iter().map(|path| Source { text: std::fs::read_to_string(root.join(&path)).unwrap(), path }).collect()
}

/// Every text for readers, except the output of the package client.
pub(super) fn every_text(root: &Path) -> Vec<Source> {
    const FOLDERS: &[&str] = &["src", "tests", "proto", "deploy", ".ci", ".justfile", "README.md", "Cargo.toml"];
    let mut paths = Vec::new();
    for folder in FOLDERS {
        collect(&root.join(folder), &mut paths);
    }
    let text = |path: &std::path::PathBuf| {
        let text = std::fs::read(path).ok().and_then(|bytes| String::from_utf8(bytes).ok())?;
        Some(Source { path: path.strip_prefix(root).unwrap().to_string_lossy().into_owned(), text })
    };
    paths.iter().filter_map(text).collect()
}

/// Every file below the path, without the generated code.
fn collect(path: &Path, paths: &mut Vec<std::path::PathBuf>) {
    if path.is_file() {
        paths.push(path.to_owned());
    } else if path.is_dir() && !path.ends_with("wire/generated") {
        for entry in std::fs::read_dir(path).unwrap() {
            collect(&entry.unwrap().path(), paths);
        }
    }
}

#[test]
fn words_are_told_from_code() {
    let text = "a /* x\n y */ b // c\n\"d\\\"e\" r#\"f\"g\"# 'h' '\\'' &'i j b\"k\" for\"l\"";
    let source = Source::new("src/a.rs", text);
    let tokens: Vec<_> = source.tokens().into_iter().map(|token| (token.line, token.text)).collect();
    let expected = [(1, "a"), (2, "b"), (3, "&"), (3, "'"), (3, "i"), (3, "j"), (3, "b"), (3, "for")];
    assert_eq!(tokens, expected.map(|(line, text)| (line, text.to_owned())));
}

#[test]
fn grouped_imports_are_taken_apart() {
    let source = Source::new("src/a.rs", "use a::{b::{self, c}, d as e};\nf::<G>(h::i);");
    let paths: Vec<_> = source.paths().into_iter().map(|(_, path)| path.join("::")).collect();
    assert_eq!(
        paths,
        ["use", "a::b::self", "a::b::c", "a::d", "a::as", "a::e", "f", "G", "h::i"].map(str::to_owned)[..].to_vec()
    );
}

#[test]
fn depth_counts_modules() {
    let depth = |path: &str| Source::new(path, "").depth();
    assert_eq!(
        (depth("src/lib.rs"), depth("src/a/mod.rs"), depth("src/a/b.rs"), depth("src/a/b/mod.rs")),
        (1, 1, 2, 2)
    );
}
