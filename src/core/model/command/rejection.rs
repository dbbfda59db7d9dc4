//! The result of applying an entry.

/// The result of applying an entry. An illegal, repeated or late command is ignored, never an error.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum ApplyResult {
    Applied,
    Rejected(Rejection),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Rejection {
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
    /// The event has changed since the operator saw it.
    Changed,
    /// An operator's hold is in force.
    Held,
    /// An operator's pause is in force.
    Paused,
    /// The hold or pause would not end, has ended, or would last too long.
    Unbounded,
    TooManyWorkloads,
}

string_enum!(Rejection {
    UnknownReplica => "unknown_replica",
    UnknownEvent => "unknown_event",
    UnknownAttempt => "unknown_attempt",
    TooManyEvents => "too_many_events",
    OutOfOrder => "out_of_order",
    Repeated => "repeated",
    Late => "late",
    NotDue => "not_due",
    NotNow => "not_now",
    NotYours => "not_yours",
    Changed => "changed",
    Held => "held",
    Paused => "paused",
    Unbounded => "unbounded",
    TooManyWorkloads => "too_many_workloads",
});
