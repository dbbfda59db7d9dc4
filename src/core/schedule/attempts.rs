//! Whether a running attempt is still wanted, and whether a member is being restored.

use crate::model::attempt::Attempt;
use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::slot::SlotState;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member, Phase};

/// Something runs that brings the member back.
pub fn is_being_restored(state: &State, member: &Member) -> bool {
    let runs = |attempt: &Attempt| {
        attempt.member == *member && attempt.outcome.is_none() && attempt.hook.phase >= Phase::Restore
    };
    state.open_events().filter(|event| !event.is_dry_run()).any(|event| event.attempts.iter().any(runs))
}

/// A restore of the member was begun in its present stint, however it ended.
pub fn is_restore_begun(state: &State, member: &Member) -> bool {
    let Some(slot) = state.slots.get(member) else { return false };
    let is_restore = |attempt: &Attempt| {
        let brings_back = attempt.hook.phase >= Phase::Restore || attempt.intent == Intent::Undo;
        attempt.member == *member && attempt.stint == slot.stint && brings_back
    };
    state.open_events().any(|event| event.attempts.iter().any(is_restore))
}

/// An open attempt is still to be run; otherwise it is cancelled.
pub fn is_wanted(state: &State, event: &Event, attempt: &Attempt) -> bool {
    let is_dropped = event.is_approved_by_operator() || event.is_skipped(&attempt.member, attempt.hook);
    let slot = state.slots.get(&attempt.member).filter(|slot| slot.stint == attempt.stint);
    let is_returning = slot.is_some_and(|slot| slot.state == SlotState::Returning);
    if attempt.hook.phase >= Phase::Restore && !event.is_dry_run() {
        return is_returning;
    }
    if attempt.intent == Intent::Undo && is_returning {
        return true;
    }
    if is_dropped || event.stage().is_over() {
        return false;
    }
    // Whoever signed off by force is asked nothing any more, and nothing is known of what it was doing.
    if !state.is_restorable(&attempt.member) {
        return event.stage() < Stage::Started;
    }
    // What the event has given back it does not take away.
    if attempt.hook.phase.is_disruptive() && !event.is_dry_run() {
        return slot.is_some_and(|slot| slot.events.contains(&event.announcement.id))
            // A failover that is under way may finish: stopped half way it would leave the group without a primary.
            && (event.stage() < Stage::Started || attempt.hook.phase == Phase::Failover);
    }
    event.stage() < Stage::Started
}

/// It runs on though less time is left for it than when it was begun.
pub fn is_overrun(event: &Event, attempt: &Attempt, now: Timestamp) -> bool {
    let ends = event.deadline_of(attempt);
    event.stage() < Stage::Started && ends < attempt.deadline && now >= ends
}
