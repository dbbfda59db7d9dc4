//! What policy chose for an event.

use super::pb;
use super::stored::{Stored, named, numbered, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::policy::{Action, Treatment};

impl Stored for Treatment {
    type Message = pb::Treatment;

    fn store(&self) -> pb::Treatment {
        pb::Treatment {
            action: self.action.store(),
            rule: self.rule.clone(),
            phases: self.phases.store(),
            budget_ms: self.budget.store(),
            ahead_ms: self.ahead.store(),
            only_named_freezes: self.only_named_freezes,
            margin_ms: self.margin.store(),
            restore_timeout_ms: self.restore_timeout.store(),
        }
    }

    fn restore(message: pb::Treatment) -> Result<Self, Undecodable> {
        Ok(Self {
            action: take!(message.action),
            rule: message.rule,
            phases: take!(message.phases),
            budget: take!(message.budget_ms),
            ahead: take!(message.ahead_ms),
            only_named_freezes: message.only_named_freezes,
            margin: take!(message.margin_ms),
            restore_timeout: take!(message.restore_timeout_ms),
        })
    }
}

numbered!(Action as Action { Prepare, Approve, Observe });
