//! Parsers of single values. Each error names the mistake and the repair. The sentence follows the name of the key
//! ("`policy.margin` …"); the reader adds the place.

use core::net::SocketAddr;
use core::num::NonZeroU16;
use core::ops::RangeInclusive;
use core::time::Duration;
use std::path::PathBuf;

use super::source::{KeyValue, TomlShape, Value};
use crate::http_client::{Url, parse_external};
use allclear_core::model::hook_id::is_hook_name;

/// The known word closest to a misspelled word.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let close = |known: &str| strsim::jaro_winkler(&word, &known.to_ascii_lowercase());
    known.iter().copied().filter(|known| close(known) > 0.8).max_by(|a, b| close(a).total_cmp(&close(b)))
}

pub(super) fn table(value: &Value) -> Result<Vec<KeyValue>, String> {
    match &value.shape {
        TomlShape::Table(entries) => Ok(entries.clone()),
        other => Err(format!("is {other}, not a table")),
    }
}

pub(super) fn list(value: &Value) -> Result<Vec<Value>, String> {
    match &value.shape {
        TomlShape::List(values) => Ok(values.clone()),
        other => Err(format!("is {other}, not a list: write the value in [ ]")),
    }
}

/// Parses any text, also an empty text.
pub(super) fn text(value: &Value) -> Result<String, String> {
    match (&value.shape, &value.unquoted) {
        (TomlShape::Text(text), _)
        | (TomlShape::Integer(_) | TomlShape::Boolean(_) | TomlShape::Other(_), Some(text)) => Ok(text.clone()),
        (other, _) => Err(format!("is {other}, not a text: write the value in quotes")),
    }
}

/// Parses a non-empty text of one line.
pub(super) fn name(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        return Err(format!("is {text:?}: remove blanks before and after the name, and line breaks"));
    }
    Ok(text)
}

/// Parses a user-defined key. A key with `=` may contain its value too, by mistake.
pub(super) fn key(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    if text.trim().is_empty() {
        return Err("is empty".to_owned());
    }
    if text.trim() != text || text.chars().any(char::is_control) {
        let shown = shown_key(&text);
        return Err(format!("is {shown:?}: remove blanks before and after the name, and line breaks"));
    }
    Ok(text)
}

/// The printable part of a key, up to `=`.
pub(super) fn shown_key(key: &str) -> &str {
    key.split_inclusive('=').next().unwrap_or_default()
}

/// Parses a hook's name, which operators write after a `#`, in the place of the hook's number.
pub(super) fn hook_name(value: &Value) -> Result<String, String> {
    let text = text(value)?;
    if is_hook_name(&text) {
        return Ok(text);
    }
    Err(format!("is {text:?}: the name of a hook has 1 to 64 letters, digits, - or _, and is not a number"))
}

/// Parses an absolute path: relative paths and `~` would depend on the service's folder and user.
pub(super) fn path(value: &Value) -> Result<PathBuf, String> {
    let text = name(value)?;
    if !text.starts_with('/') {
        return Err(format!("is {text:?}: write the absolute path, beginning with /"));
    }
    Ok(PathBuf::from(text))
}

/// Parses a Unix socket's path: the kernel keeps 108 bytes for the path, the last a zero.
pub(super) fn socket(value: &Value) -> Result<PathBuf, String> {
    let path = path(value)?;
    let length = path.as_os_str().len();
    if length > 107 {
        return Err(format!("is {length} bytes long: the path of a Unix socket has at most 107 bytes"));
    }
    Ok(path)
}

pub(super) fn boolean(value: &Value) -> Result<bool, String> {
    match &value.shape {
        TomlShape::Boolean(boolean) => Ok(*boolean),
        other => Err(format!("is {other}: write true or false")),
    }
}

/// Parses a whole number within bounds.
pub(super) fn number(bounds: RangeInclusive<u32>) -> impl Fn(&Value) -> Result<u32, String> {
    move |value| {
        let TomlShape::Integer(integer) = value.shape else {
            return Err(format!("is {}, not a whole number", value.shape));
        };
        u32::try_from(integer)
            .ok()
            .filter(|number| bounds.contains(number))
            .ok_or_else(|| format!("is {integer}, which is out of range: from {} to {}", bounds.start(), bounds.end()))
    }
}

/// Parses a duration with its unit, within bounds.
pub(super) fn duration(bounds: RangeInclusive<Duration>) -> impl Fn(&Value) -> Result<Duration, String> {
    move |value| {
        const ADVICE: &str = "write a number with its unit in quotes, as \"500ms\", \"10s\", \"2m\" or \"1h\"";
        let Ok(text) = text(value) else { return Err(format!("is {}, not a duration: {ADVICE}", value.shape)) };
        let span = humantime::parse_duration(&text).map_err(|_| format!("is {text:?}, not a duration: {ADVICE}"))?;
        if bounds.contains(&span) {
            return Ok(span);
        }
        let shown = humantime::format_duration;
        Err(format!("is {text:?}, which is out of range: from {} to {}", shown(*bounds.start()), shown(*bounds.end())))
    }
}

/// Parses a word of a fixed set to its value.
pub(super) fn word<T>(
    known: &'static [&'static str],
    parse: impl Fn(&str) -> Option<T>,
) -> impl Fn(&Value) -> Result<T, String> {
    move |value| {
        let Ok(text) = text(value) else { return Err(format!("is {}, not a word: {}", value.shape, one_of(known))) };
        parse(&text).ok_or_else(|| match nearest(&text, known) {
            Some(near) => format!("is {text:?}: did you mean {near:?}? Write {}", one_of(known)),
            None => format!("is {text:?}: write {}", one_of(known)),
        })
    }
}

fn one_of(known: &[&str]) -> String {
    known.iter().map(|word| format!("{word:?}")).collect::<Vec<_>>().join(" or ")
}

/// Parses `host:port`; the host may be a DNS name or an address, in brackets if IPv6.
pub(super) fn address(value: &Value) -> Result<String, String> {
    let text = name(value)?;
    let advice = || format!("is {text:?}, not an address: write host:port, as \"10.0.0.4:7420\" or \"[::1]:7420\"");
    let (host, port) = text.rsplit_once(':').ok_or_else(advice)?;
    port.parse::<NonZeroU16>().map_err(|_| advice())?;
    if text.parse::<SocketAddr>().is_ok() || is_host_name(host) { Ok(text) } else { Err(advice()) }
}

fn is_host_name(host: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty() && label.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter))
    };
    // four numbers without a valid address are a slip, not a DNS name
    host.split('.').all(is_label) && host.contains(|letter: char| letter.is_ascii_alphabetic())
}

/// Parses a DNS name without a port; addresses need no entry.
pub(super) fn host_name(value: &Value) -> Result<String, String> {
    let text = name(value)?;
    let advice = "write only the DNS name, as \"db-0.example.com\"; addresses need no name";
    if is_host_name(&text) { Ok(text) } else { Err(format!("is {text:?}, not a host name: {advice}")) }
}

/// Parses an address to listen on: numbers only, because a name may resolve to another machine tomorrow.
pub(super) fn listen(value: &Value) -> Result<SocketAddr, String> {
    let text = name(value)?;
    text.parse().map_err(|_| {
        format!("is {text:?}, not an address to listen on: write IP:port, as \"127.0.0.1:7420\" or \"0.0.0.0:7420\"")
    })
}

/// Parses the URL of a server outside of the platform.
pub(super) fn url(value: &Value) -> Result<Url, String> {
    let text = name(value)?;
    // Passwords and tokens are not repeated.
    let is_plain = !text.contains(['@', '?', '#']);
    parse_external(&text).map_err(|why| if is_plain { format!("is {text:?}: the address {why}") } else { why })
}

/// Parses the URL of a hook or a role, and keeps the written form, which identifies the hook.
pub(super) fn hook_url(value: &Value) -> Result<String, String> {
    url(value).and_then(|_| name(value))
}

/// Parses as `command`, for keys that accept an address as well.
pub(super) fn command_or_advice(value: &Value) -> Result<Vec<String>, String> {
    match &value.shape {
        TomlShape::Text(text) if text.starts_with("http") => Err("is an address: write { http = \"…\" }".to_owned()),
        _ => command(value),
    }
}

/// Parses a program and its arguments, run without a shell. Paths must not depend on the service's working folder.
pub(super) fn command(value: &Value) -> Result<Vec<String>, String> {
    let TomlShape::List(parts) = &value.shape else {
        return Err(format!("is {}: write a list, as [\"/usr/bin/program\", \"argument\"]", value.shape));
    };
    let parts = parts
        .iter()
        .map(text)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|wrong| format!("has an element that {wrong}"))?;
    let program = parts.first().filter(|program| !program.is_empty()).ok_or("is empty: name a program")?;
    if program.contains('/') && !program.starts_with('/') {
        return Err(format!(
            "begins with {program:?}: write the program's absolute path, beginning with /, or its name alone"
        ));
    }
    if parts.iter().any(|part| part.contains('\0')) {
        return Err("has an element with a zero byte".to_owned());
    }
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::super::error::Location;
    use super::*;

    fn written(text: &str) -> Value {
        Value { place: Location::Variable(String::new()), shape: TomlShape::Text(text.to_owned()), unquoted: None }
    }

    #[test]
    fn addresses_are_dns_names_or_ip_addresses_with_a_port() {
        for good in ["10.0.0.4:7420", "[::1]:1", "db-0.internal:7420", "localhost:1"] {
            assert_eq!(address(&written(good)).as_deref(), Ok(good));
        }
        for bad in
            ["10.0.0.4", "10.0.0.400:7420", "::1:7420:x", "db_0:70000", "a b:1", ":1", "a:0", "http://a:1", "a..b:1"]
        {
            address(&written(bad)).expect_err(bad);
        }
    }

    #[test]
    fn a_hook_is_never_at_an_address_of_the_platform() {
        for good in ["http://127.0.0.1:8008/switchover", "http://[::1]:8008/", "https://db-0.internal"] {
            assert_eq!(hook_url(&written(good)).as_deref(), Ok(good));
        }
        for bad in ["http://169.254.169.254:80/a", "https://0xa9fea9fe/", "ftp://a/", "127.0.0.1:80"] {
            hook_url(&written(bad)).expect_err(bad);
        }
    }

    #[test]
    fn only_whole_paths_are_paths() {
        for good in ["/var/lib/allclear", "/", "/srv/ä b/../c"] {
            assert_eq!(path(&written(good)), Ok(PathBuf::from(good)));
        }
        for bad in ["", "data", "./data", "../data", "~/data", "~postgres/data", "/data\n", " /data", "\u{1b}/data"] {
            path(&written(bad)).expect_err(bad);
            socket(&written(bad)).expect_err(bad);
        }
    }

    #[test]
    fn the_nearest_word_is_named_only_when_it_is_near() {
        assert_eq!(nearest("pol_interval", &["poll_interval", "endpoint"]), Some("poll_interval"));
        assert_eq!(nearest("colour", &["poll_interval", "endpoint"]), None);
    }
}
