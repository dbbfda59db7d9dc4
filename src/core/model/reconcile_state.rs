//! The beginning of a leadership, and the state of a voter that may hold unreported approvals.

use crate::model::id::VmName;
use crate::model::time::Timestamp;
use alloc::vec::Vec;

/// The beginning of a leadership: of a term, or of a leader that regains its quorum within the term.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Leadership {
    pub by: VmName,
    pub term: u64,
    /// How often the leader has found a quorum within the term.
    pub turn: u64,
    pub voters: Vec<VmName>,
}

/// Whether a voter may be approving alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ReconcileState {
    /// Every loss of contact and every beginning of a leadership starts a new number.
    pub number: u64,
    /// When this number was started.
    pub since: Timestamp,
    /// The voter has reconciled its journal under this number.
    pub is_reconciled: bool,
}
