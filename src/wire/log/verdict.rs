//! Results of applying an entry.

use super::pb;
use super::stored::Stored;
use super::tables::{numbered, one_of, store};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::command::{ApplyResult, Rejection};

one_of!(ApplyResult as apply_result { Applied, Rejected(rejected) });

numbered!(Rejection as Rejection {
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
