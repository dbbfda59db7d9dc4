//! Sees to this replica's share of the committed state: starts and stops hooks, and posts the approval it was named
//! for. Every act is preceded by a linearizable read, so a replica that was cut off or paused does nothing new.

use allclear_core::assignments;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock;
use super::context::Context;
use super::hook_executor::HookExecutor;
use super::poller::Observer;
use super::post::{self, OwnClaim};
use super::session_sync;
use super::watchdog::Loop;
use allclear_core::assignments::Assignment;
use allclear_core::model::id::AttemptId;
use allclear_core::model::state::State;

/// Not everything that matters to an errand is in the state: a hook may have been lost, a read may have failed, the
/// cluster's time may have come to be known.
const TICK: Duration = Duration::from_millis(250);
/// The pause before the log is asked again how far it is.
const ASK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// What the errands of one replica need beside what all its tasks share.
pub(super) struct Executor {
    pub(super) here: Arc<Context>,
    pub(super) hooks: Arc<HookExecutor>,
    pub(super) observer: Arc<Observer>,
}

/// What the log held of this replica when it had caught up.
#[derive(Clone, Copy)]
pub(super) struct LeftOver {
    /// The last attempt that had been decided: it and those before it may have been acted on by an earlier life.
    attempt: AttemptId,
    /// An earlier life had registered.
    pub(super) is_known: bool,
}

/// Runs until it is stopped; then waits for posts that are under way, so that their outcome is recorded. Tells what it
/// inherits as soon as it knows: before that this replica registers nothing that it could be asked to run.
pub(super) async fn run(hands: Arc<Executor>, inherits: watch::Sender<Option<LeftOver>>, stop: CancellationToken) {
    let Some(inherits_now) = stop.run_until_cancelled(caught_up(&hands.here)).await else {
        return;
    };
    let inherited = inherits_now.attempt;
    let mut is_new = hands.hooks.front.commands.memory.is_new();
    let forgotten = if is_new { inherited } else { AttemptId(0) };
    inherits.send_replace(Some(inherits_now));
    let mut state = hands.here.state.clone();
    session_sync::expect_the_known(&hands.here, &hands.hooks.front.sessions);
    let mut claims = hands.hooks.front.sessions.changes();
    let mut posts_begun = BTreeSet::new();
    let posts = TaskTracker::new();
    loop {
        let current = state.borrow_and_update().clone();
        let errands = assignments::assignments(&current, &hands.here.name);
        let busy = !errands.is_empty();
        let mut is_in_doubt = false;
        for errand in errands {
            match errand {
                Assignment::Run { event, attempt, .. } | Assignment::Cancel { event, attempt }
                    if assignments::predates_disk(&current, attempt, forgotten)
                        && !hands.hooks.knows(event, attempt) =>
                {
                    // It may run, and the leader settles it when it must have ended.
                    is_in_doubt = true;
                }
                Assignment::Run { event, attempt, again_if_lost } => {
                    let is_inherited = attempt.id <= inherited;
                    hands.hooks.reconcile_attempt(&hands.here, event, attempt, again_if_lost, is_inherited);
                }
                Assignment::Cancel { event, attempt } => {
                    hands.hooks.stop(&hands.here, event, attempt, attempt.id <= inherited);
                }
                Assignment::Post { event, claim } => {
                    if posts_begun.insert(claim.attempt) {
                        let claimed = OwnClaim {
                            event: event.announcement.id.clone(),
                            claim: claim.attempt,
                            reason: claim.reason,
                            event_since: event.first_seen(),
                            seen_at: clock::monotonic(),
                            lease: claim.until.since(claim.at),
                            is_inherited: claim.attempt <= inherited,
                        };
                        posts.spawn(post::post(hands.clone(), claimed, stop.clone()));
                    }
                }
            }
        }
        if is_new && !is_in_doubt {
            hands.hooks.front.commands.memory.complete();
            is_new = false;
        }
        posts_begun.retain(|claim| is_open(&current, *claim));
        let busy = hands.hooks.cleanup(&hands.here, &current) || busy;
        if busy {
            hands.here.rounds.arm(Loop::Errands, TICK);
        } else {
            hands.here.rounds.disarm(Loop::Errands);
        }
        tokio::select! {
            _ = state.changed() => {}
            _ = claims.changed() => {}
            () = tokio::time::sleep(TICK), if busy => {}
            () = stop.cancelled() => break,
        }
    }
    posts.close();
    posts.wait().await;
}

/// Waits until everything that was decided before this process began is known.
async fn caught_up(here: &Context) -> LeftOver {
    while here.consensus.ensure_linearizable().await.is_err() {
        tokio::time::sleep(ASK_AGAIN_AFTER).await;
    }
    let state = here.state();
    LeftOver { attempt: AttemptId(state.attempts), is_known: state.replicas.contains_key(&here.name) }
}

fn is_open(state: &State, claim: AttemptId) -> bool {
    state.open_events().any(|event| event.open_claim().is_some_and(|open| open.attempt == claim))
}
