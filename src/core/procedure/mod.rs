//! Procedures of a replica: sequences of steps with waits between them. A procedure decides when each step is due, and
//! runs on a [`Host`]. The program's host is the process beside a database; the simulator's host is a simulated
//! machine.

pub mod approval;
pub mod executor;
pub mod isolated_approval;
pub mod reconciliation;

use crate::model::claim::PostOutcome;
use crate::model::document::Document;
use crate::model::id::{AttemptId, EventId, VmName};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::planning_input::Timing;
use alloc::string::String;
use core::ops::Deref;
use core::time::Duration;

/// The reason of one approval that a host posts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PostReason {
    /// The log has a claim of this attempt.
    Claim(AttemptId),
    /// The log has a claim of this attempt, and there is no fresh document: the approval goes through the control plane.
    LastResort(AttemptId),
    /// The journal has an isolated approval begun at this time.
    Isolated(Timestamp),
}

/// The replica that runs a procedure: its clocks, its copy of the state, and its metadata service.
#[allow(
    async_fn_in_trait,
    reason = "a host that spawns a procedure names itself, and the compiler checks that host's futures"
)]
pub trait Host {
    type State: Deref<Target = State>;

    /// The replica's name.
    fn name(&self) -> &VmName;

    /// The state as far as this replica has applied the log.
    fn state(&self) -> Self::State;

    fn timing(&self) -> &Timing;

    /// The monotonic clock of this machine.
    fn monotonic(&self) -> Timestamp;

    /// The cluster time.
    fn cluster_time(&self) -> Timestamp;

    /// Converts a timestamp of the monotonic clock to cluster time.
    fn to_cluster_time(&self, monotonic: Timestamp) -> Timestamp {
        self.cluster_time().minus(self.monotonic().since(monotonic))
    }

    async fn sleep(&self, duration: Duration);

    /// Requests a document of the metadata service.
    ///
    /// # Errors
    /// The reason why there is no document.
    async fn fresh_document(&self) -> Result<Document, String>;

    /// The document of the last poll; `None` while the metadata service does not answer.
    fn trusted_document(&self) -> Option<Document>;

    /// True once a quorum has confirmed that `state` was current after this call.
    async fn ensure_linearizable(&self) -> bool;

    /// Posts the approval of an event, once. Posts nothing if another request of this replica occupies the metadata service
    /// for longer than `within`: the permission to post ends then.
    async fn post(&self, event: &EventId, reason: PostReason, within: Duration) -> PostOutcome;
}
