//! What became of an entry.

use super::pb;
use super::stored::Stored;
use super::tables::{numbered, one_of, store};
use super::undecodable::{Fault, Undecodable};
use allclear_core::model::command::{Ignored, Verdict};

one_of!(Verdict as verdict { Applied, Ignored(ignored) });

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
