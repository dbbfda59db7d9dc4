//! Properties of a state and its successor (`SPEC.md` 18), from raw facts as in `invariants`. Whether a claim is
//! justified is only decidable at the claim's entry: later entries may have an equal time and change its reasons.

use self::claimed::effective;
use crate::model::attempt::{Attempt, Outcome};
use crate::model::claim::Claim;
use crate::model::document::{EventType, Source};
use crate::model::drill::Mode;
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::operator::{OperatorAction, OperatorRecord};
use crate::model::slot::Slot;
use crate::model::state::State;
use crate::model::treatment::Treatment;
use crate::model::workload::{Hook, Intent, Phase};
use crate::verify::invariants::Violation;
use alloc::vec::Vec;

mod claimed;

mod out;

/// The first property that the step from one state to the next violates.
pub fn violated(before: &State, after: &State) -> Option<Violation> {
    if after.version < before.version {
        return Some(Violation::Rewritten);
    }
    let is_removed = |name: &VmName| is_deleted(before, name) || before.excluded.contains(name);
    if before.replicas.keys().any(|name| !after.replicas.contains_key(name) && !is_removed(name)) {
        return Some(Violation::Forgotten);
    }
    let of_events = before.open_events().find_map(|event| {
        let Some(later) = successor(before, event, after) else {
            return Some(Violation::Rewritten);
        };
        let began = Began::of(event, later);
        let Began { begun, claimed } = &began;
        let out = out::violated(before, after, event, later, &began);
        if out.is_some() {
            out
        } else if begun.iter().any(|attempt| is_restored_wrongly(before, event, attempt)) {
            Some(Violation::RestoredWrongly)
        } else if begun.iter().any(|attempt| is_undone_wrongly(before, event, attempt)) {
            Some(Violation::UndoneWrongly)
        } else if begun.iter().any(|attempt| is_beside_another(before, event, attempt)) {
            Some(Violation::RunBeside)
        } else if begun.iter().any(|attempt| is_asked_wrongly(before, event, attempt)) {
            Some(Violation::AskedWrongly)
        } else if is_taken_over_wrongly(event, later) {
            Some(Violation::TakenOverWrongly)
        } else if is_approved_unseen(before, event, later) {
            Some(Violation::ApprovedUnseen)
        } else {
            claimed.iter().find_map(|claim| claimed::violated(before, event, claim))
        }
    });
    of_events.or_else(|| out::not_restored(before, after))
}

/// The attempts and claims that a step began for one event.
struct Began<'a> {
    begun: Vec<&'a Attempt>,
    claimed: &'a [Claim],
}

impl<'a> Began<'a> {
    fn of(event: &Event, later: &'a Event) -> Self {
        let is_new = |attempt: &&Attempt| event.attempt(attempt.id).is_none();
        Self {
            begun: later.attempts.iter().filter(is_new).collect(),
            claimed: later.claims.get(event.claims.len()..).unwrap_or_default(),
        }
    }
}

/// A deletion of the replica's VM has started, or was approved and is over with the replica silent since.
fn is_deleted(before: &State, name: &VmName) -> bool {
    let is_silent = before.replicas.get(name).is_some_and(|replica| replica.stale_since.is_some());
    before.events().any(|event| {
        let is_over = event.is_accepted() && event.over_at().is_some();
        let has_begun = event.entered_at(Stage::Started).is_some() || (is_over && is_silent);
        event.announcement.kind == EventType::Terminate && event.announcement.resources.contains(name) && has_begun
    })
}

/// The kept event in the next state; an event that closes may be listed again under its id in the same step, and even
/// at the same moment.
fn successor<'a>(before: &State, event: &Event, after: &'a State) -> Option<&'a Event> {
    let id = &event.announcement.id;
    let closed = after.closed_events().rev().filter(|later| later.announcement.id == *id);
    after
        .open_event(id)
        .into_iter()
        .chain(closed)
        .find(|later| later.entered.starts_with(&event.entered) && is_kept(event, later))
        .filter(|later| is_treatment_kept(before, event, after, later))
}

/// Recorded facts stay; an ending may turn out to be a cancellation.
fn is_kept(event: &Event, later: &Event) -> bool {
    event.attempts.len() <= later.attempts.len()
        && event.attempts.iter().zip(&later.attempts).all(|(was, is)| {
            let same = was.id == is.id && was.deadline <= is.deadline && was.begun_at == is.begun_at;
            let is_kept = same && (was.outcome.is_none() || was.outcome == is.outcome);
            let of_hook = |it: &Attempt| (it.hook, it.intent);
            was.on == is.on
                && was.member == is.member
                && of_hook(was) == of_hook(is)
                && (is_kept || is_begun_anew(was, is))
        })
        && event.claims.len() <= later.claims.len()
        && event.claims.iter().zip(&later.claims).all(|(was, is)| {
            let same = was.attempt == is.attempt && was.approver == is.approver && was.until == is.until;
            same && (was.outcome.is_none() || was.outcome == is.outcome)
        })
        && event.isolated_approvals.len() <= later.isolated_approvals.len()
        && event.revision <= later.revision
        && event.drill == later.drill
        && event.impacts.iter().all(|(vm, lasted)| later.impacts.get(vm) == Some(lasted))
        && later.impacts.keys().all(|vm| event.announcement.resources.contains(vm))
}

fn is_treatment_kept(before: &State, event: &Event, after: &State, later: &Event) -> bool {
    let is_same = event.treatment.is_none() || event.treatment == later.treatment || is_moved(event, later);
    is_same || is_treated_anew((before, event), (after, later))
}

/// A blocked attempt is repeated in its place, and keeps the number of its repetitions.
fn is_begun_anew(was: &Attempt, is: &Attempt) -> bool {
    let is_again = was.id < is.id && was.stint == is.stint && is.outcome.is_none();
    is_again && was.is_blocked() && was.blocked.is_some() && was.blocked == is.blocked
}

/// Before anything has begun, the preparation may move to the next opening of the window.
fn is_moved(event: &Event, later: &Event) -> bool {
    let with = |treatment: &Treatment| Treatment { opening: None, missed: None, ..treatment.clone() };
    let is_same = event.treatment.as_ref().map(with) == later.treatment.as_ref().map(with);
    is_same && event.slots_since.is_none() && event.attempts.is_empty()
}

/// Policy chooses again for an event with another type or source, that concerns the cluster no more or from now on, or that
/// is to come again.
fn is_treated_anew((before, event): (&State, &Event), (after, later): (&State, &Event)) -> bool {
    let (was, is) = (&event.announcement, &later.announcement);
    let concerns =
        |state: &State, of: &Event| of.announcement.resources.iter().any(|vm| state.replicas.contains_key(vm));
    let has_moved = concerns(before, event) != concerns(after, later);
    let is_other = (&was.kind, &was.source) != (&is.kind, &is.source) || has_moved;
    let mut entered = later.entered.iter().skip(event.entered.len());
    let returned = entered.any(|(stage, _)| matches!(stage, Stage::Preparing | Stage::Approved));
    later.treatment.is_none() && (is_other || returned)
}

/// Another event has a running attempt for the same workload; or both attempts are exclusive, of the same phase and
/// workload name, and the new attempt is a run.
fn is_beside_another(before: &State, event: &Event, begun: &Attempt) -> bool {
    let others = before.open_events().filter(|other| other.announcement.id != event.announcement.id);
    let mut elsewhere = others.flat_map(|other| &other.attempts);
    if elsewhere.any(|other| other.member == begun.member && other.outcome.is_none()) {
        return true;
    }
    let is_exclusive = |attempt: &Attempt| declared(before, attempt).is_some_and(|hook| hook.exclusive);
    let is_same = |other: &&Attempt| {
        other.member.workload == begun.member.workload && other.hook.phase == begun.hook.phase && is_exclusive(other)
    };
    let mut open = before.open_events().flat_map(|event| &event.attempts).filter(|other| other.outcome.is_none());
    begun.intent == Intent::Run && is_exclusive(begun) && open.any(|other| is_same(&other))
}

/// The registered hook.
fn declared<'a>(before: &'a State, attempt: &Attempt) -> Option<&'a Hook> {
    let replica = before.replicas.get(&attempt.member.vm)?;
    let mut workloads = effective(replica).chain(replica.owed_workloads.values());
    workloads.find_map(|it| Some(it).filter(|it| it.name == attempt.member.workload)?.hook(attempt.hook))
}

/// L2: confirmation is for a hook in doubt, or done for too long to rely on. A hook that was stopped at its deadline,
/// and whose confirmation gets no answer, is not confirmed again.
fn is_asked_wrongly(before: &State, event: &Event, asked: &Attempt) -> bool {
    let mut earlier =
        event.attempts_of(&asked.member, asked.hook).rev().filter(|attempt| attempt.intent != Intent::Undo).peekable();
    let Some(last) = earlier.peek().copied().filter(|_| asked.intent == Intent::Confirm) else {
        return asked.intent == Intent::Confirm;
    };
    let run = earlier.find(|attempt| attempt.intent == Intent::Run);
    let has_timed_out = run.is_some_and(|run| matches!(run.outcome, Some((Outcome::TimedOut(_), _))));
    match (last.intent, last.outcome.as_ref().map(|(outcome, _)| outcome)) {
        (_, Some(Outcome::Unknown(_)))
        | (Intent::Confirm, Some(Outcome::Blocked(_)))
        | (Intent::Run, Some(Outcome::TimedOut(_))) => false,
        (_, Some(Outcome::Done)) => declared(before, asked).is_some_and(|hook| hook.fresh_for.is_none()),
        (Intent::Confirm, Some(Outcome::TimedOut(_) | Outcome::Failed(_) | Outcome::Cancelled)) => has_timed_out,
        _ => true,
    }
}

/// S5: without a quorum a replica by itself approves only user-initiated events, and never while a hook of the log may
/// run.
fn is_taken_over_wrongly(event: &Event, later: &Event) -> bool {
    let taken_over = later.isolated_approvals.get(event.isolated_approvals.len()..).unwrap_or_default();
    taken_over.iter().any(|takeover| {
        let may_run = |attempt: &Attempt| {
            let ended = attempt.outcome.as_ref().is_some_and(|(_, at)| *at <= takeover.at);
            attempt.begun_at < takeover.alone_since && !ended && takeover.at < attempt.deadline
        };
        let is_wrong = event.announcement.source != Source::User || event.attempts.iter().any(may_run);
        takeover.requested_by.is_none() && is_wrong
    })
}

/// S8: only prepared members are restored, and only returning members run ready hooks; both on the member's own VM,
/// without an event that keeps the member out, and never while an event that is over is listed again.
fn is_restored_wrongly(before: &State, event: &Event, attempt: &Attempt) -> bool {
    let slot = before.slots.get(&attempt.member).filter(|slot| slot.stint == attempt.stint);
    let is_due = |slot: &Slot| slot.needs_restore || attempt.hook.phase == Phase::Ready;
    let returns = slot.is_some_and(|slot| is_due(slot) && slot.events.is_empty());
    let is_back = is_back(before, event);
    attempt.hook.phase >= Phase::Restore
        && event.drill.as_ref().is_none_or(|drill| drill.mode != Mode::DryRun)
        && (attempt.on != attempt.member.vm || is_back || !returns)
}

/// The event is over, and listed again. A listed event is no drill, whatever its name.
fn is_back(before: &State, event: &Event) -> bool {
    event.drill.is_none() && event.over_at().is_some() && before.is_listed(&event.announcement.id)
}

/// S8: only a hook that ran and is not done is undone, when the event is over, or for a failover while no approval may
/// have arrived: an event whose claim was refused waits as before the claim.
fn is_undone_wrongly(before: &State, event: &Event, attempt: &Attempt) -> bool {
    let (member, id) = (&attempt.member, attempt.hook);
    let first = before.slots.get(member).map_or(0, |slot| slot.first_stint);
    let of_hook = |it: &&Attempt| it.stint >= first && it.hook == id && it.member == *member;
    let mut earlier = before.open_events().flat_map(|event| &event.attempts).filter(of_hook);
    let has_run = earlier.any(|earlier| earlier.intent == Intent::Run);
    let is_done = matches!(last_outcome(before, first, attempt), None | Some(Outcome::Done | Outcome::NotApplicable));
    let is_back = is_back(before, event);
    let returns = before.slots.get(member).is_some_and(|slot| slot.events.is_empty()) && !is_back;
    let has_begun = event.entered.iter().any(|(stage, _)| *stage > Stage::Claimed);
    let is_awaited = id.phase == Phase::Failover && !has_begun && !event.claims.iter().any(claimed::may_be_told);
    attempt.intent == Intent::Undo && (!has_run || is_done || !(returns || is_awaited))
}

fn is_approved_unseen(before: &State, event: &Event, later: &Event) -> bool {
    let is_new = |wish: &&OperatorRecord| wish.number > before.operator_seq;
    let mut added = later.operator_records.iter().filter(is_new);
    added.any(|wish| matches!(wish.what, OperatorAction::Approve { revision, .. } if revision != event.revision))
}

/// Last outcome of the attempt's hook since a stint, for any event.
fn last_outcome<'a>(before: &'a State, first: u64, of: &Attempt) -> Option<&'a Outcome> {
    let all = before.open_events().flat_map(|event| &event.attempts);
    let of_hook = all.filter(|attempt| {
        let same = attempt.stint >= first && attempt.hook == of.hook && attempt.member == of.member;
        same && attempt.intent != Intent::Undo
    });
    of_hook.max_by_key(|attempt| attempt.id)?.outcome.as_ref().map(|(outcome, _)| outcome)
}
