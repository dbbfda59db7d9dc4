//! Whether what happens keeps the promises, judged from what the world itself saw: posts, hooks, documents, and every
//! entry that is committed.

mod entries;
mod hooks;
mod posts;
mod rest;

use std::collections::{BTreeMap, BTreeSet};

use super::program::Key;
use allclear_core::model::attempt::Outcome;
use allclear_core::model::id::{AttemptId, EventId, GroupName, VmName};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Member, Phase};
use allclear_core::procedure::PostReason;

/// What was seen so far. All times are true ones.
#[derive(Default)]
pub(super) struct Oracle {
    /// What hooks have done and nobody took back.
    pub(super) steps_done: BTreeSet<String>,
    /// Who was begun to be taken away by a hook and not restored since, with the group, and for which event.
    pub(super) out: BTreeMap<Member, (GroupName, EventId)>,
    /// Nothing went wrong for so long that the last event is an easy one.
    pub(super) is_calm: bool,
    /// Somebody was down or paused, by a fault or an event.
    pub(super) is_disturbed: bool,
    /// A disk was lost with approvals on it that the log may not know.
    pub(super) is_forgotten: bool,
    /// Whose wall clocks were wrong at any time.
    pub(super) wrong_clocks: BTreeSet<usize>,
    /// When most clocks were wrong, or of replicas that were down: from then on nobody can be expected to know the time.
    pub(super) left_alone_at: Option<Timestamp>,
    /// Wishes of operators that were confirmed to them.
    pub(super) acknowledged: u64,
    /// How each hook ended.
    pub(super) ended: BTreeMap<Key, Outcome>,
    begun: BTreeMap<Key, (usize, Phase)>,
    claims: BTreeMap<AttemptId, ClaimMade>,
    posts: Vec<Posted>,
    rest: rest::Rest,
}

impl Oracle {
    /// What was putting back on a machine whose disk is lost may be begun there once more, and nothing else.
    pub(super) fn lose_disk(&mut self, vm: usize, had_journal: bool) {
        self.begun.retain(|_, (at, phase)| *at != vm || *phase < Phase::Restore);
        self.is_forgotten |= had_journal;
    }
}

struct ClaimMade {
    event: EventId,
    approver: VmName,
    at: Timestamp,
    /// The VMs for which it was decided.
    decided: Vec<VmName>,
    /// When it was not in force any more, and how long each steady clock had stood by then.
    lapsed: Option<(Timestamp, Vec<i64>)>,
}

struct Posted {
    by: usize,
    event: EventId,
    why: PostReason,
}
