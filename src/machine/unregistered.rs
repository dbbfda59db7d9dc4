//! The members that an event names and that have yet to say what runs on them: nobody knows what is to be prepared there.

use super::blocker::Blocker;
use super::claim::Reason;
use super::event::Event;
use super::id::VmName;
use super::situation::Situation;
use super::state::State;

/// What an event that may be claimed for this reason waits for all the same, because the reason rests on what is
/// registered. One that a user asked for waits no longer than for a replica that is out of reach; who is a member is
/// not in the log.
pub(super) fn unregistered(state: &State, event: &Event, reason: Reason, situation: &Situation) -> Option<Blocker> {
    let rests_on_hooks = matches!(reason, Reason::Prepared | Reason::NothingToPrepare);
    // A claim is never taken back.
    if !rests_on_hooks || !event.claims.is_empty() {
        return None;
    }
    let passed_over_at = event.is_user_initiated().then(|| event.first_seen().plus(situation.timing.takeover_after));
    if passed_over_at.is_some_and(|at| situation.now >= at) {
        return None;
    }
    let has_yet_to = |vm: &&VmName| event.affects(vm) && !state.replicas.contains_key(*vm);
    let replica = situation.members.iter().find(has_yet_to)?.clone();
    Some(Blocker::Unregistered { replica, passed_over_at })
}
