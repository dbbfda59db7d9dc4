//! The interface of the state machine. The caller gives entries their meaning; consensus keeps their order and
//! durability.

/// An entry, proposal or snapshot that this program does not understand.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotUnderstood(pub String);

/// The state that the log folds into. Everything in it is the caller's; consensus only keeps order and durability.
pub trait StateMachine: Send + Sync + 'static {
    /// On the leader: false while there is no clock to stamp by. What is proposed then is to be proposed again.
    fn can_stamp(&self) -> bool {
        true
    }

    /// On the leader, once per proposal: turns what replica `by` proposed into the entry to append
    /// (stamps the leader's clock).
    fn stamp_entry(&self, proposal: &[u8], by: &str) -> Result<Vec<u8>, NotUnderstood>;

    /// Whether this program can apply the entry, whenever that comes to be committed.
    fn understands(&self, entry: &[u8]) -> Result<(), NotUnderstood>;

    /// Whether this program can take this snapshot over. Changes nothing.
    fn understands_snapshot(&self, snapshot: &[u8]) -> Result<(), NotUnderstood>;

    /// An operator removed the replica of this name: it is not brought in again by itself.
    fn excludes(&self, _replica: &str) -> bool {
        false
    }

    /// On every replica, in order. Returns the verdict that the proposer receives.
    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Vec<u8>, NotUnderstood>;

    /// After each batch: publish what was applied. Verdicts are handed out only after it returned.
    fn published(&mut self);

    /// The whole state, so that the log before it can be dropped.
    fn snapshot(&self) -> Vec<u8>;

    /// Replaces the whole state.
    fn restore(&mut self, snapshot: &[u8]) -> Result<(), NotUnderstood>;
}
