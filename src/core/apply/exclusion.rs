//! Replicas that an operator removed from the cluster. The leader adds a configured replica with an empty disk
//! automatically, but an excluded replica only after an operator's command.

use crate::apply::access::Applied;
use crate::model::command::Rejection;
use crate::model::id::VmName;
use crate::model::state::State;

/// More names than a cluster has replicas. Beyond this limit the oldest exclusion is forgotten.
pub const EXCLUDED_LIMIT: usize = 200;

impl State {
    /// Whether an operator removed the replica, without a readmission since.
    pub fn is_excluded(&self, replica: &VmName) -> bool {
        self.excluded.contains(replica)
    }
}

pub(crate) fn exclude_replica(state: &mut State, replica: &VmName) -> Applied {
    if state.is_excluded(replica) {
        return Err(Rejection::Repeated);
    }
    if state.excluded.len() >= EXCLUDED_LIMIT {
        state.excluded.remove(0);
    }
    state.excluded.push(replica.clone());
    Ok(())
}

pub(crate) fn readmit_replica(state: &mut State, replica: &VmName) -> Applied {
    let place = state.excluded.iter().position(|excluded| excluded == replica).ok_or(Rejection::UnknownReplica)?;
    state.excluded.remove(place);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_many_are_excluded_the_latest_are_known_and_no_more() {
        let (mut state, name) = (State::default(), |number: usize| VmName::new(&alloc::format!("db-{number}")));
        for number in 0..=EXCLUDED_LIMIT {
            exclude_replica(&mut state, &name(number)).unwrap();
        }
        assert_eq!(exclude_replica(&mut state, &name(EXCLUDED_LIMIT)), Err(Rejection::Repeated));
        assert_eq!(state.excluded.len(), EXCLUDED_LIMIT);
        assert!(!state.is_excluded(&name(0)) && state.is_excluded(&name(1)));
        readmit_replica(&mut state, &name(1)).unwrap();
        assert!(!state.is_excluded(&name(1)));
        assert_eq!(readmit_replica(&mut state, &name(1)), Err(Rejection::UnknownReplica));
    }
}
