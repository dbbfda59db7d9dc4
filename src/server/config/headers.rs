//! `headers`, `headers_shown` and `header_files` of a receiver or collector.

use super::reader::TomlTable;
use super::source::Value;
use super::{scalar, secret};
use crate::export::headers::{Headers, header_name, header_value};
use crate::http_client::header::HeaderName;

/// Headers with secret values.
const SECRET: &[&str] = &["authorization", "proxy-authorization", "cookie", "aeg-sas-key", "aeg-sas-token"];

/// Reads the headers; `None` if a header is wrong.
pub(super) fn read(table: &mut TomlTable<'_>) -> Option<Headers> {
    let written = entries(table, "headers", &|name, value| {
        let text = scalar::text(value).map_err(|_| "is not a text: write the value in quotes")?;
        if SECRET.contains(&name) {
            return Err("is a secret: write the value into a file and name the file in `header_files`".to_owned());
        }
        header_value(&text)
    });
    let shown = table.show_alone("headers", "headers_shown", str::eq_ignore_ascii_case);
    let credentials = table.credentials();
    let secret = entries(table, "header_files", &|_, value| secret::file(value, credentials).map(|file| file.path));
    let mut headers = Headers { written: written?, secret: secret? };
    for (name, value) in &mut headers.written {
        value.set_sensitive(!shown.iter().any(|shown| name.as_str().eq_ignore_ascii_case(shown)));
    }
    if let Some((both, _)) = headers.written.iter().find(|(it, _)| headers.secret.iter().any(|(file, _)| file == it)) {
        let path = table.path();
        table.mistake(
            &table.place_of("headers"),
            format!("`{path}.headers` and `{path}.header_files` both have {both}: remove one"),
        );
    }
    Some(headers)
}

fn entries<T>(
    table: &mut TomlTable<'_>,
    key: &'static str,
    parse: &dyn Fn(&str, &Value) -> Result<T, String>,
) -> Option<Vec<(HeaderName, T)>> {
    let entries = table.entries(key, |value| Ok::<_, String>(value.clone())).unwrap_or_default();
    let path = format!("{}.{key}", table.path());
    let mut headers = Vec::new();
    let mut is_right = true;
    for (name, value) in entries {
        let read = header_name(&name.value).map_err(|why| format!("a key of {path} {why}"));
        let read = read.and_then(|header| {
            let parsed = value.map(|value| parse(header.as_str(), &value)).transpose();
            Ok((header, parsed.map_err(|why| format!("`{path}.{}` {why}", name.value))?))
        });
        match read {
            Ok((header, Some(_))) if headers.iter().any(|(known, _)| *known == header) => {
                table.mistake(
                    &name.place,
                    format!("{path} has the key {header} twice: upper and lower case count as equal"),
                );
                is_right = false;
            }
            Ok((header, Some(value))) => headers.push((header, value)),
            Ok((_, None)) => is_right = false,
            Err(message) => {
                table.mistake(&name.place, message);
                is_right = false;
            }
        }
    }
    is_right.then_some(headers)
}
