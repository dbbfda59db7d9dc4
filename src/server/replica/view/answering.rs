//! The answering replicas while no quorum reports reachability.

use std::time::Duration;

use allclear_core::model::id::VmName;
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::planning_input::{PeerHealth, PlanningInput};

/// Replaces the leader's last report, which is old. A replica that answered a later question counts as reachable, and
/// so does a leader that is heard.
pub(super) fn look_anew(input: &mut PlanningInput, leader: Option<VmName>) {
    let now = input.now;
    let reached = input.isolated.iter().flat_map(|alone| &alone.reached);
    let asked = reached.map(|(name, peer)| (name.clone(), peer.channel));
    let answering: Vec<(VmName, ImdsHealth)> =
        asked.chain(leader.map(|leader| (leader, ImdsHealth::Unknown))).collect();
    for (_, contact) in input.peers.iter_mut().filter(|(name, _)| **name != input.me) {
        contact.reachable = false;
    }
    for (name, channel) in answering.into_iter().filter(|(name, _)| *name != input.me) {
        let (reachable, since, channel_since) = (true, now, now);
        let contact = PeerHealth {
            reachable,
            since,
            imds: channel,
            imds_since: channel_since,
            document_age: None,
            answers_in: Duration::ZERO,
            operator_seq: 0,
            can_acknowledge: false,
        };
        input.peers.entry(name).or_insert(contact).reachable = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::isolation::{IsolatedView, PeerAnswer};
    use allclear_core::model::time::Timestamp;
    use allclear_core::planning_input::Timing;
    use allclear_core::policy::Policy;
    use std::collections::{BTreeMap, BTreeSet};

    fn vm(name: &str) -> VmName {
        VmName::new(name)
    }

    #[test]
    fn only_who_was_asked_or_leads_answers_whatever_a_leader_said_before() {
        let contact = PeerHealth {
            reachable: true,
            since: Timestamp(0),
            imds: ImdsHealth::Healthy,
            imds_since: Timestamp(0),
            document_age: Some(Duration::ZERO),
            answers_in: Duration::ZERO,
            operator_seq: 7,
            can_acknowledge: false,
        };
        let peer = PeerAnswer { leader: None, channel: ImdsHealth::Healthy };
        let mut input = PlanningInput {
            now: Timestamp(9_000),
            me: vm("a"),
            members: ["a", "b", "c", "d"].map(vm).into(),
            learners: BTreeSet::new(),
            versions: BTreeMap::new(),
            peers: ["a", "b", "c"].map(|name| (vm(name), contact)).into(),
            quorum: false,
            leading_since: Timestamp(0),
            leader: None,
            isolated: Some(IsolatedView { reached: BTreeMap::from([(vm("d"), peer)]), ..IsolatedView::default() }),
            policy: Policy::default(),
            timing: Timing::default(),
        };
        look_anew(&mut input, None);
        let answering = |input: &PlanningInput| -> Vec<String> {
            input.members.iter().filter(|name| input.reaches(name)).map(ToString::to_string).collect()
        };
        assert_eq!(answering(&input), ["a", "d"]);
        assert_eq!(input.peers[&vm("a")], contact);
        look_anew(&mut input, Some(vm("c")));
        assert_eq!(answering(&input), ["a", "c", "d"]);
    }
}
