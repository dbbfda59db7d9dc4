//! Records of operators' requests.

use super::pb;
use super::pb::operator_record::Variant;
use super::stored::{Stored, restored};
use super::tables::take;
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::operator::{OperatorAction, OperatorRecord};
use allclear_core::model::time::Timestamp;

impl Stored for OperatorRecord {
    type Message = pb::OperatorRecord;

    fn store(&self) -> pb::OperatorRecord {
        let variant = match &self.what {
            OperatorAction::Hold { until, .. } => Variant::HoldUntilUnixMs(until.store()),
            OperatorAction::Release => Variant::Release(pb::Nothing {}),
            OperatorAction::Approve { revision, .. } => Variant::ApproveRevision(*revision),
            OperatorAction::Prepare { from, revision } => {
                let (from_unix_ms, revision) = (from.store(), *revision);
                Variant::Prepare(pb::operator_record::Prepare { from_unix_ms, revision })
            }
            OperatorAction::Retry { member, hook, after } => {
                let (member, hook) = (Some(member.store()), Some(hook.store()));
                Variant::Retry(pb::operator_record::Retry { member, hook, after: after.store() })
            }
            OperatorAction::Restored(member) => Variant::Restored(member.store()),
            OperatorAction::Pause { until } => Variant::PauseUntilUnixMs(until.store()),
            OperatorAction::Resume => Variant::Resume(pb::Nothing {}),
            OperatorAction::ClusterChange(what) => Variant::ClusterChange(what.clone()),
        };
        pb::OperatorRecord {
            number: self.number,
            at_unix_ms: self.at.store(),
            who: self.who.clone(),
            reason: self.reason.clone(),
            variant: Some(variant),
            no_hooks: matches!(self.what, OperatorAction::Hold { no_hooks: true, .. }),
            over_budget: matches!(self.what, OperatorAction::Approve { over_budget: true, .. }),
        }
    }

    fn restore(message: pb::OperatorRecord) -> Result<Self, Undecodable> {
        let what = match message.variant.ok_or(DecodeFault::UnknownVariant)? {
            Variant::HoldUntilUnixMs(until) => {
                OperatorAction::Hold { until: Timestamp(until), no_hooks: message.no_hooks }
            }
            Variant::Release(pb::Nothing {}) => OperatorAction::Release,
            Variant::ApproveRevision(revision) => {
                OperatorAction::Approve { revision, over_budget: message.over_budget }
            }
            Variant::Prepare(prepare) => {
                OperatorAction::Prepare { from: Timestamp(prepare.from_unix_ms), revision: prepare.revision }
            }
            Variant::Retry(retry) => OperatorAction::Retry {
                member: take!(retry.member required at "member"),
                hook: take!(retry.hook required at "hook"),
                after: take!(retry.after at "after"),
            },
            Variant::Restored(member) => OperatorAction::Restored(restored(member, "restored")?),
            Variant::PauseUntilUnixMs(until) => OperatorAction::Pause { until: Timestamp(until) },
            Variant::Resume(pb::Nothing {}) => OperatorAction::Resume,
            Variant::ClusterChange(what) => OperatorAction::ClusterChange(what),
        };
        let (number, at) = (message.number, take!(message.at_unix_ms at "at_unix_ms"));
        Ok(Self { number, at, who: message.who, reason: message.reason, what })
    }
}
