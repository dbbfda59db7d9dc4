//! What operators asked for.

use super::pb;
use super::pb::command::{self, Variant};
use super::pb::wish::Variant as Kept;
use super::stored::{Stored, named, required, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::command::Command;
use crate::machine::operator::{Asked, What, Wish};
use crate::machine::time::Timestamp;

impl Stored for Wish {
    type Message = pb::Wish;

    fn store(&self) -> pb::Wish {
        let variant = match &self.what {
            What::Hold { until } => Kept::HoldUntilUnixMs(until.store()),
            What::Release => Kept::Release(pb::Nothing {}),
            What::Approve { revision } => Kept::ApproveRevision(*revision),
            What::Pause { until } => Kept::PauseUntilUnixMs(until.store()),
            What::Resume => Kept::Resume(pb::Nothing {}),
            What::Other(what) => Kept::Other(what.clone()),
        };
        pb::Wish {
            number: self.number,
            at_unix_ms: self.at.store(),
            who: self.who.clone(),
            reason: self.reason.clone(),
            variant: Some(variant),
        }
    }

    fn restore(message: pb::Wish) -> Result<Self, Undecodable> {
        let what = match message.variant.ok_or(Fault::UnknownVariant)? {
            Kept::HoldUntilUnixMs(until) => What::Hold { until: Timestamp(until) },
            Kept::Release(pb::Nothing {}) => What::Release,
            Kept::ApproveRevision(revision) => What::Approve { revision },
            Kept::PauseUntilUnixMs(until) => What::Pause { until: Timestamp(until) },
            Kept::Resume(pb::Nothing {}) => What::Resume,
            Kept::Other(what) => What::Other(what),
        };
        let (number, at) = (message.number, take!(message.at_unix_ms));
        Ok(Self { number, at, who: message.who, reason: message.reason, what })
    }
}

/// The command for what an operator asks.
pub(super) fn variant(what: &Asked, who: &str, reason: &str) -> Variant {
    let (who, reason) = (who.into(), reason.into());
    match what {
        Asked::Hold { event, until } => {
            Variant::Hold(command::Hold { event_id: event.store(), until_unix_ms: until.store(), reason, who })
        }
        Asked::Release { event } => Variant::Release(command::Release { event_id: event.store(), reason, who }),
        Asked::Pause { until } => Variant::Pause(command::Pause { until_unix_ms: until.store(), reason, who }),
        Asked::Resume => Variant::Resume(command::Resume { reason, who }),
        Asked::Approve { event, revision } => {
            Variant::Approve(command::Approve { event_id: event.store(), revision: *revision, reason, who })
        }
        Asked::Skip { event, member, hook } => Variant::Skip(command::Skip {
            event_id: event.store(),
            member: Some(member.store()),
            hook: Some(hook.store()),
            reason,
            who,
        }),
        Asked::Wish { what } => Variant::Wish(command::Wish { what: what.clone(), reason, who }),
    }
}

pub(super) fn hold(hold: command::Hold) -> Result<Command, Undecodable> {
    let what = Asked::Hold { event: take!(variant hold.event_id), until: take!(variant hold.until_unix_ms) };
    Ok(Command::Ask { what, who: hold.who, reason: hold.reason })
}

pub(super) fn release(release: command::Release) -> Result<Command, Undecodable> {
    let what = Asked::Release { event: take!(variant release.event_id) };
    Ok(Command::Ask { what, who: release.who, reason: release.reason })
}

pub(super) fn pause(pause: command::Pause) -> Result<Command, Undecodable> {
    let what = Asked::Pause { until: take!(variant pause.until_unix_ms) };
    Ok(Command::Ask { what, who: pause.who, reason: pause.reason })
}

pub(super) fn resume(resume: command::Resume) -> Command {
    Command::Ask { what: Asked::Resume, who: resume.who, reason: resume.reason }
}

pub(super) fn approve(approve: command::Approve) -> Result<Command, Undecodable> {
    let what = Asked::Approve { event: take!(variant approve.event_id), revision: approve.revision };
    Ok(Command::Ask { what, who: approve.who, reason: approve.reason })
}

pub(super) fn skip(skip: command::Skip) -> Result<Command, Undecodable> {
    let what = Asked::Skip {
        event: take!(variant skip.event_id),
        member: take!(required variant skip.member),
        hook: take!(required variant skip.hook),
    };
    Ok(Command::Ask { what, who: skip.who, reason: skip.reason })
}

pub(super) fn wish(wish: command::Wish) -> Command {
    Command::Ask { what: Asked::Wish { what: wish.what }, who: wish.who, reason: wish.reason }
}
