//! JSON values as YAML: blocks, with every text in quotes, so that no text is read as a number, a time or a word.

use std::fmt::Write as _;

use serde_json::Value;

use crate::replica::sanitize::is_hidden;

/// One YAML document, with the keys in their order of letters. Invisible characters are written as their numbers.
pub fn harmless_yaml(value: &Value) -> String {
    let mut document = String::from("---\n");
    write_block(&mut document, value, 0, true);
    document.push('\n');
    document
}

/// Writes a value at a depth of blanks; `continues` the line that has been begun.
fn write_block(out: &mut String, value: &Value, depth: usize, mut continues: bool) {
    let mut begin_line = |out: &mut String| {
        if !std::mem::take(&mut continues) {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', depth));
        }
    };
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            for (key, inner) in fields {
                begin_line(out);
                write_key(out, key);
                out.push(':');
                if is_scalar(inner) {
                    out.push(' ');
                }
                write_block(out, inner, depth + 2, is_scalar(inner));
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                begin_line(out);
                out.push_str("- ");
                write_block(out, item, depth + 2, true);
            }
        }
        Value::String(text) => write_text(out, text),
        // Numbers, words, `{}` and `[]` are the same in both languages.
        other => {
            let _ = write!(out, "{other}");
        }
    }
}

fn is_scalar(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

fn write_key(out: &mut String, key: &str) {
    // Readers of YAML 1.1 take such words for true or false.
    const WORDS: [&str; 8] = ["y", "n", "yes", "no", "on", "off", "true", "false"];
    let is_plain = |key: &str| {
        key.starts_with(|first: char| first.is_ascii_lowercase())
            && key.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
    };
    if is_plain(key) && !WORDS.contains(&key) && key != "null" { out.push_str(key) } else { write_text(out, key) }
}

fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            '\n' => out.push_str("\\n"),
            hidden if is_hidden(hidden) => {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\U{:08x}", u32::from(hidden));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn blocks_are_indented_and_texts_are_quoted() {
        let value = json!({
            "events": [{ "id": "a", "hooks": [{ "on": "db-0" }, { "on": "no" }], "tags": [] }, 5, [1, null], "x"],
            "leader": null,
            "on": true,
            "db-0": {},
            "text": "1\n\"2\" \\ \u{202e}\u{e0001}ü",
        });
        let expected = r#"---
"db-0": {}
events:
  - hooks:
      - "on": "db-0"
      - "on": "no"
    id: "a"
    tags: []
  - 5
  - - 1
    - null
  - "x"
leader: null
"on": true
text: "1\n\"2\" \\ \U0000202e\U000e0001ü"
"#;
        assert_eq!(harmless_yaml(&value), expected);
        assert_eq!(harmless_yaml(&json!([])), "---\n[]\n");
        assert_eq!(harmless_yaml(&json!("a")), "---\n\"a\"\n");
    }
}
