//! What replicas did without a quorum, who leads, and whom the cluster is not sure of.

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, pair, store, take};
use super::undecodable::Undecodable;
use allclear_core::model::id::VmName;
use allclear_core::model::suspicion::{Leadership, Suspicion};
use allclear_core::model::takeover::{Journaled, RequestedBy, Takeover};

message!(Takeover as Takeover {
    approver: approver,
    at: at_unix_ms,
    alone_since: alone_since_unix_ms,
    out_of_reach: out_of_reach,
    requested_by: requested_by,
    outcome: outcome,
    recorded: recorded_unix_ms,
});

message!(RequestedBy as RequestedBy { who: who, reason: reason });

message!(Journaled as Journaled { announcement: announcement required, takeover: takeover required });

message!(Leadership as Leadership { by: by, term: term, turn: turn, voters: voters });

pair!(VmName, Suspicion as Suspicion {
    replica: replica,
    { number: number, since: since_unix_ms, is_cleared: is_cleared }
});
