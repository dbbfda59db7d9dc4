//! `[tracing]`: the collector of traces. Without the table nothing is exported.

use super::reader::TomlTable;
use super::source::Value;
use super::{headers, scalar};
use crate::export::traces::Collector;

/// Reads the collector; `None` if a required key is missing or wrong.
pub(super) fn read(table: &mut TomlTable<'_>) -> Option<Collector> {
    let endpoint = table.required("endpoint", endpoint, "the collector's address, as \"http://127.0.0.1:4318\"");
    let headers = headers::read(table);
    let ca = table.optional("ca", scalar::path);
    let collector = Collector { endpoint: endpoint?.value, headers: headers?, ca };
    if let Err(why) = collector.url() {
        table.mistake(&table.place_of("endpoint"), format!("`tracing.endpoint` {why}"));
    }
    Some(collector)
}

fn endpoint(value: &Value) -> Result<String, String> {
    let (text, url) = (scalar::name(value)?, scalar::url(value)?);
    if url.query().is_some() {
        return Err("contains a ?: write the address without a query, as \"http://127.0.0.1:4318\"".to_owned());
    }
    let base = text.trim_end_matches('/');
    if base.ends_with("/v1/traces") {
        return Err(format!("is {text:?}: remove /v1/traces, because allclear adds this path"));
    }
    Ok(base.to_owned())
}
