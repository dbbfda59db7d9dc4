//! The executor: passes each assignment of the committed state to the host.

use super::Host;
use super::approval::OwnClaim;
use crate::assignments::{Assignment, assignments, is_of_session, predates_disk};
use crate::model::attempt::Attempt;
use crate::model::event::Event;
use crate::model::id::AttemptId;
use crate::model::state::State;
use crate::schedule::attempts;
use alloc::collections::BTreeSet;
use core::time::Duration;

/// The pause after a failed confirmation.
const CONFIRM_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Facts of the log about this replica when the current run had caught up.
#[derive(Clone, Copy, Debug)]
pub struct LeftOver {
    /// The last attempt of the log. A previous run may have acted on this attempt and on earlier attempts.
    pub attempt: AttemptId,
    /// A previous run had registered.
    pub is_known: bool,
}

/// An attempt assigned to this replica by the log.
#[derive(Clone, Copy, Debug)]
pub struct AssignedAttempt<'a> {
    pub event: &'a Event,
    pub attempt: &'a Attempt,
    /// A second start is allowed if the first start was lost with the machine.
    pub restart_restore_if_lost: bool,
    /// A previous run may have begun the attempt.
    pub is_left_over: bool,
}

/// Requirements of the executor for the host, beside [`Host`].
pub trait ExecutorHost: Host {
    /// The host runs this attempt, or has a record of the attempt.
    fn knows_attempt(&self, event: &Event, attempt: &Attempt) -> bool;

    /// Starts the attempt, records the outcome, or leaves the attempt running.
    fn drive_attempt(&self, assigned: AssignedAttempt<'_>);

    /// Stops the attempt. The outcome of an attempt that never started is recorded at once.
    fn stop_attempt(&self, assigned: AssignedAttempt<'_>);

    /// Begins the approval of a claim beside the executor.
    fn begin_approval(&self, claim: OwnClaim);

    /// Stops attempts settled in the log, and drops their records; true while some of these attempts still run.
    fn cleanup(&self, state: &State) -> bool;

    /// Marks the disk as complete: every attempt that predates this disk is settled.
    fn complete_disk(&self);
}

/// Waits until this replica has applied every entry committed before the wait began.
pub async fn catch_up<H: Host>(host: &H) -> LeftOver {
    while !host.ensure_linearizable().await {
        host.sleep(CONFIRM_AGAIN_AFTER).await;
    }
    let state = host.state();
    LeftOver { attempt: AttemptId(state.attempts), is_known: state.replicas.contains_key(host.name()) }
}

/// The state of an executor between two passes.
#[derive(Debug)]
pub struct Executor {
    /// Attempts up to this id may be left over from a previous run.
    left_over: AttemptId,
    /// Attempts up to this id may have begun on a lost disk.
    lost_disk: AttemptId,
    is_disk_new: bool,
    approvals_begun: BTreeSet<AttemptId>,
}

impl Executor {
    pub const fn new(left_over: AttemptId, is_disk_new: bool) -> Self {
        let lost_disk = if is_disk_new { left_over } else { AttemptId(0) };
        Self { left_over, lost_disk, is_disk_new, approvals_begun: BTreeSet::new() }
    }

    /// Passes each assignment to the host. True if another pass is due soon, though the state does not change.
    pub fn run<H: ExecutorHost>(&mut self, host: &H, state: &State) -> bool {
        let assignments = assignments(state, host.name());
        let is_busy = !assignments.is_empty();
        let mut is_in_doubt = false;
        for assignment in assignments {
            match assignment {
                // The attempt may run on the lost disk's machine. The leader settles the attempt after its latest end.
                Assignment::Run { event, attempt, .. } | Assignment::Cancel { event, attempt }
                    if predates_disk(state, attempt, self.lost_disk) && !host.knows_attempt(event, attempt) =>
                {
                    is_in_doubt = true;
                }
                // A workload may go on with an attempt that began before this replica restarted.
                Assignment::Run { event, attempt, .. }
                    if attempts::is_too_late(event, attempt)
                        && !host.knows_attempt(event, attempt)
                        && !(attempt.id <= self.left_over && is_of_session(state, attempt)) =>
                {
                    let is_left_over = attempt.id <= self.left_over;
                    host.stop_attempt(AssignedAttempt { event, attempt, restart_restore_if_lost: false, is_left_over });
                }
                Assignment::Run { event, attempt, restart_restore_if_lost } => {
                    let is_left_over = attempt.id <= self.left_over;
                    host.drive_attempt(AssignedAttempt { event, attempt, restart_restore_if_lost, is_left_over });
                }
                Assignment::Cancel { event, attempt } => {
                    let is_left_over = attempt.id <= self.left_over;
                    host.stop_attempt(AssignedAttempt { event, attempt, restart_restore_if_lost: false, is_left_over });
                }
                Assignment::Post { event, claim } => {
                    if self.approvals_begun.insert(claim.attempt) {
                        let is_left_over = claim.attempt <= self.left_over;
                        host.begin_approval(OwnClaim::new(event, claim, host.monotonic(), is_left_over));
                    }
                }
            }
        }
        if self.is_disk_new && !is_in_doubt {
            host.complete_disk();
            self.is_disk_new = false;
        }
        self.approvals_begun.retain(|claim| is_open(state, *claim));
        host.cleanup(state) || is_busy
    }
}

fn is_open(state: &State, claim: AttemptId) -> bool {
    state.open_events().any(|event| event.open_claim().is_some_and(|open| open.attempt == claim))
}
