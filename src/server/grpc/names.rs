//! The names in operators' calls: of replicas, and of the person who asks.

use tonic::Status;
use tonic::metadata::MetadataMap;

use super::client::ASKED_BY;

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
