//! What operators asked for.

use super::pb;
use super::pb::wish::Variant;
use super::stored::{Stored, restored};
use super::tables::take;
use super::undecodable::{Fault, Undecodable};
use allclear_core::model::operator::{What, Wish};
use allclear_core::model::time::Timestamp;

impl Stored for Wish {
    type Message = pb::Wish;

    fn store(&self) -> pb::Wish {
        let variant = match &self.what {
            What::Hold { until, .. } => Variant::HoldUntilUnixMs(until.store()),
            What::Release => Variant::Release(pb::Nothing {}),
            What::Approve { revision, .. } => Variant::ApproveRevision(*revision),
            What::Restored(member) => Variant::Restored(member.store()),
            What::Pause { until } => Variant::PauseUntilUnixMs(until.store()),
            What::Resume => Variant::Resume(pb::Nothing {}),
            What::Other(what) => Variant::Other(what.clone()),
        };
        pb::Wish {
            number: self.number,
            at_unix_ms: self.at.store(),
            who: self.who.clone(),
            reason: self.reason.clone(),
            variant: Some(variant),
            no_hooks: matches!(self.what, What::Hold { no_hooks: true, .. }),
            over_budget: matches!(self.what, What::Approve { over_budget: true, .. }),
        }
    }

    fn restore(message: pb::Wish) -> Result<Self, Undecodable> {
        let what = match message.variant.ok_or(Fault::UnknownVariant)? {
            Variant::HoldUntilUnixMs(until) => What::Hold { until: Timestamp(until), no_hooks: message.no_hooks },
            Variant::Release(pb::Nothing {}) => What::Release,
            Variant::ApproveRevision(revision) => What::Approve { revision, over_budget: message.over_budget },
            Variant::Restored(member) => What::Restored(restored(member, "restored")?),
            Variant::PauseUntilUnixMs(until) => What::Pause { until: Timestamp(until) },
            Variant::Resume(pb::Nothing {}) => What::Resume,
            Variant::Other(what) => What::Other(what),
        };
        let (number, at) = (message.number, take!(message.at_unix_ms at "at_unix_ms"));
        Ok(Self { number, at, who: message.who, reason: message.reason, what })
    }
}
