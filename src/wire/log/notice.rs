//! What other systems were told.

use std::collections::BTreeSet;

use super::pb;
use super::stored::{Stored, named, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::notice::{Noted, Told};

impl Stored for Told {
    type Message = pb::Told;

    fn store(&self) -> pb::Told {
        pb::Told { notice: self.notice.clone(), receiver: self.receiver.clone() }
    }

    fn restore(message: pb::Told) -> Result<Self, Undecodable> {
        Ok(Self { notice: message.notice, receiver: message.receiver })
    }
}

impl Stored for (String, Noted) {
    type Message = pb::Noted;

    fn store(&self) -> pb::Noted {
        let (notice, Noted { at, receivers }) = self;
        pb::Noted { notice: notice.clone(), at_unix_ms: at.store(), receivers: receivers.iter().cloned().collect() }
    }

    fn restore(message: pb::Noted) -> Result<Self, Undecodable> {
        let count = message.receivers.len();
        let receivers: BTreeSet<String> = message.receivers.into_iter().collect();
        if receivers.len() != count {
            return named(Err(Fault::Twice.into()), "receivers");
        }
        Ok((message.notice, Noted { at: take!(message.at_unix_ms), receivers }))
    }
}
