//! What happens next by itself, and when. Only computes; `Cloud::advance` lets it happen.

use std::time::Duration;

use crate::machine::document::Kind;
use crate::machine::id::EventId;
use crate::machine::time::Timestamp;

use super::approval::Approver;
use super::event::{Cause, End, Event};
use super::orders::Amendment;
use super::plan::{Plan, When};

/// An event that has not been announced yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Pending {
    pub(super) id: EventId,
    pub(super) when: When,
    pub(super) plan: Plan,
}

/// Names an entry of `pending` or `events` by its place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Step {
    Announce(usize),
    Change(usize, Change),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Move { not_before: Timestamp, planned: bool },
    Amend(Amendment),
    Accept(Approver),
    Start(Cause),
    End(End),
}

/// The earliest step; of several at the same time the first announced event's, and announcements last.
pub(super) fn next(events: &[Event], pending: &[Pending]) -> Option<(Timestamp, Step)> {
    let changes = events
        .iter()
        .enumerate()
        .filter_map(|(ordinal, event)| of_event(event, events).map(|(at, change)| (at, Step::Change(ordinal, change))));
    let announcements = pending
        .iter()
        .enumerate()
        .filter_map(|(ordinal, pending)| announced_at(pending, events).map(|at| (at, Step::Announce(ordinal))));
    changes.chain(announcements).min_by_key(|(at, _)| *at)
}

fn announced_at(pending: &Pending, events: &[Event]) -> Option<Timestamp> {
    match &pending.when {
        When::At(at) => Some(*at),
        When::After { event, pause } => {
            let (ended, _) = events.iter().find(|candidate| candidate.id == *event)?.ended?;
            Some(ended.plus(*pause))
        }
    }
}

fn of_event(event: &Event, events: &[Event]) -> Option<(Timestamp, Change)> {
    if event.ended.is_some() {
        return None;
    }
    if let Some((start, _)) = event.started {
        return Some((start.plus(event.plan.time_in_started()), Change::End(End::Finished)));
    }
    let after = |span: Duration| event.announced_at.plus(span);
    let plan = &event.plan;
    // Of several at the same time the first counts: what takes the event away comes before what starts it.
    [
        plan.cancel_after.map(|span| (after(span), Change::End(End::Cancelled))),
        plan.moves.get(event.moved).map(|step| {
            let at = after(step.after);
            (at, Change::Move { not_before: at.plus(step.notice), planned: true })
        }),
        plan.approved_after
            .filter(|_| event.accepted.is_none())
            .map(|span| (after(span), Change::Accept(Approver::Other("policy".into())))),
        plan.strikes_after.map(|span| (after(span), Change::Start(Cause::Failure))),
        approved_start(event, events).map(|at| (at, Change::Start(Cause::Approved))),
        Some((event.not_before.plus(plan.late), Change::Start(Cause::NotBefore))),
    ]
    .into_iter()
    .flatten()
    .min_by_key(|(at, _)| *at)
}

/// When the approval lets it start: the delay, the host's other tenants, and for a Terminate also every other pending
/// Terminate must be through. None of them holds it beyond NotBefore, when they have timed out.
fn approved_start(event: &Event, events: &[Event]) -> Option<Timestamp> {
    let (accepted, _) = event.accepted.as_ref()?;
    let own = accepted.plus(event.plan.start_delay).plus(event.plan.other_tenants);
    if event.plan.kind != Kind::Terminate {
        return Some(own);
    }
    let others = events
        .iter()
        .filter(|other| other.id != event.id && other.plan.kind == Kind::Terminate && other.is_scheduled())
        .map(|other| other.accepted.as_ref().map_or(other.not_before, |(at, _)| (*at).min(other.not_before)));
    Some(others.fold(own, Timestamp::max))
}
