//! The names in operators' calls, of replicas, members and the person who asks; and times.

use tonic::Status;
use tonic::metadata::MetadataMap;

use super::client::ASKED_BY;
use crate::replica::clock::from_rfc3339;
use crate::replica::cluster::is_address;
use allclear_core::model::command::bounded;
use allclear_core::model::id::{VmName, WorkloadName};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Member;

/// The maximal length of a VM's name.
const MAX_NAME_BYTES: usize = 255;
/// The maximal length of a person's name.
const MAX_PERSON_BYTES: usize = 64;

/// The name that a caller gives, if the name can be shown.
pub(super) fn given_name(metadata: &MetadataMap) -> Option<String> {
    let bytes = metadata.get_bin(ASKED_BY)?.to_bytes().ok()?;
    let name = std::str::from_utf8(&bytes).ok()?.trim();
    let fits = (1..=MAX_PERSON_BYTES).contains(&name.len()) && !name.chars().any(char::is_control);
    fits.then(|| name.to_owned())
}

/// Checks a replica's name by the rules of the configuration.
pub(super) fn name(given: String) -> Result<String, Status> {
    let is_name = (1..=MAX_NAME_BYTES).contains(&given.len()) && given.chars().all(|letter| letter.is_ascii_graphic());
    if is_name { Ok(given) } else { Err(Status::invalid_argument(format!("{given:?} is not the name of a replica"))) }
}

/// The known spelling of a replica's name: consensus compares names character by character, and people write the case of
/// their cloud (`SPEC.md` 2.4). A name that nobody knows stays.
pub(super) fn spelled<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let mut same: Vec<&str> = known.into_iter().filter(|known| VmName::new(known) == VmName::new(given)).collect();
    // The spelling itself first.
    same.sort_by_key(|known| *known != given);
    same.first().copied().unwrap_or(given).to_owned()
}

/// Checks the address of a member.
pub(super) fn address(given: &str) -> Result<(), Status> {
    let wrong = || Status::invalid_argument(format!("address: {:?} is not host:port", bounded(given)));
    is_address(given).then_some(()).ok_or_else(wrong)
}

/// Reads the time in this field.
pub(super) fn time(field: &str, given: &str) -> Result<Timestamp, Status> {
    from_rfc3339(given).ok_or_else(|| Status::invalid_argument(format!("{field}: {given:?} is not a time in RFC 3339")))
}

/// Reads VM/NAME.
pub(super) fn member(given: &str) -> Result<Member, Status> {
    let (vm, workload) = given.split_once('/').ok_or_else(|| {
        Status::invalid_argument(format!("workload: {:?} is not a member: write VM/NAME", bounded(given)))
    })?;
    Ok(Member { vm: VmName::new(vm), workload: WorkloadName(workload.into()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_known_by_any_case_and_with_an_underscore() {
        let known = ["db-1", "_Db-2", "db-10", "DB-1"];
        for (given, found) in [
            ("db-1", "db-1"),
            ("DB-1", "DB-1"),
            ("_dB-1", "db-1"),
            ("db-2", "_Db-2"),
            ("db-3", "db-3"),
            ("__db-1", "__db-1"),
        ] {
            assert_eq!(spelled(given, known), found);
        }
    }
}
