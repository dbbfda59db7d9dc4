//! Every replica's own share: the hook attempts and the claims that the committed state assigns to it.
//! Recomputed whenever the state changes; nothing is remembered between two calls.

use alloc::vec::Vec;

use super::attempt::Attempt;
use super::claim::Claim;
use super::event::Event;
use super::id::VmName;
use super::lifecycle::Stage;
use super::state::State;
use super::steps;
use super::workload::Phase;

/// Something in the world that this replica is to see to.
#[derive(Clone, Debug)]
pub enum Errand<'a> {
    /// Run the attempt, unless it runs or has ended already.
    Run {
        event: &'a Event,
        attempt: &'a Attempt,
        /// An attempt that vanished is run once more under the same id: restoring is delivered at least once.
        again_if_lost: bool,
    },
    /// Stop the attempt if it runs; it is not wanted any more.
    Cancel { event: &'a Event, attempt: &'a Attempt },
    /// Confirm the claim, take a fresh document, and post the approval if it still shows the event as Scheduled.
    Post { event: &'a Event, claim: &'a Claim },
}

/// What the state asks of a replica now.
pub fn errands<'a>(state: &'a State, me: &VmName) -> Vec<Errand<'a>> {
    let mut found = Vec::new();
    for event in state.open.values() {
        for attempt in event.attempts.iter().filter(|attempt| attempt.on == *me && attempt.outcome.is_none()) {
            found.push(if steps::is_wanted(event, attempt) {
                Errand::Run { event, attempt, again_if_lost: attempt.hook.phase >= Phase::Restore }
            } else {
                Errand::Cancel { event, attempt }
            });
        }
        // An approval that came late from an earlier claim is final, and what has started or is over needs none.
        let to_post = event.open_claim().filter(|claim| event.stage() == Stage::Claimed && claim.approver == *me);
        if let Some(claim) = to_post {
            found.push(Errand::Post { event, claim });
        }
    }
    found
}
