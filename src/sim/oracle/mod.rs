//! The oracle: checks the properties against the world's own observations: posts, hooks, documents, and every committed
//! entry.

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

/// The observations so far. All times are true times.
#[derive(Default)]
pub(super) struct Oracle {
    /// Hooks done and not undone.
    pub(super) steps_done: BTreeSet<String>,
    /// Members with a started hook that takes them out of service and no restore since, with the group and the event.
    pub(super) out: BTreeMap<Member, (GroupName, EventId)>,
    /// The time without faults was long enough to make the last event an easy case.
    pub(super) is_calm: bool,
    /// A machine was down or paused, by a fault or an event.
    pub(super) is_disturbed: bool,
    /// A disk was lost with approvals that the log may lack.
    pub(super) is_forgotten: bool,
    /// The machines whose wall clocks were wrong at any time.
    pub(super) wrong_clocks: BTreeSet<usize>,
    /// When most clocks were wrong or belonged to stopped replicas: from then on no replica can be expected to know the
    /// time.
    pub(super) left_alone_at: Option<Timestamp>,
    /// Operator requests with a confirmed result.
    pub(super) acknowledged: u64,
    /// The outcome of each hook.
    pub(super) ended: BTreeMap<Key, Outcome>,
    begun: BTreeMap<Key, (usize, Phase)>,
    claims: BTreeMap<AttemptId, ClaimMade>,
    posts: Vec<Posted>,
    rest: rest::Rest,
}

impl Oracle {
    /// Only a restore on a machine whose disk is lost may be started there once more.
    pub(super) fn lose_disk(&mut self, vm: usize, had_journal: bool) {
        self.begun.retain(|_, (at, phase)| *at != vm || *phase < Phase::Restore);
        self.is_forgotten |= had_journal;
    }
}

struct ClaimMade {
    event: EventId,
    approver: VmName,
    at: Timestamp,
    /// The VMs of the decision.
    decided: Vec<VmName>,
    /// The end of the claim, and how long each monotonic clock had stood still by then.
    lapsed: Option<(Timestamp, Vec<i64>)>,
}

struct Posted {
    by: usize,
    event: EventId,
    why: PostReason,
}
