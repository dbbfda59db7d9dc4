//! Invariants of the state after every entry (`SPEC.md` 18). They use raw facts and do not call the deciding
//! functions, so that mistakes of these functions are found. The model, the scripts and debug builds check the
//! invariants. Properties of a single entry's transition are in `transition`.

use crate::model::claim::{Claim, PostOutcome};
use crate::model::event::Event;
use crate::model::id::EventId;
use crate::model::lifecycle::Stage;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::State;
use crate::model::time::Timestamp;
use core::time::Duration;

/// The violated property.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Violation {
    /// S1: claimed before every required hook was completed or waived.
    ClaimedUnprepared,
    /// S2: two claims in force at once, or a claim after an accepted approval that does not repeat the approval.
    ClaimedTwice,
    /// S2: the control plane gets an event twice, or beside an approval that may have arrived.
    LastResortTwice,
    /// S3: the event counts as approved without a committed and accepted claim.
    ApprovedUnclaimed,
    /// S4: a slot was taken, a disruptive hook begun or an event claimed while, including the new members, more members
    /// of a group are out than its limit allows.
    BudgetExceeded,
    /// S11: two failovers of a group ran at once, or a primary was drained or shut down before its failover.
    FailoverOutOfTurn,
    /// S12: a member on which a disruptive hook was begun is in service without a restore.
    NotRestored,
    /// S14: a claim counts hooks of a stint other than the present stint.
    StintMixed,
    /// L7: an event returned its slots more than twice.
    GivenBackTooOften,
    /// Claimed while an operator's hold or pause was in force.
    ClaimedAgainstWish,
    /// An operator's approval was applied to another revision than the operator saw.
    ApprovedUnseen,
    /// S7: two attempts of one hook at the same time.
    RunTwice,
    /// L2: confirmation of a hook that was settled, or that hung at an earlier confirmation.
    AskedWrongly,
    /// Hooks of two events for one workload at the same time, or two exclusive hooks.
    RunBeside,
    /// A forbidden approval by a replica without a quorum.
    TakenOverWrongly,
    /// S8: a restore for a workload that was not prepared, or before the event was over.
    RestoredWrongly,
    /// Undo of a hook that had not failed, or whose event still needs the hook.
    UndoneWrongly,
    /// A replica was forgotten though no event has begun to delete its VM.
    Forgotten,
    /// A drill was claimed, approved in isolation or treated as started.
    DrillApproved,
    /// A drill goes on though there is a real event to prepare.
    DrillBesideEvent,
    /// The stages of an event are not in the order of the table.
    StageOutOfOrder,
    /// A closed event among the open events, or an open event in the history.
    Misplaced,
    /// A recorded fact changed or vanished.
    Rewritten,
}

string_enum!(Violation {
    ClaimedUnprepared => "S1: an event was claimed before it was prepared",
    ClaimedTwice => "S2: an event was claimed twice",
    LastResortTwice => "S2: the control plane got an event twice, or beside an approval that may have arrived",
    ApprovedUnclaimed => "S3: an event is approved without an accepted claim",
    BudgetExceeded => "S4: a member was taken out beyond what its group may lose",
    FailoverOutOfTurn => "S11: two failovers of a group at once, or a primary taken away before its failover",
    NotRestored => "S12: a member is in service that was not restored",
    StintMixed => "S14: a claim counts hooks of another stint",
    GivenBackTooOften => "L7: an event gave back more than twice",
    ClaimedAgainstWish => "an event was claimed while an operator held it",
    ApprovedUnseen => "an operator's approval counts for what they have not seen",
    TakenOverWrongly => "S5: a replica without a quorum approved what it must not",
    RunTwice => "S7: a hook ran twice at the same time",
    AskedWrongly => "L2: a hook was asked about that was settled, or hung when it was asked before",
    RunBeside => "a hook ran beside another event's for the same workload, or beside one that excludes it",
    RestoredWrongly => "S8: a workload was restored that should not be, or too early",
    UndoneWrongly => "S8: a hook was taken back that had not failed, or too early",
    Forgotten => "a replica was forgotten whose VM is not deleted",
    DrillApproved => "a drill was approved or taken for real",
    DrillBesideEvent => "a drill went on beside a real event",
    StageOutOfOrder => "an event went through its stages in an illegal order",
    Misplaced => "an event is in the wrong place of the state",
    Rewritten => "something that was recorded of an event changed or vanished",
});

/// The first violated property of the state; `None` when all hold.
pub fn violated(state: &State) -> Option<Violation> {
    let misplaced = state.open_events().any(|event| event.stage() == Stage::Closed)
        || state.closed_events().any(|event| event.stage() != Stage::Closed);
    if misplaced {
        return Some(Violation::Misplaced);
    }
    if drills_beside_an_event(state) {
        return Some(Violation::DrillBesideEvent);
    }
    if state.slots.values().any(|slot| is_left_behind(state, slot)) {
        return Some(Violation::NotRestored);
    }
    state.events().find_map(violated_by)
}

/// The member would never come back: no open event keeps the member out, or restores the member.
fn is_left_behind(state: &State, slot: &Slot) -> bool {
    let is_open = |id: &EventId| state.open.contains_key(id);
    let is_kept_out = matches!(slot.state, SlotState::Leaving | SlotState::Out);
    slot.state != SlotState::Gone
        && (!is_open(&slot.by) || !slot.events.iter().all(is_open) || is_kept_out == slot.events.is_empty())
}

/// An event without replicas of this cluster needs no preparation.
fn drills_beside_an_event(state: &State) -> bool {
    let mut under_way = state.open_events().filter(|event| event.over_at().is_none());
    let is_ours = |event: &Event| event.announcement.resources.iter().any(|vm| state.replicas.contains_key(vm));
    under_way.clone().any(|event| event.drill.is_some())
        && under_way.any(|event| event.drill.is_none() && is_ours(event))
}

/// Whether a drill was claimed, approved or started: the platform has nothing to start for a drill, whatever its hooks
/// did.
fn is_taken_for_real(event: &Event) -> bool {
    let is_real = |(stage, _): &(Stage, Timestamp)| matches!(stage, Stage::Claimed | Stage::Approved | Stage::Started);
    !event.claims.is_empty() || !event.isolated_approvals.is_empty() || event.entered.iter().any(is_real)
}

fn violated_by(event: &Event) -> Option<Violation> {
    let follows = |(from, _): (Stage, Timestamp), (to, _)| from.may_become(to) || from.may_return_to(to);
    let in_order = event.entered.windows(2).all(|pair| follows(pair[0], pair[1]) && pair[0].1 <= pair[1].1);
    // An event that came back as approved may have a post with unknown arrival.
    let approved = event.entered_at(Stage::Approved).is_some() && event.reopened.is_none();
    if !in_order {
        Some(Violation::StageOutOfOrder)
    } else if !event.claims.windows(2).all(|pair| is_free(event, &pair[0], &pair[1])) {
        Some(Violation::ClaimedTwice)
    } else if has_repeated_last_resort(event) {
        Some(Violation::LastResortTwice)
    } else if approved && !is_accepted(event) {
        Some(Violation::ApprovedUnclaimed)
    } else if event.drill.is_some() && is_taken_for_real(event) {
        Some(Violation::DrillApproved)
    } else if overlaps(event) {
        Some(Violation::RunTwice)
    } else if event.times_given_back > 2 {
        Some(Violation::GivenBackTooOften)
    } else {
        None
    }
}

/// Entries may have equal times, so a fact at the time of the later claim may have happened after this claim.
fn is_free(event: &Event, earlier: &Claim, later: &Claim) -> bool {
    let repost_after = event.treatment.as_ref().map_or(Duration::ZERO, |treatment| treatment.repost_after);
    match &earlier.outcome {
        Some((PostOutcome::Accepted, at)) if *at < later.at => at.plus(repost_after) <= later.at,
        Some((_, at)) if *at <= later.at => true,
        Some(_) | None => earlier.until <= later.at,
    }
}

fn has_repeated_last_resort(event: &Event) -> bool {
    let had_effect = |earlier: &Claim, later: &Claim| match &earlier.outcome {
        Some((_, at)) if *at > later.at => true,
        Some((PostOutcome::NotSent(_) | PostOutcome::Withdrawn | PostOutcome::Differs, _)) => false,
        Some((PostOutcome::Refused(status), _)) => earlier.is_last_resort || *status == 410 || *status >= 500,
        Some(_) | None => true,
    };
    let claims = event.claims.iter().enumerate();
    claims
        .filter(|(_, claim)| claim.is_last_resort)
        .any(|(place, claim)| event.claims[..place].iter().any(|earlier| had_effect(earlier, claim)))
}

fn is_accepted(event: &Event) -> bool {
    let claimed = event.claims.iter().any(|claim| claim.outcome_is(&PostOutcome::Accepted));
    claimed || event.isolated_approvals.iter().any(|takeover| takeover.outcome_is(&PostOutcome::Accepted))
}

fn overlaps(event: &Event) -> bool {
    event.attempts.iter().enumerate().any(|(place, attempt)| {
        event.attempts[place + 1..].iter().any(|later| {
            later.member == attempt.member
                && later.hook == attempt.hook
                && attempt.outcome.as_ref().is_none_or(|(_, at)| *at > later.begun_at)
        })
    })
}
