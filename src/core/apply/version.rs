//! Raises the cluster version.

use crate::apply::access::Applied;
use crate::model::command::Ignored;
use crate::model::id::VmName;
use crate::model::state::State;

pub(crate) fn raise(state: &mut State, by: &VmName, version: u64) -> Applied {
    if state.leadership.as_ref().is_some_and(|leadership| leadership.by != *by) {
        return Err(Ignored::NotYours);
    }
    if version <= state.version {
        return Err(Ignored::Repeated);
    }
    state.version = version;
    Ok(())
}
