//! Decides the next automatic change of the membership: a pure function of the leader's view. One change at a time; the
//! code that carries it out checks again whether it is possible.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::types::{Membership, RaftMember};

/// Silence up to here is noise; from here on a member does not count as answering.
pub(super) const SILENT_AFTER: Duration = Duration::from_secs(2);
/// How many entries a learner may lag behind while it counts as up to date: the log does not stand still.
const LAG_AT_MOST: u64 = 100;

/// One member as the leader sees it.
#[derive(Debug, Clone)]
pub(super) struct MemberState {
    pub(super) node: u64,
    pub(super) member: RaftMember,
    pub(super) voter: bool,
    /// For how long it has acknowledged nothing; zero for the leader itself.
    pub(super) silent_for: Duration,
    /// It said that it stops, and was not heard since.
    pub(super) signed_off: bool,
    /// How far its log is behind what is committed; `None` while nobody knows.
    pub(super) lag: Option<u64>,
}

/// A configured replica that answers, and is no member as it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JoinCandidate {
    pub(super) node: u64,
    /// With the configured address.
    pub(super) member: RaftMember,
    /// Its log holds nothing: it never took part in anything.
    pub(super) new: bool,
}

/// What the leader sees.
#[derive(Debug, Default)]
pub(super) struct MembershipView {
    /// In the order in which they are preferred as voters.
    pub(super) members: Vec<MemberState>,
    pub(super) callers: Vec<JoinCandidate>,
    /// The nodes that are no members and greeted somebody a moment ago, by the name that they gave.
    pub(super) askers: BTreeMap<String, BTreeSet<u64>>,
    /// A change was cut short between its two steps.
    pub(super) half_changed: bool,
    pub(super) max_voters: usize,
    pub(super) replace_after: Duration,
    pub(super) rejoin_after: Duration,
}

/// What to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MembershipChange {
    /// The second step of a change whose leader is gone.
    Finish,
    /// Members that are found elsewhere now.
    Move(BTreeMap<u64, RaftMember>),
    /// The nodes of lost disks whose name another member bears by now.
    Forget { nodes: BTreeSet<u64> },
    /// New learners, and the nodes of lost disks that they stand for.
    Add { learners: BTreeMap<u64, RaftMember>, instead_of: Vec<u64> },
    /// A learner is to vote: there is room.
    Promote { learner: u64 },
    /// The vote of a lost disk goes to the learner of the same name, and the lost one is a member no longer.
    Rejoin { lost: u64, learner: u64 },
    /// A learner is to vote in the place of a voter that is gone, which becomes a learner.
    Replace { gone: u64, learner: u64 },
}

/// The change that is due, if any.
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

/// The names that more than one node uses: those that answer as members, and those that ask to be let in. Nobody can tell
/// which of them is the replica, so none of them is let in.
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

/// The voter of this name under another node id: the disk that was lost, where it is silent.
pub(super) fn left_behind(membership: &Membership, name: &str, node: u64) -> Option<u64> {
    let mut voters = membership.voter_ids().filter(|voter| *voter != node);
    voters.find(|voter| membership.get_node(voter).is_some_and(|member| member.replica == name))
}

/// Of a pair the one that is left is no majority, so nothing can be changed without an operator's word.
pub(super) const fn may_rejoin(voters: usize) -> bool {
    voters > 2
}

fn answers(known: &MemberState) -> bool {
    known.silent_for < SILENT_AFTER
}

fn voters(view: &MembershipView) -> impl Iterator<Item = &MemberState> {
    view.members.iter().filter(|known| known.voter)
}

/// Without one nothing would ever be committed, and every other change would wait for this one.
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

/// A name is a member once. Whatever cut a change short, or was changed by hand meanwhile, the node that answers stays.
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

/// A voter that is only cut off comes back with its disk, so it is given time.
fn is_lost(view: &MembershipView, known: &MemberState) -> bool {
    !answers(known) && (known.signed_off || known.silent_for >= view.rejoin_after)
}

/// Who took part once comes back only by an operator's wish: it was removed for a reason. A voter's lost disk comes back as
/// a learner beside it, and votes when the lost one is out of contact for long enough.
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

/// As many vote afterwards as before.
fn due_rejoin(view: &MembershipView) -> Option<MembershipChange> {
    if !may_rejoin(voters(view).count()) {
        return None;
    }
    voters(view).filter(|lost| is_lost(view, lost) && !is_contested(view, lost)).find_map(|lost| {
        let learner = siblings(view, lost).find(|sibling| is_up_to_date(sibling))?;
        Some(MembershipChange::Rejoin { lost: lost.node, learner: learner.node })
    })
}

fn is_up_to_date(known: &MemberState) -> bool {
    !known.voter && answers(known) && known.lag.is_some_and(|lag| lag <= LAG_AT_MOST)
}

fn due_promotion_or_replacement(view: &MembershipView) -> Option<MembershipChange> {
    // One name never has two votes.
    let votes_already = |known: &MemberState| siblings(view, known).any(|sibling| sibling.voter);
    let learner = view.members.iter().find(|known| is_up_to_date(known) && !votes_already(known))?.node;
    // Also where there is room: one more voter beside one that is gone only makes a quorum larger.
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
