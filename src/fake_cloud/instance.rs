//! What a VM may ask about itself: `compute.name` is the name that events use, the host name is something else.

use serde_json::{Value, json};

/// Any version of the general metadata service; it has many, and they do not matter here.
pub(super) fn is_version(word: &str) -> bool {
    let bytes = word.as_bytes();
    let shaped = bytes.len() == 10
        && bytes
            .iter()
            .enumerate()
            .all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() });
    shaped && ("2017-04-02"..="2025-04-07").contains(&word)
}

pub(super) fn written(vm: &str, zone: Option<&str>, position: usize) -> Value {
    let scale_set = instance_of_scale_set(vm).map_or("", |(set, _)| set);
    json!({ "compute": {
        "name": vm,
        "osProfile": { "computerName": host_name(vm) },
        "location": "loopback",
        "zone": zone.unwrap_or(""),
        "platformFaultDomain": (position % 3).to_string(),
        "platformUpdateDomain": (position % 5).to_string(),
        "vmScaleSetName": scale_set,
    } })
}

/// Uniform scale sets: the resource is `web_13`, the host `web00000D`.
fn host_name(vm: &str) -> String {
    let Some((set, mut instance)) = instance_of_scale_set(vm) else { return vm.to_owned() };
    let mut digits = [b'0'; 6];
    for digit in digits.iter_mut().rev() {
        let rest = u8::try_from(instance % 36).unwrap_or(0);
        *digit = if rest < 10 { b'0' + rest } else { b'A' + rest - 10 };
        instance /= 36;
    }
    format!("{set}{}", String::from_utf8_lossy(&digits))
}

fn instance_of_scale_set(vm: &str) -> Option<(&str, u32)> {
    let (set, instance) = vm.rsplit_once('_')?;
    Some((set, instance.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_names_of_scale_sets_count_in_base_36() {
        assert_eq!(host_name("web_13"), "web00000D");
        assert_eq!(host_name("web_36"), "web000010");
        assert_eq!(host_name("db-0"), "db-0");
    }

    #[test]
    fn only_dates_are_versions() {
        assert!(is_version("2021-02-01"));
        assert!(!is_version("latest"));
        assert!(!is_version("2031-02-01"));
        assert!(!is_version("2021/02/01"));
    }
}
