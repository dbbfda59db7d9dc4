//! Runs the assignments of the committed state by the core's procedure. A hook or a post follows a linearizable read,
//! so that a replica that was cut off or paused starts nothing new.

use std::time::Duration;

use tokio::sync::watch;

use super::approve;
use super::host::ReplicaHost;
use super::session_sync;
use super::watchdog::Loop;
use allclear_core::model::attempt::Attempt;
use allclear_core::model::event::Event;
use allclear_core::model::state::State;
use allclear_core::procedure::approval::OwnClaim;
use allclear_core::procedure::executor::{AssignedAttempt, Executor, ExecutorHost, LeftOver, catch_up};

/// Some causes of an assignment are outside the state: a hook was lost, a read failed, the cluster's time became known.
const TICK: Duration = Duration::from_millis(250);

impl ExecutorHost for ReplicaHost {
    fn knows_attempt(&self, event: &Event, attempt: &Attempt) -> bool {
        self.hooks.knows(event, attempt)
    }

    fn drive_attempt(&self, assigned: AssignedAttempt<'_>) {
        self.hooks.drive_attempt(assigned);
    }

    fn stop_attempt(&self, assigned: AssignedAttempt<'_>) {
        self.hooks.stop(assigned);
    }

    fn begin_approval(&self, claim: OwnClaim) {
        self.approvals.spawn(approve::run(self.clone(), claim));
    }

    fn cleanup(&self, state: &State) -> bool {
        self.hooks.cleanup(state)
    }

    fn complete_disk(&self) {
        self.hooks.runner.commands.memory.complete();
    }
}

/// Runs until the replica stops; then waits for approvals under way and the record of their outcomes. Publishes the
/// remains of a previous run as soon as they are known: until then this replica registers nothing that could be
/// assigned to this replica.
pub(super) async fn run(host: ReplicaHost, left_over: watch::Sender<Option<LeftOver>>) {
    let Some(found) = host.stop.run_until_cancelled(catch_up(&host)).await else { return };
    let mut executor = Executor::new(found.attempt, host.hooks.runner.commands.memory.is_new());
    left_over.send_replace(Some(found));
    let cluster = &host.cluster;
    let mut state = cluster.committed.clone();
    session_sync::expect_the_known(cluster, &host.hooks.runner.sessions);
    let mut claims = host.hooks.runner.sessions.changes();
    loop {
        let current = state.borrow_and_update().clone();
        let is_busy = executor.run(&host, &current);
        if is_busy {
            host.watchdog.arm(Loop::Errands, TICK);
        } else {
            host.watchdog.disarm(Loop::Errands);
        }
        tokio::select! {
            _ = state.changed() => {}
            _ = claims.changed() => {}
            () = tokio::time::sleep(TICK), if is_busy => {}
            () = host.stop.cancelled() => break,
        }
    }
    host.approvals.close();
    host.approvals.wait().await;
}
