//! Who approves, and what becomes of an approval. It counts for every VM of the event and cannot be taken back.

use crate::machine::id::{EventId, VmName};
use crate::machine::time::Timestamp;

use super::Cloud;
use super::due::Change;

/// Who has approved.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Approver {
    /// From inside the VM.
    Vm(VmName),
    /// A policy, the control plane, an operator.
    Other(String),
}

/// What the platform makes of it. Which status code it answers with is the concern of `fake_cloud`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Approval {
    /// The first one.
    Accepted,
    /// Somebody was first.
    Repeated,
    Started,
    Finished,
    /// Never announced, or not to this VM.
    Unknown,
}

impl Cloud {
    /// Takes an approval at a time.
    pub fn approve(&mut self, now: Timestamp, by: Approver, id: &EventId) -> Approval {
        self.advance(now);
        let Some(ordinal) = self.events.iter().position(|event| event.id == *id) else { return Approval::Unknown };
        let Some(event) = self.events.get(ordinal) else { return Approval::Unknown };
        if let Approver::Vm(vm) = &by
            && !self.is_shown_to(vm, event)
            && event.ended.is_none()
        {
            return Approval::Unknown;
        }
        if event.ended.is_some() {
            return Approval::Finished;
        }
        if event.started.is_some() {
            return Approval::Started;
        }
        if event.accepted.is_some() {
            return Approval::Repeated;
        }
        self.apply_change(ordinal, Change::Accept(by));
        self.settle();
        Approval::Accepted
    }
}
