//! Events as the cluster knows them.

use std::time::Duration;

use super::pb;
use super::state::keyed;
use super::stored::{Stored, named, numbered, required, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::attempt::Attempt;
use crate::machine::attempts::Attempts;
use crate::machine::drill::{Drill, Mode};
use crate::machine::event::{Ending, Event};
use crate::machine::id::VmName;
use crate::machine::lifecycle::Stage;
use crate::machine::time::Timestamp;

impl Stored for Event {
    type Message = pb::Event;

    fn store(&self) -> pb::Event {
        pb::Event {
            announcement: Some(self.announcement.store()),
            seen_by: self.seen_by.store(),
            entered: self.entered.store(),
            revision: self.revision,
            treatment: self.treatment.store(),
            attempts: self.attempts.store(),
            waivers: self.waivers.store(),
            claims: self.claims.store(),
            ending: self.ending.store(),
            takeovers: self.takeovers.store(),
            departed: self.departed.store(),
            drill: self.drill.store(),
            wishes: self.wishes.store(),
            impacts: self.impacts.iter().map(|(vm, lasted)| (vm.clone(), *lasted).store()).collect(),
            treated_unix_ms: self.treated.store(),
        }
    }

    fn restore(message: pb::Event) -> Result<Self, Undecodable> {
        Ok(Self {
            announcement: take!(required message.announcement),
            seen_by: take!(message.seen_by),
            entered: take!(message.entered),
            revision: message.revision,
            treatment: take!(message.treatment),
            attempts: take!(message.attempts),
            waivers: take!(message.waivers),
            claims: take!(message.claims),
            ending: take!(message.ending),
            takeovers: take!(message.takeovers),
            departed: take!(message.departed),
            drill: take!(message.drill),
            wishes: take!(message.wishes),
            treated: take!(message.treated_unix_ms),
            impacts: named(keyed(message.impacts.into_iter().map(Stored::restore)), "impacts")?,
        })
    }
}

impl Stored for (VmName, Duration) {
    type Message = pb::Impact;

    fn store(&self) -> pb::Impact {
        let (vm, lasted) = self;
        pb::Impact { vm: vm.store(), lasted_ms: lasted.store() }
    }

    fn restore(message: pb::Impact) -> Result<Self, Undecodable> {
        Ok((take!(message.vm), take!(message.lasted_ms)))
    }
}

impl Stored for Attempts {
    type Message = Vec<pb::Attempt>;

    fn store(&self) -> Self::Message {
        self.iter().map(Attempt::store).collect()
    }

    fn restore(messages: Self::Message) -> Result<Self, Undecodable> {
        Ok(Vec::restore(messages)?.into())
    }
}

impl Stored for Drill {
    type Message = pb::Drill;

    fn store(&self) -> pb::Drill {
        pb::Drill { mode: self.mode.store(), who: self.who.clone() }
    }

    fn restore(message: pb::Drill) -> Result<Self, Undecodable> {
        Ok(Self { mode: take!(message.mode), who: message.who })
    }
}

impl Stored for (Stage, Timestamp) {
    type Message = pb::Step;

    fn store(&self) -> pb::Step {
        let (stage, at) = self;
        pb::Step { stage: stage.store(), at_unix_ms: at.store() }
    }

    fn restore(message: pb::Step) -> Result<Self, Undecodable> {
        Ok((take!(message.stage), take!(message.at_unix_ms)))
    }
}

numbered!(Stage as Stage { Announced, Preparing, Claimed, Approved, Started, Restoring, Closed });
numbered!(Ending as Ending { Completed, Cancelled, Forgotten, Drilled, Interrupted });
numbered!(Mode as DrillMode { DryRun, Rehearsal });
