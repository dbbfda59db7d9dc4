//! Which change of the membership is due without anybody asking for it: a pure function of what the leader sees.
//! One change at a time; whether it can be carried out now is checked once more by whoever does it.

use std::collections::BTreeMap;
use std::time::Duration;

use super::types::Member;

/// Silence up to here is noise; from here on a member does not count as answering.
pub(super) const SILENT_AFTER: Duration = Duration::from_secs(2);
/// How many entries a learner may lag behind while it counts as up to date: the log does not stand still.
const LAG_AT_MOST: u64 = 100;

/// One member as the leader sees it.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) node: u64,
    pub(super) member: Member,
    pub(super) voter: bool,
    /// For how long it has acknowledged nothing; zero for the leader itself.
    pub(super) silent_for: Duration,
    /// How far its log is behind what is committed; `None` while nobody knows.
    pub(super) lag: Option<u64>,
}

/// A configured replica that answers, and is no member as it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) node: u64,
    /// With the configured address.
    pub(super) member: Member,
    /// Its log holds nothing: it never took part in anything.
    pub(super) new: bool,
}

/// What the leader sees.
#[derive(Debug, Default)]
pub(super) struct View {
    /// In the order in which they are preferred as voters.
    pub(super) members: Vec<Known>,
    pub(super) callers: Vec<Caller>,
    /// A change was cut short between its two steps.
    pub(super) half_changed: bool,
    pub(super) max_voters: usize,
    pub(super) replace_after: Duration,
}

/// What to change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The second step of a change whose leader is gone.
    Finish,
    /// Members that are found elsewhere now.
    Move(BTreeMap<u64, Member>),
    /// New learners, and the nodes of lost disks that they stand for.
    Add { learners: BTreeMap<u64, Member>, instead_of: Vec<u64> },
    /// A learner is to vote: there is room.
    Promote { learner: u64 },
    /// A learner is to vote in the place of a voter that is gone, which becomes a learner.
    Replace { gone: u64, learner: u64 },
}

/// The change that is due, if any.
pub(super) fn due(view: &View) -> Option<Due> {
    if !has_quorum(view) {
        return None;
    }
    if view.half_changed {
        return Some(Due::Finish);
    }
    moved(view).or_else(|| newcomers(view)).or_else(|| next_voter(view))
}

fn answers(known: &Known) -> bool {
    known.silent_for < SILENT_AFTER
}

fn voters(view: &View) -> impl Iterator<Item = &Known> {
    view.members.iter().filter(|known| known.voter)
}

/// Without one nothing would ever be committed, and every other change would wait for this one.
fn has_quorum(view: &View) -> bool {
    voters(view).filter(|known| answers(known)).count() * 2 > voters(view).count()
}

fn moved(view: &View) -> Option<Due> {
    let is_there = |caller: &&Caller| view.members.iter().any(|known| known.node == caller.node);
    let moved: BTreeMap<u64, Member> =
        view.callers.iter().filter(is_there).map(|caller| (caller.node, caller.member.clone())).collect();
    (!moved.is_empty()).then_some(Due::Move(moved))
}

/// Who took part once comes back only by an operator's wish: it was removed for a reason. A voter's lost disk is an
/// operator's matter, too, until a learner votes in its place.
fn newcomers(view: &View) -> Option<Due> {
    let mut learners = BTreeMap::new();
    let mut instead_of = Vec::new();
    for caller in view.callers.iter().filter(|caller| caller.new) {
        if view.members.iter().any(|known| known.node == caller.node) {
            continue;
        }
        match view.members.iter().find(|known| known.member.replica == caller.member.replica) {
            None => {}
            Some(known) if !known.voter && !answers(known) => instead_of.push(known.node),
            Some(_) => continue,
        }
        learners.insert(caller.node, caller.member.clone());
    }
    (!learners.is_empty()).then_some(Due::Add { learners, instead_of })
}

fn next_voter(view: &View) -> Option<Due> {
    let is_up_to_date =
        |known: &&Known| !known.voter && answers(known) && known.lag.is_some_and(|lag| lag <= LAG_AT_MOST);
    let learner = view.members.iter().find(is_up_to_date)?.node;
    // Also where there is room: one more voter beside one that is gone only makes a quorum larger.
    let gone = voters(view).filter(|known| known.silent_for >= view.replace_after.max(SILENT_AFTER));
    if let Some(longest_gone) = gone.max_by_key(|known| known.silent_for) {
        return Some(Due::Replace { gone: longest_gone.node, learner });
    }
    (voters(view).count() < view.max_voters).then_some(Due::Promote { learner })
}

#[cfg(test)]
#[path = "due_tests.rs"]
mod tests;
