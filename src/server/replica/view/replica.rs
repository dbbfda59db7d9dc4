//! Replicas as shown to operators.

use crate::input_source::InputSource;
use allclear_core::model::id::VmName;
use allclear_core::model::state::State;
use allclear_core::planning_input::{PeerHealth, PlanningInput};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The configured replicas in the order of the configuration, and then the members missing in the configuration.
pub(super) fn all(inputs: &InputSource, state: &State, input: &PlanningInput) -> Vec<shown::Replica> {
    let cluster = &inputs.cluster;
    let members = cluster.consensus.members();
    let all = cluster.members_and_configured();
    let mut contacts = inputs.peers.of(&all, |at| at);
    contacts.extend(input.peers.clone());
    let ahead = inputs.peers.differences.known();
    let leader = cluster.consensus.status().borrow().leader.as_deref().map(VmName::new);
    // A follower dials the leader only, so an earlier dial error of another replica may be long resolved.
    let is_dialled = |name: &VmName| !input.quorum || input.leader.is_some() || leader.as_ref() == Some(name);
    let is_among = |names: &[String], name: &VmName| names.iter().any(|member| VmName::new(member) == *name);
    let shown = |name: &VmName| {
        let contact: Option<&PeerHealth> = contacts.get(name);
        let answering = contact.filter(|contact| contact.reachable);
        let voter = is_among(&members.voters, name);
        shown::Replica {
            name: name.to_string(),
            voter,
            member: voter || is_among(&members.learners, name),
            configured: cluster.node.configured.contains(name),
            reachable: answering.is_some(),
            metadata: answering.map_or("unknown", |contact| contact.imds.as_str()).into(),
            suspect: state.is_suspect(name),
            last_document_age_ms: contact
                .and_then(|contact| contact.document_age)
                .map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX)),
            clock_difference_ms: ahead.get(name).copied(),
            known_version: input.versions.get(name).map(|known| u32::try_from(*known).unwrap_or(u32::MAX)),
            unreached_because: cluster.consensus.last_dial_error(name.as_str()).filter(|_| is_dialled(name)),
        }
    };
    all.iter().map(shown).collect()
}
