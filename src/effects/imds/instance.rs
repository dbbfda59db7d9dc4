//! The platform's name of this VM.
//!
//! Refuses to take a host name for the VM's name; in scale sets the two names differ (`SPEC.md` 17.2).

use serde_json::Value;

use super::document;
use super::no_information::NoInformation;
use allclear_core::model::id::VmName;

pub(super) const PATH: &str = "/metadata/instance?api-version=2021-02-01";

/// The limit in bytes of a name.
const MAX_NAME: usize = 256;

/// The name of the VM; a blank name or a name over the limit counts as missing.
pub(super) fn name(status: u16, body: &[u8]) -> Result<VmName, NoInformation> {
    let fields = document::accepted(status, body)?;
    let name = fields.get("compute").and_then(|compute| compute.get("name")).and_then(Value::as_str);
    let name = name.filter(|name| !name.trim().is_empty() && name.len() <= MAX_NAME);
    name.map(VmName::new).ok_or(NoInformation::NoName)
}
