//! Whether a running attempt is still wanted, and whether a member is being restored.

use crate::model::attempt::Attempt;
use crate::model::event::Event;
use crate::model::lifecycle::Stage;
use crate::model::slot::SlotState;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member, Phase};

/// Whether a restore or ready hook of the member runs.
pub fn is_being_restored(state: &State, member: &Member) -> bool {
    let runs = |attempt: &Attempt| {
        attempt.member == *member && attempt.outcome.is_none() && attempt.hook.phase >= Phase::Restore
    };
    state.open_events().filter(|event| !event.is_dry_run()).any(|event| event.attempts.iter().any(runs))
}

/// Whether a restore of the member began in the present stint, with any outcome.
pub fn is_restore_begun(state: &State, member: &Member) -> bool {
    let Some(slot) = state.slots.get(member) else { return false };
    let is_restore = |attempt: &Attempt| {
        let brings_back = attempt.hook.phase >= Phase::Restore || attempt.intent == Intent::Undo;
        attempt.member == *member && attempt.stint == slot.stint && brings_back
    };
    state.open_events().any(|event| event.attempts.iter().any(is_restore))
}

/// Whether an open attempt is still to be run; an unwanted attempt is cancelled.
pub fn is_wanted(state: &State, event: &Event, attempt: &Attempt) -> bool {
    // A failover stopped half way would leave no primary in the group, so it may end, within its deadline.
    let may_end = attempt.hook.phase == Phase::Failover;
    let is_dropped = (event.is_approved_by_operator() && !may_end) || event.is_skipped(&attempt.member, attempt.hook);
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
    // A member signed off by force runs no more hooks, and the state of the member's last hook is unknown.
    if !state.is_restorable(&attempt.member) {
        return event.stage() < Stage::Started;
    }
    // The event does not disrupt a member whose slot the event has returned.
    if attempt.hook.phase.is_disruptive() && !event.is_dry_run() {
        return slot.is_some_and(|slot| slot.events.contains(&event.announcement.id))
            && (event.stage() < Stage::Started || may_end);
    }
    event.stage() < Stage::Started
}

/// Whether an attempt that has not begun may not begin any more: the event was claimed, approved or started without the
/// attempt. A failover that begins now would be cut off with the VM.
pub fn is_too_late(event: &Event, attempt: &Attempt) -> bool {
    let prepares = attempt.hook.phase < Phase::Restore && attempt.intent != Intent::Undo;
    let gone_on = event.entered.last().filter(|(stage, _)| (Stage::Claimed..=Stage::Started).contains(stage));
    prepares && gone_on.is_some_and(|(_, since)| attempt.begun_at < *since)
}

/// Whether the attempt runs on although the deadline is earlier now than at the attempt's start.
pub fn is_overrun(event: &Event, attempt: &Attempt, now: Timestamp) -> bool {
    let ends = event.deadline_of(attempt);
    event.stage() < Stage::Started && ends < attempt.deadline && now >= ends
}
