//! The instance metadata of a VM: `compute.name` is the name in events.

use serde_json::{Value, json};

pub(super) fn written(vm: &str, position: usize) -> Value {
    let scale_set = vm.rsplit_once('_').filter(|(_, instance)| instance.parse::<u32>().is_ok());
    json!({ "compute": {
        "name": vm,
        "resourceId": format!(
            "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/loopback/providers/Microsoft.Compute/\
             virtualMachines/{vm}"
        ),
        "location": "loopback",
        "zone": "",
        "platformFaultDomain": (position % 3).to_string(),
        "platformUpdateDomain": (position % 5).to_string(),
        "vmScaleSetName": scale_set.map_or("", |(set, _)| set),
    } })
}
