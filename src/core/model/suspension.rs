//! Holds, pauses and operator approvals that are in force.

use crate::model::attempt::{Waiver, WaiverReason};
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::lifecycle::Stage;
use crate::model::operator::{OperatorAction, OperatorRecord, Suspension};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Member;

pub(crate) fn last(wishes: &[OperatorRecord], such: impl Fn(&OperatorRecord) -> bool) -> Option<&OperatorRecord> {
    wishes.iter().rev().find(|wish| such(wish))
}

impl Event {
    /// The hold that is in force; none outlives the event.
    pub fn hold(&self, now: Timestamp) -> Option<Suspension> {
        let halt = last(&self.operator_records, OperatorRecord::holds_or_releases)?.suspension_of(now);
        halt.filter(|_| self.stage() < Stage::Started)
    }

    /// An operator approved it, and nobody has held it since.
    pub fn is_approved_by_operator(&self) -> bool {
        // Of what they saw: not of what has become of it.
        let is_of_this = |wish: &OperatorRecord| matches!(wish.what, OperatorAction::Approve { revision, .. } if revision >= self.decided_at_revision);
        last(&self.operator_records, OperatorRecord::holds_or_approves).is_some_and(is_of_this)
    }

    /// An operator approved it whoever else is out, and nobody has held it since.
    pub fn is_over_budget(&self) -> bool {
        let last = last(&self.operator_records, OperatorRecord::holds_or_approves);
        let is_it = |wish: &OperatorRecord| matches!(wish.what, OperatorAction::Approve { over_budget: true, .. });
        self.is_approved_by_operator() && last.is_some_and(is_it)
    }

    /// An operator does not want this hook to be waited for.
    pub fn is_skipped(&self, member: &Member, hook: HookId) -> bool {
        let skips = |waiver: &Waiver| matches!(waiver.why, WaiverReason::Skipped { .. });
        self.waivers.iter().any(|waiver| waiver.member == *member && waiver.hook == hook && skips(waiver))
    }
}

impl State {
    /// The pause that is in force.
    pub fn pause(&self, now: Timestamp) -> Option<Suspension> {
        last(&self.operator_records, OperatorRecord::pauses_or_resumes)?.suspension_of(now)
    }
}
