//! Who this VM is: its name as events list it, and where it stands.
//!
//! Refuses to take a host name for the VM's name; scale sets make them differ (`imds.md`, requests).

use serde_json::{Map, Value};

use super::document;
use super::no_information::NoInformation;
use crate::machine::id::VmName;

pub(super) const PATH: &str = "/metadata/instance?api-version=2021-02-01";

/// Bytes of a name.
const MAX_NAME: usize = 256;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    pub name: VmName,
    /// Absent in regions without zones.
    pub zone: Option<String>,
    pub fault_domain: Option<String>,
    /// Absent for a VM of its own.
    pub scale_set: Option<String>,
}

pub(super) fn read(status: u16, body: &[u8]) -> Result<Instance, NoInformation> {
    let fields = document::accepted(status, body)?;
    let Some(Value::Object(compute)) = fields.get("compute") else {
        return Err(NoInformation::NoName);
    };
    let name = text(compute, "name").ok_or(NoInformation::NoName)?;
    Ok(Instance {
        name: VmName::new(&name),
        zone: text(compute, "zone"),
        fault_domain: text(compute, "platformFaultDomain"),
        scale_set: text(compute, "vmScaleSetName"),
    })
}

/// Left out where it is blank, and where it is too long to be a name.
fn text(fields: &Map<String, Value>, key: &str) -> Option<String> {
    let text = fields.get(key)?.as_str()?;
    (!text.trim().is_empty() && text.len() <= MAX_NAME).then(|| text.to_owned())
}
