//! Decides the next automatic change of the membership: a pure function of the leader's view. One change at a time; the
//! code that carries out the change checks again whether the change is possible.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::types::{Membership, RaftMember};

/// A member silent for this long does not count as answering; shorter silence is noise.
pub(super) const SILENT_AFTER: Duration = Duration::from_secs(2);
/// The largest lag, in entries, of an up-to-date learner: the log keeps growing.
const LAG_AT_MOST: u64 = 100;

/// One member in the view of the leader.
#[derive(Debug, Clone)]
pub(super) struct MemberState {
    pub(super) node: u64,
    pub(super) member: RaftMember,
    pub(super) voter: bool,
    /// For how long the member has acknowledged nothing; zero for the leader itself.
    pub(super) silent_for: Duration,
    /// The member signed off, and was not heard since.
    pub(super) signed_off: bool,
    /// How far the member's log is behind the committed position; `None` while unknown.
    pub(super) lag: Option<u64>,
    /// An operator removed the member, and the removal was cut short.
    pub(super) excluded: bool,
}

/// A configured replica that answers, and whose answer matches no member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JoinCandidate {
    pub(super) node: u64,
    /// With the configured address.
    pub(super) member: RaftMember,
    /// The log is empty: the replica never took part in anything.
    pub(super) new: bool,
}

/// The leader's view of the membership.
#[derive(Debug, Default)]
pub(super) struct MembershipView {
    /// The members, in the order of preference as voters.
    pub(super) members: Vec<MemberState>,
    pub(super) callers: Vec<JoinCandidate>,
    /// The nodes that are no members and sent a hello a moment ago, by the name in the hello.
    pub(super) askers: BTreeMap<String, BTreeSet<u64>>,
    /// A change was cut short between its two steps.
    pub(super) half_changed: bool,
    pub(super) max_voters: usize,
    pub(super) replace_after: Duration,
    pub(super) rejoin_after: Duration,
}

/// A change of the membership.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MembershipChange {
    /// The second step of a change after the loss of its leader.
    Finish,
    /// Members with a new address.
    Move(BTreeMap<u64, RaftMember>),
    /// The nodes of lost disks, each with another member of the same name by now.
    Forget { nodes: BTreeSet<u64> },
    /// New learners, and the nodes of lost disks replaced by the learners.
    Add { learners: BTreeMap<u64, RaftMember>, instead_of: Vec<u64> },
    /// A learner becomes a voter: there is room.
    Promote { learner: u64 },
    /// The vote of a lost disk moves to the learner of the same name, and the lost node is removed.
    Rejoin { lost: u64, learner: u64 },
    /// A learner becomes a voter in place of a lost voter, which becomes a learner.
    Replace { gone: u64, learner: u64 },
}

/// The pending change, if any.
pub(super) fn membership_change(view: &MembershipView) -> Option<MembershipChange> {
    if !has_quorum(view) {
        return None;
    }
    if view.half_changed {
        return Some(MembershipChange::Finish);
    }
    due_move(view)
        .or_else(|| due_forget(view))
        .or_else(|| due_addition(view))
        .or_else(|| due_rejoin(view))
        .or_else(|| due_promotion_or_replacement(view))
}

/// The names used by more than one node, among the answering members and the nodes that want to join. The real replica
/// among these nodes is unknown, so none of them is let in.
pub(super) fn contested(view: &MembershipView) -> BTreeMap<String, BTreeSet<u64>> {
    let mut nodes = view.askers.clone();
    let members = view.members.iter().filter(|known| answers(known));
    let members = members.map(|known| (&known.member.replica, known.node));
    for (name, node) in members.chain(view.callers.iter().map(|caller| (&caller.member.replica, caller.node))) {
        nodes.entry(name.clone()).or_default().insert(node);
    }
    nodes.retain(|_, nodes| nodes.len() > 1);
    nodes
}

/// The voter of this name under another node id: the lost disk, if silent.
pub(super) fn left_behind(membership: &Membership, name: &str, node: u64) -> Option<u64> {
    let mut voters = membership.voter_ids().filter(|voter| *voter != node);
    voters.find(|voter| membership.get_node(voter).is_some_and(|member| member.replica == name))
}

/// The remaining voter of a pair is no majority, so no change is possible without an operator's request.
pub(super) const fn may_rejoin(voters: usize) -> bool {
    voters > 2
}

fn answers(known: &MemberState) -> bool {
    known.silent_for < SILENT_AFTER
}

fn voters(view: &MembershipView) -> impl Iterator<Item = &MemberState> {
    view.members.iter().filter(|known| known.voter)
}

/// Without a quorum no change would ever be committed, and every other change would wait for this change.
fn has_quorum(view: &MembershipView) -> bool {
    voters(view).filter(|known| answers(known)).count() * 2 > voters(view).count()
}

fn due_move(view: &MembershipView) -> Option<MembershipChange> {
    let is_there = |caller: &&JoinCandidate| view.members.iter().any(|known| known.node == caller.node);
    let moved: BTreeMap<u64, RaftMember> =
        view.callers.iter().filter(is_there).map(|caller| (caller.node, caller.member.clone())).collect();
    (!moved.is_empty()).then_some(MembershipChange::Move(moved))
}

fn siblings<'v>(view: &'v MembershipView, known: &MemberState) -> impl Iterator<Item = &'v MemberState> {
    let (node, name) = (known.node, known.member.replica.clone());
    view.members.iter().filter(move |other| other.node != node && other.member.replica == name)
}

/// A name is a member once. After an interrupted change or a manual change, the node that answers stays.
fn due_forget(view: &MembershipView) -> Option<MembershipChange> {
    let has_heir = |known: &MemberState| {
        let mut siblings = siblings(view, known);
        siblings.any(|sibling| answers(sibling) && (sibling.voter || !known.voter))
    };
    let lost = view.members.iter().filter(|known| {
        let is_lost = if known.voter { is_lost(view, known) } else { !answers(known) };
        is_lost && !is_contested(view, known) && has_heir(known)
    });
    let nodes: BTreeSet<u64> = lost.map(|known| known.node).collect();
    (!nodes.is_empty()).then_some(MembershipChange::Forget { nodes })
}

fn is_contested(view: &MembershipView, known: &MemberState) -> bool {
    contested(view).contains_key(&known.member.replica)
}

/// A voter that is only disconnected comes back with its disk, so the leader waits.
fn is_lost(view: &MembershipView, known: &MemberState) -> bool {
    !answers(known) && (known.signed_off || known.silent_for >= view.rejoin_after)
}

/// A former member is added only by an operator's request: the removal had a reason. A voter's new disk is added as a
/// learner beside the lost disk, and votes when the lost disk is out of contact for long enough.
fn due_addition(view: &MembershipView) -> Option<MembershipChange> {
    let contested = contested(view);
    let mut learners = BTreeMap::new();
    let mut instead_of = Vec::new();
    for caller in view.callers.iter().filter(|caller| caller.new) {
        let name = &caller.member.replica;
        if view.members.iter().any(|known| known.node == caller.node) || contested.contains_key(name) {
            continue;
        }
        let lost: Vec<&MemberState> = view.members.iter().filter(|known| known.member.replica == *name).collect();
        let stays = |known: &&MemberState| answers(known) || (known.voter && !may_rejoin(voters(view).count()));
        if lost.iter().any(stays) {
            continue;
        }
        instead_of.extend(lost.iter().filter(|known| !known.voter).map(|known| known.node));
        learners.insert(caller.node, caller.member.clone());
    }
    (!learners.is_empty()).then_some(MembershipChange::Add { learners, instead_of })
}

/// The number of voters stays unchanged.
fn due_rejoin(view: &MembershipView) -> Option<MembershipChange> {
    if !may_rejoin(voters(view).count()) {
        return None;
    }
    voters(view).filter(|lost| is_lost(view, lost) && !is_contested(view, lost)).find_map(|lost| {
        let learner = siblings(view, lost).find(|sibling| is_up_to_date(sibling))?;
        Some(MembershipChange::Rejoin { lost: lost.node, learner: learner.node })
    })
}

/// Whether the learner may vote. A removed member gets no vote back from a removal that was cut short.
fn is_up_to_date(known: &MemberState) -> bool {
    !known.voter && !known.excluded && answers(known) && known.lag.is_some_and(|lag| lag <= LAG_AT_MOST)
}

fn due_promotion_or_replacement(view: &MembershipView) -> Option<MembershipChange> {
    // A name never has two votes.
    let votes_already = |known: &MemberState| siblings(view, known).any(|sibling| sibling.voter);
    let learner = view.members.iter().find(|known| is_up_to_date(known) && !votes_already(known))?.node;
    // Also where there is room: an additional voter beside a lost voter only makes a quorum larger.
    let gone = voters(view).filter(|known| known.silent_for >= view.replace_after.max(SILENT_AFTER));
    if let Some(longest_gone) = gone.max_by_key(|known| known.silent_for) {
        return Some(MembershipChange::Replace { gone: longest_gone.node, learner });
    }
    (voters(view).count() < view.max_voters).then_some(MembershipChange::Promote { learner })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod rejoin_tests;
