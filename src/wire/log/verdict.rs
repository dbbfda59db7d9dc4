//! What became of an entry.

use super::pb;
use super::pb::verdict::Variant;
use super::stored::{Stored, named, numbered};
use super::undecodable::{Fault, Undecodable};
use crate::machine::command::{Ignored, Verdict};

impl Stored for Verdict {
    type Message = pb::Verdict;

    fn store(&self) -> pb::Verdict {
        let variant = match self {
            Self::Applied => Variant::Applied(pb::Nothing {}),
            Self::Ignored(why) => Variant::Ignored(why.store()),
        };
        pb::Verdict { variant: Some(variant) }
    }

    fn restore(message: pb::Verdict) -> Result<Self, Undecodable> {
        Ok(match message.variant.ok_or(Fault::UnknownVariant)? {
            Variant::Applied(pb::Nothing {}) => Self::Applied,
            Variant::Ignored(why) => Self::Ignored(named(Ignored::restore(why), "ignored")?),
        })
    }
}

numbered!(Ignored as Ignored {
    UnknownReplica,
    UnknownEvent,
    UnknownAttempt,
    TooManyEvents,
    OutOfOrder,
    Repeated,
    Late,
    NotDue,
    NotNow,
    NotYours,
    Changed,
    Held,
    Paused,
    Unbounded,
    TooManyWorkloads,
});
