//! `[control_plane]`: approvals through Azure Resource Manager, when no metadata endpoint works. Without the table, never.

use super::reader::TomlTable;
use super::scalar;
use super::source::Value;
use crate::control_plane::ControlPlaneOptions;
use crate::http_client::is_confidential;

/// The control plane of the public cloud.
const ENDPOINT: &str = "https://management.azure.com";

/// Reads the table; `None` unless approvals through the control plane are switched on.
pub(super) fn read(table: &mut TomlTable<'_>) -> Option<ControlPlaneOptions> {
    let acknowledges = table.or("acknowledge", scalar::boolean, false);
    let endpoint = table.or("endpoint", endpoint, ENDPOINT.to_owned());
    let client_id = table.optional("client_id", scalar::name);
    acknowledges.then_some(ControlPlaneOptions { endpoint, client_id })
}

fn endpoint(value: &Value) -> Result<String, String> {
    let (text, url) = (scalar::name(value)?, scalar::url(value)?);
    if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
        return Err(format!("has a path: write the address only, as {ENDPOINT:?}"));
    }
    if !is_confidential(&url) {
        return Err("would receive the token unencrypted: use https://".to_owned());
    }
    Ok(text.trim_end_matches('/').to_owned())
}
