//! The interface of the state machine. The caller gives entries their meaning; consensus keeps their order and
//! durability.

use super::raft_status::RaftStatus;

/// An entry, proposal or snapshot that this program does not understand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotUnderstood(pub String);

/// The state built from the log. The content is the caller's; consensus only keeps order and durability.
pub trait StateMachine: Send + Sync + 'static {
    /// On the leader: false while this proposal has to wait, for a clock to stamp by or for another entry. The proposal is
    /// to be repeated then.
    fn can_stamp(&self, _proposal: &[u8], _status: &RaftStatus) -> bool {
        true
    }

    /// On the leader, once per proposal: turns the proposal of replica `by` into the entry to append (stamps the
    /// leader's clock).
    fn stamp_entry(&self, proposal: &[u8], by: &str) -> Result<Vec<u8>, NotUnderstood>;

    /// Whether this program can apply the entry, whenever the entry is committed.
    fn understands(&self, entry: &[u8]) -> Result<(), NotUnderstood>;

    /// Whether this program can restore this snapshot. Changes nothing.
    fn understands_snapshot(&self, snapshot: &[u8]) -> Result<(), NotUnderstood>;

    /// True if an operator removed the replica of this name: the replica is not added again automatically.
    fn excludes(&self, _replica: &str) -> bool {
        false
    }

    /// Applies an entry, on every replica, in order. Returns the verdict for the proposer.
    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Vec<u8>, NotUnderstood>;

    /// After each batch: publishes the applied entries. Verdicts are sent only after the return.
    fn published(&mut self);

    /// The whole state, so that the log before the snapshot can be dropped.
    fn snapshot(&self) -> Vec<u8>;

    /// Replaces the whole state.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), NotUnderstood>;
}
