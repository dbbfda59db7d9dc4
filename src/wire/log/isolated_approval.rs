//! Isolated approvals, leadership, and unreconciled replicas.

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, pair, store, take};
use super::undecodable::Undecodable;
use allclear_core::model::id::VmName;
use allclear_core::model::isolated_approval::{IsolatedApproval, JournalEntry, RequestedBy};
use allclear_core::model::reconcile_state::{Leadership, ReconcileState};

message!(IsolatedApproval as IsolatedApproval {
    approver: approver,
    at: at_unix_ms,
    alone_since: alone_since_unix_ms,
    out_of_reach: out_of_reach,
    requested_by: requested_by,
    outcome: outcome,
    recorded: recorded_unix_ms,
});

message!(RequestedBy as RequestedBy { who: who, reason: reason });

message!(JournalEntry as JournalEntry { announcement: announcement required, approval: approval required });

message!(Leadership as Leadership { by: by, term: term, turn: turn, voters: voters });

pair!(VmName, ReconcileState as ReconcileState {
    replica: replica,
    { number: number, since: since_unix_ms, is_reconciled: is_reconciled }
});
