//! Holds, pauses and operator approvals that are in force.

use crate::model::attempt::{Waiver, WaiverReason};
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::AttemptId;
use crate::model::lifecycle::Stage;
use crate::model::operator::{OperatorAction, OperatorRecord, Suspension};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Member;

pub(crate) fn last(wishes: &[OperatorRecord], such: impl Fn(&OperatorRecord) -> bool) -> Option<&OperatorRecord> {
    wishes.iter().rev().find(|wish| such(wish))
}

impl State {
    /// The events that are approved, or about to be approved: a hold or a pause has no effect on them any more.
    pub fn too_late_to_hold(&self) -> impl Iterator<Item = &Event> {
        let is_decided = |event: &&Event| event.stage() >= Stage::Claimed || event.has_isolated_approval();
        self.open_events().filter(is_decided).filter(|event| !event.stage().is_over())
    }
}

impl Event {
    /// The hold in force. Every hold ends with the event.
    pub fn hold(&self, now: Timestamp) -> Option<Suspension> {
        let halt = last(&self.operator_records, OperatorRecord::holds_or_releases)?.suspension_of(now);
        halt.filter(|_| self.stage() < Stage::Started)
    }

    /// An operator approved the event, and no operator has held the event since.
    pub fn is_approved_by_operator(&self) -> bool {
        self.approval_among(&self.operator_records).is_some()
    }

    /// The approval counts for the revision that the operator saw. A later decision needs a new approval.
    fn approval_among<'a>(&self, records: &'a [OperatorRecord]) -> Option<&'a OperatorRecord> {
        let is_of_this = |wish: &&OperatorRecord| matches!(wish.what, OperatorAction::Approve { revision, .. } if revision >= self.decided_at_revision);
        last(records, OperatorRecord::holds_or_approves).filter(is_of_this)
    }

    /// An operator approved the event regardless of other members out of service, and no operator has held the event
    /// since.
    pub fn is_over_budget(&self) -> bool {
        let last = last(&self.operator_records, OperatorRecord::holds_or_approves);
        let is_it = |wish: &OperatorRecord| matches!(wish.what, OperatorAction::Approve { over_budget: true, .. });
        self.is_approved_by_operator() && last.is_some_and(is_it)
    }

    /// The time from which an operator wants the event prepared, unless an operator has held the event since. The request
    /// counts for the event that the operator saw: an event that came back, or that takes further VMs, needs a new
    /// request.
    pub fn asked_to_prepare_from(&self) -> Option<Timestamp> {
        self.preparation_among(&self.operator_records).map(|(_, from)| from)
    }

    fn preparation_among<'a>(&self, records: &'a [OperatorRecord]) -> Option<(&'a OperatorRecord, Timestamp)> {
        let record = last(records, OperatorRecord::holds_or_prepares)?;
        match record.what {
            OperatorAction::Prepare { from, revision } if revision >= self.decided_at_revision => Some((record, from)),
            _ => None,
        }
    }

    /// The requests of operators that the last hold has taken back.
    pub fn taken_back(&self) -> impl Iterator<Item = &OperatorRecord> {
        let is_hold = |record: &OperatorRecord| matches!(record.what, OperatorAction::Hold { .. });
        let before = self.operator_records.iter().rposition(is_hold).unwrap_or_default();
        let before = self.operator_records.get(..before).unwrap_or_default();
        self.approval_among(before).into_iter().chain(self.preparation_among(before).map(|(record, _)| record))
    }

    /// The last attempt of this hook before an operator's last retry of the hook, and the number of the request.
    /// Attempts up to this one no longer count.
    pub(crate) fn retry_of(&self, member: &Member, hook: HookId) -> Option<(AttemptId, u64)> {
        self.operator_records.iter().rev().find_map(|record| match &record.what {
            OperatorAction::Retry { member: of, hook: what, after } if of == member && *what == hook => {
                Some((*after, record.number))
            }
            _ => None,
        })
    }

    pub fn retried_after(&self, member: &Member, hook: HookId) -> Option<AttemptId> {
        self.retry_of(member, hook).map(|(after, _)| after)
    }

    /// The time of an operator's last retry of any hook.
    pub(crate) fn last_retry(&self) -> Option<Timestamp> {
        let retries = |record: &OperatorRecord| matches!(record.what, OperatorAction::Retry { .. });
        last(&self.operator_records, retries).map(|record| record.at)
    }

    /// An operator skipped this hook.
    pub fn is_skipped(&self, member: &Member, hook: HookId) -> bool {
        let skips = |waiver: &Waiver| matches!(waiver.why, WaiverReason::Skipped { .. });
        self.waivers.iter().any(|waiver| waiver.member == *member && waiver.hook == hook && skips(waiver))
    }
}

impl State {
    /// The pause in force.
    pub fn pause(&self, now: Timestamp) -> Option<Suspension> {
        last(&self.operator_records, OperatorRecord::pauses_or_resumes)?.suspension_of(now)
    }
}
