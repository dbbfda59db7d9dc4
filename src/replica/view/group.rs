//! Groups and their disruption budget as operators see them.

use crate::machine::budget;
use crate::machine::situation::Situation;
use crate::machine::state::State;
use crate::wire::pb::allclear::operator::v1 as shown;

pub(super) fn all(state: &State, situation: &Situation) -> Vec<shown::Group> {
    let standings = budget::standings(state, &situation.lost()).into_iter();
    let group = |standing: budget::Standing| shown::Group {
        name: standing.group.to_string(),
        max_unavailable: u32::try_from(standing.max_unavailable).unwrap_or(u32::MAX),
        members: standing
            .members
            .into_iter()
            .map(|(member, taker)| shown::group::Member {
                workload: member.workload.to_string(),
                vm: member.vm.to_string(),
                unavailable_by: taker.map(|taker| taker.to_string()),
            })
            .collect(),
    };
    standings.map(group).collect()
}
