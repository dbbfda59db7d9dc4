//! The platform's names of this VM: the name in events, and the resource.
//!
//! Refuses to take a host name for the VM's name; in scale sets the two names differ (`SPEC.md` 17.2).

use serde_json::Value;

use super::document;
use super::no_information::NoInformation;
use allclear_core::model::id::VmName;

pub(super) const PATH: &str = "/metadata/instance?api-version=2021-02-01";

/// The limit in bytes of a name.
const MAX_NAME: usize = 256;
/// The limit in bytes of a resource id.
const MAX_ID: usize = 1024;

/// What the platform calls this VM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// The name in events.
    pub name: VmName,
    /// The id of the resource (`/subscriptions/…`), if the platform tells an id that a shell takes as one word.
    pub resource_id: Option<String>,
}

/// A blank name or a name over the limit counts as missing.
pub(super) fn read(status: u16, body: &[u8]) -> Result<Instance, NoInformation> {
    let fields = document::accepted(status, body)?;
    let text = |key| fields.get("compute").and_then(|compute| compute.get(key)).and_then(Value::as_str);
    let name = text("name").filter(|name| !name.trim().is_empty() && name.len() <= MAX_NAME);
    let is_plain = |id: &&str| id.starts_with('/') && id.len() <= MAX_ID && id.chars().all(is_of_a_word);
    let resource_id = text("resourceId").filter(is_plain).map(ToOwned::to_owned);
    name.map(|name| Instance { name: VmName::new(name), resource_id }).ok_or(NoInformation::NoName)
}

fn is_of_a_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "/_.-".contains(letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_id_is_told_if_a_shell_takes_it_as_one_word() {
        let told = |id: &str| {
            let body = format!(r#"{{"compute": {{"name": "db-0", "resourceId": "{id}"}}}}"#);
            let instance = read(200, body.as_bytes()).unwrap();
            assert_eq!(instance.name.as_str(), "db-0", "{id}");
            instance.resource_id
        };
        let good = "/subscriptions/0-1/resourceGroups/a_b.c/providers/Microsoft.Compute/virtualMachines/db-0";
        assert_eq!(told(good).as_deref(), Some(good));
        for bad in ["", "db-0", "/a b", "/a;b", "/$(a)", "/ä", &format!("/{}", "a".repeat(MAX_ID))] {
            assert_eq!(told(bad), None, "{bad}");
        }
    }
}
