//! Raises the cluster version.

use crate::apply::access::Applied;
use crate::model::command::Rejection;
use crate::model::id::VmName;
use crate::model::state::State;

pub(crate) fn raise_version(state: &mut State, by: &VmName, version: u64) -> Applied {
    if state.leadership.as_ref().is_some_and(|leadership| leadership.by != *by) {
        return Err(Rejection::NotYours);
    }
    if version <= state.version {
        return Err(Rejection::Repeated);
    }
    state.version = version;
    Ok(())
}
