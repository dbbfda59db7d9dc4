//! What replicas did without a quorum, who leads, and whom the cluster is not sure of.

use super::pb;
use super::stored::{Stored, named, required, take};
use super::undecodable::Undecodable;
use crate::machine::id::VmName;
use crate::machine::suspicion::{Leadership, Suspicion};
use crate::machine::takeover::{Journaled, RequestedBy, Takeover};

impl Stored for Takeover {
    type Message = pb::Takeover;

    fn store(&self) -> pb::Takeover {
        pb::Takeover {
            approver: self.approver.store(),
            at_unix_ms: self.at.store(),
            alone_since_unix_ms: self.alone_since.store(),
            out_of_reach: self.out_of_reach.store(),
            requested_by: self.requested_by.store(),
            outcome: self.outcome.store(),
            recorded_unix_ms: self.recorded.store(),
        }
    }

    fn restore(message: pb::Takeover) -> Result<Self, Undecodable> {
        Ok(Self {
            approver: take!(message.approver),
            at: take!(message.at_unix_ms),
            alone_since: take!(message.alone_since_unix_ms),
            out_of_reach: take!(message.out_of_reach),
            requested_by: take!(message.requested_by),
            outcome: take!(message.outcome),
            recorded: take!(message.recorded_unix_ms),
        })
    }
}

impl Stored for RequestedBy {
    type Message = pb::RequestedBy;

    fn store(&self) -> pb::RequestedBy {
        pb::RequestedBy { who: self.who.clone(), reason: self.reason.clone() }
    }

    fn restore(message: pb::RequestedBy) -> Result<Self, Undecodable> {
        Ok(Self { who: message.who, reason: message.reason })
    }
}

impl Stored for Journaled {
    type Message = pb::Journaled;

    fn store(&self) -> pb::Journaled {
        pb::Journaled { announcement: Some(self.announcement.store()), takeover: Some(self.takeover.store()) }
    }

    fn restore(message: pb::Journaled) -> Result<Self, Undecodable> {
        Ok(Self { announcement: take!(required message.announcement), takeover: take!(required message.takeover) })
    }
}

impl Stored for Leadership {
    type Message = pb::Leadership;

    fn store(&self) -> pb::Leadership {
        pb::Leadership { by: self.by.store(), term: self.term, turn: self.turn }
    }

    fn restore(message: pb::Leadership) -> Result<Self, Undecodable> {
        Ok(Self { by: take!(message.by), term: message.term, turn: message.turn })
    }
}

impl Stored for (VmName, Suspicion) {
    type Message = pb::Suspicion;

    fn store(&self) -> pb::Suspicion {
        let (replica, suspicion) = self;
        pb::Suspicion {
            replica: replica.store(),
            number: suspicion.number,
            since_unix_ms: suspicion.since.store(),
            is_cleared: suspicion.is_cleared,
        }
    }

    fn restore(message: pb::Suspicion) -> Result<Self, Undecodable> {
        let suspicion =
            Suspicion { number: message.number, since: take!(message.since_unix_ms), is_cleared: message.is_cleared };
        Ok((take!(message.replica), suspicion))
    }
}
