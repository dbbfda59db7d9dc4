//! The cluster version: the meaning of entries (`SPEC.md` 10.3). An entry raises the version once every replica that
//! applies the entry runs a program with knowledge of the version. A program without knowledge of the version applies
//! no further entry.

use crate::model::command::{Command, RaiseVersion};
use crate::model::state::State;

/// A cluster version above the versions known to a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beyond {
    pub version: u64,
    pub known: u64,
}

/// Whether a program with versions up to `known` may adopt this state.
pub const fn check_state(state: &State, known: u64) -> Result<(), Beyond> {
    check(state.version, known)
}

/// Whether a program with versions up to `known` may apply this command.
pub const fn check_command(command: &Command, known: u64) -> Result<(), Beyond> {
    match command {
        Command::RaiseVersion(RaiseVersion { version }) => check(*version, known),
        _ => Ok(()),
    }
}

const fn check(version: u64, known: u64) -> Result<(), Beyond> {
    if version <= known { Ok(()) } else { Err(Beyond { version, known }) }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::time::Duration;

    use super::*;
    use crate::apply::version::raise_version;
    use crate::model::command::Rejection;
    use crate::model::id::VmName;
    use crate::model::isolation::ImdsHealth;
    use crate::model::reconcile_state::Leadership;
    use crate::model::time::Timestamp;
    use crate::model::version::FIRST;
    use crate::plan::plan;
    use crate::planning_input::LeaderState;
    use crate::planning_input::PeerHealth;
    use crate::planning_input::PlanningInput;

    const LEARNER: &str = "d";

    fn names() -> Vec<VmName> {
        ["a", "b", "c", LEARNER].map(VmName::new).into()
    }

    fn contact(reachable: bool, since: Timestamp) -> PeerHealth {
        let (channel, answers_in) = (ImdsHealth::Healthy, Duration::ZERO);
        PeerHealth {
            reachable,
            since,
            imds: channel,
            imds_since: since,
            document_age: None,
            answers_in,
            operator_seq: 0,
            can_acknowledge: false,
        }
    }

    /// Three voters and a learner with the `known` versions, led by the first.
    fn input(known: [Option<u64>; 4]) -> PlanningInput {
        let contact = contact(true, Timestamp(0));
        let versions = names().into_iter().zip(known).filter_map(|(name, known)| Some((name, known?)));
        let lead = LeaderState { term: 1, turn: 1, voters: names()[..3].into(), acknowledged: [].into() };
        PlanningInput {
            now: Timestamp(3_600_000),
            me: VmName::new("a"),
            members: names(),
            learners: [VmName::new(LEARNER)].into(),
            peers: names().into_iter().map(|name| (name, contact)).collect(),
            versions: versions.collect(),
            quorum: true,
            leading_since: Timestamp(0),
            leader: Some(lead),
            isolated: None,
            policy: super::super::policy::Policy::default(),
            timing: super::super::planning_input::Timing::default(),
        }
    }

    fn state() -> State {
        let leadership = Leadership { by: VmName::new("a"), term: 1, turn: 1, voters: names()[..3].into() };
        State { leadership: Some(leadership), ..State::default() }
    }

    fn raised(state: &State, input: &PlanningInput) -> Option<u64> {
        plan(state, input).into_iter().find_map(|command| match command {
            Command::RaiseVersion(RaiseVersion { version }) => Some(version),
            _ => None,
        })
    }

    #[test]
    fn the_cluster_is_raised_when_everybody_knows_and_has_said_so() {
        let (two, state) = (Some(FIRST + 1), state());
        assert_eq!(raised(&state, &input([two; 4])), Some(FIRST + 1));
        assert_eq!(raised(&state, &input([Some(FIRST + 7), two, two, two])), Some(FIRST + 1));
        assert_eq!(raised(&state, &input([two, Some(FIRST), two, two])), None);
        assert_eq!(raised(&state, &input([two, two, two, Some(FIRST)])), None);
        assert_eq!(raised(&state, &input([two, None, two, two])), None);
        assert_eq!(raised(&state, &input([Some(FIRST); 4])), None);
        let follower = PlanningInput { leader: None, ..input([two; 4]) };
        assert_eq!(raised(&state, &follower), None);
    }

    #[test]
    fn a_voter_that_is_silent_is_waited_for_and_a_learner_that_is_gone_is_not() {
        let two = Some(FIRST + 1);
        let silent = |name: &str, silent_for: Duration, known| {
            let mut input = input(known);
            let since = input.now.minus(silent_for);
            input.peers.insert(VmName::new(name), contact(false, since));
            raised(&state(), &input)
        };
        let replace_after = Duration::from_mins(10);
        assert_eq!(silent("c", replace_after, [two; 4]), None);
        let old = [two, two, two, Some(FIRST)];
        assert_eq!(silent(LEARNER, replace_after.saturating_sub(Duration::from_millis(1)), old), None);
        assert_eq!(silent(LEARNER, replace_after, old), two);
    }

    #[test]
    fn it_only_rises_and_by_the_leader() {
        let (mut state, leader) = (state(), VmName::new("a"));
        assert_eq!(raise_version(&mut state, &VmName::new("b"), FIRST + 1), Err(Rejection::NotYours));
        assert_eq!(raise_version(&mut state, &leader, FIRST + 2), Ok(()));
        for lower in [FIRST + 1, FIRST + 2] {
            assert_eq!(raise_version(&mut state, &leader, lower), Err(Rejection::Repeated));
        }
        assert_eq!(state.version, FIRST + 2);
    }

    #[test]
    fn what_is_beyond_a_program_is_not_folded_by_it() {
        let state = State { version: FIRST + 1, ..State::default() };
        assert_eq!(check_state(&state, FIRST + 1), Ok(()));
        assert_eq!(check_state(&state, FIRST), Err(Beyond { version: FIRST + 1, known: FIRST }));
        let raise = Command::RaiseVersion(RaiseVersion { version: FIRST + 1 });
        assert_eq!(check_command(&raise, FIRST + 1), Ok(()));
        assert_eq!(check_command(&raise, FIRST), Err(Beyond { version: FIRST + 1, known: FIRST }));
    }
}
