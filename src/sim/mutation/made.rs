//! The effect of each mutation on the deciding functions.

use allclear_core::schedule::slots;
use std::collections::BTreeSet;
use std::sync::Arc;

use allclear_core::apply::apply;
use allclear_core::apply::slots::take_all;
use allclear_core::isolation::approval::event_to_approve;
use allclear_core::model::attempt::Outcome;
use allclear_core::model::blocker::Clearance;
use allclear_core::model::claim::{Claim, Reason};
use allclear_core::model::command::{ApplyResult, ClaimApproval, Command, Entry, FinishAttempt, TakeSlots};
use allclear_core::model::document::Source;
use allclear_core::model::event::Event;
use allclear_core::model::id::{AttemptId, EventId};
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::slot::SlotState;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::plan::plan;
use allclear_core::planning_input::PlanningInput;
use allclear_core::schedule::affected_members::stints_of;
use allclear_core::schedule::clearance::clearance;

use super::Mutation;

impl Mutation {
    pub(crate) fn apply(self, state: &mut State, entry: &Entry) -> ApplyResult {
        match (self, &entry.command) {
            (
                Self::HoldIgnored | Self::ClaimUnprepared | Self::ClaimAgain,
                Command::ClaimApproval(ClaimApproval { event, .. }),
            ) => match self.claims(state, event, entry.at) {
                Some(reason) => push_claim(state, entry, reason),
                None => apply(state, entry),
            },
            (Self::BudgetIgnored, Command::TakeSlots(TakeSlots { event })) => {
                state.now = state.now.max(entry.at);
                take_all(state, event);
                ApplyResult::Applied
            }
            (Self::RestoreListed, _) => {
                let before = state.slots.clone();
                let verdict = apply(state, entry);
                let now = state.now;
                let started = state.open.iter().filter(|(_, event)| event.stage() == Stage::Started);
                let started: BTreeSet<EventId> = started.map(|(id, _)| id.clone()).collect();
                for (member, slot) in state.slots.iter_mut().filter(|(_, slot)| started.contains(&slot.by)) {
                    let was = before.get(member).filter(|was| was.state == SlotState::Returning);
                    *slot = was.unwrap_or(slot).clone();
                    slot.events.clear();
                    (slot.state, slot.since) = (SlotState::Returning, was.map_or(now, |was| was.since));
                }
                verdict
            }
            (Self::FormerForgotten, Command::RegisterWorkloads(_)) => {
                let verdict = apply(state, entry);
                state.replicas.values_mut().for_each(|replica| Arc::make_mut(replica).owed_workloads.clear());
                verdict
            }
            (Self::LateOutcomeCounts, Command::FinishAttempt(FinishAttempt { event, attempt, outcome })) => {
                let known = state.open.get_mut(event).map(Arc::make_mut);
                let known = known.and_then(|event| event.attempts.iter_mut().find(|known| known.id == *attempt));
                match known {
                    Some(known) if known.outcome.as_ref().is_some_and(|(was, _)| was != outcome) => {
                        known.outcome = Some((outcome.clone(), entry.at));
                        ApplyResult::Applied
                    }
                    _ => apply(state, entry),
                }
            }
            _ => apply(state, entry),
        }
    }

    pub(crate) fn plan(self, state: &State, input: &PlanningInput) -> Vec<Command> {
        let mut due = plan(state, input);
        due.retain(|due| match due {
            Command::ExpireAttempt(_) => self != Self::NeverExpires,
            Command::ClaimApproval(ClaimApproval { event, .. }) => {
                let is_first = state.open_event(event).is_none_or(|event| event.claims.is_empty());
                self != Self::NeverClaimsAgain || is_first
            }
            _ => true,
        });
        if input.leader.as_ref().is_some() && !matches!(due.first(), Some(Command::BeginLeadership(_))) {
            for id in state.open.keys() {
                let approver = input.approver(state, id).cloned();
                let (Some(reason), Some(approver)) = (self.claims(state, id, input.now), approver) else {
                    continue;
                };
                let until = input.now.plus(input.timing.claim_lease);
                let stints = state.open_event(id).map(|event| stints_of(state, event)).unwrap_or_default();
                let decision = state.open_event(id).map_or(0, |event| event.decided_at_revision);
                due.push(Command::ClaimApproval(ClaimApproval {
                    event: id.clone(),
                    approver,
                    reason,
                    decided_at_revision: decision,
                    stints,
                    until,
                    is_last_resort: false,
                }));
            }
            if self == Self::BudgetIgnored {
                let waits =
                    |event: &&Event| event.slots_since.is_none() && slots::is_ready_for_slots(state, event, input.now);
                let waiting = state.open_events().filter(waits).map(|event| event.announcement.id.clone());
                due.extend(waiting.map(|event| Command::TakeSlots(TakeSlots { event })));
            }
        }
        due
    }

    /// Why this mutation claims an event that must not be claimed.
    fn claims(self, state: &State, id: &EventId, now: Timestamp) -> Option<Reason> {
        let event = state.open_event(id)?;
        let reason = |state: &State| match clearance(state, state.open_event(id)?, now) {
            Clearance::Clear(reason) => Some(reason),
            Clearance::Blocked(_) | Clearance::NothingToApprove => None,
        };
        let is_first =
            event.claims.is_empty() && event.isolated_approvals.is_empty() && event.stage() <= Stage::Preparing;
        if reason(state).is_some() && !matches!(self, Self::ClaimAgain | Self::UnregisteredIgnored) {
            return None;
        }
        match self {
            Self::UnregisteredIgnored if is_first => reason(state),
            Self::ClaimUnprepared => (is_first && event.treatment.is_some()).then_some(Reason::Prepared),
            Self::ClaimAgain => {
                let last =
                    event.claims.last().filter(|_| event.stage() == Stage::Approved && event.claims.len() < 3)?;
                Some(last.reason)
            }
            Self::HoldIgnored if is_first => {
                let mut free = state.clone();
                free.operator_records.clear();
                Arc::make_mut(free.open.get_mut(id)?).operator_records.clear();
                reason(&free)
            }
            _ => None,
        }
    }

    /// The event to approve on an isolated replica.
    pub(crate) fn takeover(self, state: &State, input: &PlanningInput) -> Option<EventId> {
        let mut known = None;
        let mut changed = None;
        match self {
            Self::TakeoverTooEarly => {
                let mut input = input.clone();
                let alone = input.isolated.as_mut()?;
                alone.since = Timestamp(0);
                alone.seen_since.values_mut().for_each(|seen| *seen = Timestamp(0));
                changed = Some(input);
            }
            Self::TakeoverOfAnything => {
                let mut input = input.clone();
                for event in &mut input.isolated.as_mut()?.document.as_mut()?.events {
                    event.source = Source::User;
                }
                let mut state = state.clone();
                state.open.values_mut().map(Arc::make_mut).for_each(|event| event.treatment = None);
                (known, changed) = (Some(state), Some(input));
            }
            Self::TakeoverOfItself => {
                let mut input = input.clone();
                let alone = input.isolated.as_mut()?;
                let lost = alone.unreachable_voters(&input.me);
                for event in &mut alone.document.as_mut()?.events {
                    event.resources.clone_from(&lost);
                }
                changed = Some(input);
            }
            Self::TakeoverByMinority => {
                let mut input = input.clone();
                let alone = input.isolated.as_mut()?;
                let others = alone.voters.iter().filter(|name| **name != input.me).take(1);
                alone.voters = others.chain([&input.me]).cloned().collect();
                changed = Some(input);
            }
            Self::TakeoverDuringHooks => {
                let mut state = state.clone();
                for attempt in state.open.values_mut().flat_map(|event| &mut Arc::make_mut(event).attempts) {
                    attempt.outcome.get_or_insert((Outcome::Done, attempt.begun_at));
                }
                known = Some(state);
            }
            _ => {}
        }
        let (known, changed) = (known.as_ref().unwrap_or(state), changed.as_ref().unwrap_or(input));
        event_to_approve(known, changed).map(|announced| announced.id.clone())
    }
}

fn push_claim(state: &mut State, entry: &Entry, reason: Reason) -> ApplyResult {
    let Command::ClaimApproval(ClaimApproval { event, approver, until, decided_at_revision: decision, stints, .. }) =
        &entry.command
    else {
        return apply(state, entry);
    };
    state.now = state.now.max(entry.at);
    state.attempts += 1;
    let (attempt, at) = (AttemptId(state.attempts), state.now);
    if let Some(event) = state.open.get_mut(event).map(Arc::make_mut) {
        if event.stage() < Stage::Claimed {
            event.entered.push((Stage::Claimed, at));
        }
        let (approver, decision, stints, until) = (approver.clone(), *decision, stints.clone(), *until);
        event.claims.push(Claim {
            attempt,
            approver,
            reason,
            decided_at_revision: decision,
            stints,
            at,
            until,
            outcome: None,
            is_last_resort: false,
        });
    }
    ApplyResult::Applied
}
