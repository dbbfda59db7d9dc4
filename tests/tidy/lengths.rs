//! How long files and functions may be.

use super::source::{Source, Token};

const LONGEST_FILE: usize = 500;
const LONG_FILE: usize = 300;
const LONGEST_FUNCTION: usize = 70;

pub(super) fn of_files(source: &Source) -> Vec<(usize, String)> {
    let lines = source.text.lines().count();
    if lines < LONGEST_FILE {
        return Vec::new();
    }
    vec![(lines, format!("{lines} lines: split it, no file reaches {LONGEST_FILE}"))]
}

pub(super) fn asks_for_a_split(source: &Source) -> bool {
    source.text.lines().count() > LONG_FILE
}

pub(super) fn of_functions(source: &Source) -> Vec<(usize, String)> {
    let tokens = source.tokens();
    let mut findings = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let [keyword, name] = pair else { continue };
        if keyword.text != "fn" || !name.is_word() {
            continue;
        }
        let lines = last_line(&tokens[at..]).map_or(0, |last| last + 1 - keyword.line);
        if lines > LONGEST_FUNCTION {
            let finding = format!("`{}` has {lines} lines: at most {LONGEST_FUNCTION}", name.text);
            findings.push((keyword.line, finding));
        }
    }
    findings
}

/// The line of the brace that closes a function's body; `None` for a declaration without a body.
fn last_line(tokens: &[Token]) -> Option<usize> {
    let (mut brackets, mut braces) = (0_usize, 0_usize);
    for token in tokens {
        match token.text.as_str() {
            "(" | "[" => brackets += 1,
            ")" | "]" => brackets = brackets.saturating_sub(1),
            ";" if brackets == 0 && braces == 0 => return None,
            "{" => braces += 1,
            "}" if braces == 1 => return Some(token.line),
            "}" => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[test]
fn a_file_that_is_too_long_is_found() {
    let lines = |count: usize| Source::new("src/a.rs", &"//! Head.\n".repeat(count));
    assert_eq!((of_files(&lines(499)).len(), of_files(&lines(500)).len()), (0, 1));
    assert_eq!((asks_for_a_split(&lines(300)), asks_for_a_split(&lines(301))), (false, true));
}

#[test]
fn a_function_that_is_too_long_is_found() {
    let function = |lines: usize| {
        let body = "    let a = [0; 3]; // }\n".repeat(lines - 2);
        Source::new("src/a.rs", &format!("trait T {{ fn declared(a: [u8; 2]); }}\nfn long(a: [u8; 2]) {{\n{body}}}\n"))
    };
    assert_eq!(of_functions(&function(70)), []);
    let found = of_functions(&function(71));
    assert_eq!(found, [(2, "`long` has 71 lines: at most 70".to_owned())]);
}
