//! `[tracing]`: where a trace of every event is exported to. Left out: none is.

use super::mistake::Place;
use super::reader::Table;
use super::scalar;
use super::written::Value;
use crate::outlet::client::{address, is_loopback};
use crate::outlet::headers::{self, Headers};
use crate::outlet::traces::Collector;

/// Nothing where it lacks what it needs.
pub(super) fn read(table: &mut Table<'_>) -> Option<Collector> {
    let endpoint = table.required("endpoint", endpoint, "the collector's address, as \"http://127.0.0.1:4318\"");
    let written = entries(table, "headers", header);
    let files = entries(table, "header_files", scalar::path);
    let ca = table.optional("ca", scalar::path);
    let endpoint = endpoint?.value;
    let is_open = endpoint.starts_with("http://") && address(&endpoint).is_ok_and(|url| !is_loopback(&url));
    if is_open && !files.is_empty() {
        let message =
            "`tracing.header_files` would be read on the network: `tracing.endpoint` has to begin with https://";
        table.mistake(&table.place_of("header_files"), message);
    }
    Some(Collector { endpoint, headers: Headers { written, files }, ca })
}

/// In the order of the file; each name once, without regard to case.
fn entries<T>(
    table: &mut Table<'_>,
    key: &'static str,
    parse: impl Fn(&Value) -> Result<T, String>,
) -> Vec<(String, T)> {
    let mut read = Vec::new();
    for (name, value) in table.entries(key, parse).unwrap_or_default() {
        let is_known = read.iter().any(|(known, _): &(String, T)| known.eq_ignore_ascii_case(&name.value));
        match headers::name(&name.value) {
            Ok(_) if is_known => wrong(table, &name.place, key, &name.value, "stands here twice"),
            Ok(_) => read.extend(value.map(|value| (name.value, value))),
            Err(why) => wrong(table, &name.place, key, &name.value, &why),
        }
    }
    read
}

fn wrong(table: &Table<'_>, place: &Place, key: &str, name: &str, why: &str) {
    table.mistake(place, format!("`{}.{key}.{name}` {why}", table.path()));
}

fn header(value: &Value) -> Result<String, String> {
    let text = scalar::text(value)?;
    headers::value(&text)?;
    Ok(text)
}

fn endpoint(value: &Value) -> Result<String, String> {
    let text = scalar::name(value)?;
    let url = address(&text).map_err(|why| format!("is {text:?}, which {why}"))?;
    if url.query().is_some() {
        return Err(format!("is {text:?}: write it without a ?, as \"http://127.0.0.1:4318\""));
    }
    let base = text.trim_end_matches('/');
    if base.ends_with("/v1/traces") {
        return Err(format!("is {text:?}: leave /v1/traces out, it is added"));
    }
    Ok(base.to_owned())
}
