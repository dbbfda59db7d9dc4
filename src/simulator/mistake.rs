//! Deliberate mistakes in the shell's contract and around the functions that decide, to see that they are seen. No
//! command reaches them.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::machine::apply::{apply, stints_of};
use crate::machine::attempt::Outcome;
use crate::machine::blocker::{Clearance, clearance};
use crate::machine::claim::{Claim, Reason};
use crate::machine::command::{Command, Entry, Verdict};
use crate::machine::document::Source;
use crate::machine::event::Event;
use crate::machine::id::{AttemptId, EventId};
use crate::machine::lifecycle::Stage;
use crate::machine::plan::plan;
use crate::machine::situation::Situation;
use crate::machine::slot::SlotState;
use crate::machine::slot_changes::take_all;
use crate::machine::slots;
use crate::machine::state::State;
use crate::machine::takeover::takeover;
use crate::machine::time::Timestamp;

use super::verdict::Property;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mistake {
    None,
    /// An approver posts what it saw claimed, without a round trip to a quorum.
    PostUnconfirmed,
    /// It does not mind how old its claim is.
    LeaseUnchecked,
    /// It posts without a fresh document.
    DocumentNotFresh,
    /// A replica that was restarted takes nothing for something that it may have done already.
    NothingInherited,
    /// What was lost with its machine is run once more.
    LostRunAgain,
    /// What puts back and says that nobody can tell counts as lost.
    UnknownRunAgain,
    /// A replica whose disk is new begins what it does not know, as if nobody could have begun it before.
    NewDiskUnnoticed,
    /// A hook starts without a round trip to a quorum, whatever time it is.
    HookUnconfirmed,
    /// One poll without an event is enough.
    AbsenceAtOnce,
    /// A poll that brought nothing does not interrupt the row of two.
    BadReadDoesNotInterrupt,
    /// An empty body is taken for a document without events.
    EmptyIsNoEvents,
    /// A document with a lower incarnation is taken for an old one.
    IncarnationRules,
    /// A lone replica posts before its journal is written.
    JournalSkipped,
    /// The journal does not survive the process.
    JournalLost,
    /// Time that a paused machine slept through counts for being alone.
    PauseCounts,
    /// Nobody gives account.
    NoAccount,
    /// Entries are acknowledged before they are on the disk.
    LogNotSynced,
    /// `takeover` does not wait.
    TakeoverTooEarly,
    /// `takeover` approves what the platform asks for.
    TakeoverOfAnything,
    /// `takeover` takes every VM for the lost one.
    TakeoverOfItself,
    /// `takeover` takes every minority for one of a pair.
    TakeoverByMinority,
    /// `takeover` minds no hook that may run.
    TakeoverDuringHooks,
    /// `plan` and `apply` take slots whatever the group has lost already.
    BudgetIgnored,
    /// `plan` and `apply` claim whatever an operator wants.
    HoldIgnored,
    /// `plan` and `apply` claim as soon as the event is seen.
    ClaimUnprepared,
    /// `plan` claims an event of a replica that has yet to say what runs there.
    UnregisteredIgnored,
    /// `plan` and `apply` claim once more what is approved already.
    ClaimAgain,
    /// `apply` puts back before the event is over.
    RestoreListed,
    /// `apply` lets a late outcome replace the one that was recorded.
    LateOutcomeCounts,
    /// The leader's wall clock is the cluster's time.
    OneClockRules,
    /// The leader does not mind what endpoints tell of the platform's time.
    PlatformUnheard,
    /// `apply` forgets by which hooks a member was taken away that is registered no more.
    FormerForgotten,
    /// `plan` never gives an attempt up.
    NeverExpires,
    /// The approver does not ask whether its document is of what was decided.
    DecisionUnchecked,
    /// `plan` makes one claim for each event.
    NeverClaimsAgain,
}

impl Mistake {
    /// Each, with the property by which it is to be seen.
    pub const ALL: [(Self, Property); 35] = [
        (Self::PostUnconfirmed, Property::S3),
        (Self::LeaseUnchecked, Property::S3),
        (Self::DocumentNotFresh, Property::S2),
        (Self::NothingInherited, Property::S2),
        (Self::LostRunAgain, Property::S7),
        (Self::UnknownRunAgain, Property::S7),
        (Self::NewDiskUnnoticed, Property::S7),
        (Self::HookUnconfirmed, Property::S7),
        (Self::AbsenceAtOnce, Property::S6),
        (Self::BadReadDoesNotInterrupt, Property::S6),
        (Self::EmptyIsNoEvents, Property::S6),
        (Self::IncarnationRules, Property::L3),
        (Self::JournalSkipped, Property::S2),
        (Self::JournalLost, Property::S2),
        (Self::PauseCounts, Property::S5),
        (Self::NoAccount, Property::L3),
        (Self::LogNotSynced, Property::S9),
        (Self::TakeoverTooEarly, Property::S5),
        (Self::TakeoverOfAnything, Property::S5),
        (Self::TakeoverOfItself, Property::S5),
        (Self::TakeoverByMinority, Property::S5),
        (Self::TakeoverDuringHooks, Property::S5),
        (Self::BudgetIgnored, Property::S4),
        (Self::HoldIgnored, Property::Wishes),
        (Self::ClaimUnprepared, Property::S1),
        (Self::UnregisteredIgnored, Property::S1),
        (Self::ClaimAgain, Property::S2),
        (Self::RestoreListed, Property::S8),
        (Self::LateOutcomeCounts, Property::Record),
        (Self::OneClockRules, Property::S13),
        (Self::PlatformUnheard, Property::S13),
        (Self::FormerForgotten, Property::L1),
        (Self::NeverExpires, Property::L2),
        (Self::DecisionUnchecked, Property::S10),
        (Self::NeverClaimsAgain, Property::L4),
    ];

    pub(super) fn apply(self, state: &mut State, entry: &Entry) -> Verdict {
        match (self, &entry.command) {
            (Self::HoldIgnored | Self::ClaimUnprepared | Self::ClaimAgain, Command::Claim { event, .. }) => {
                match self.claims(state, event, entry.at) {
                    Some(reason) => push_claim(state, entry, reason),
                    None => apply(state, entry),
                }
            }
            (Self::BudgetIgnored, Command::Take { event }) => {
                state.now = state.now.max(entry.at);
                take_all(state, event);
                Verdict::Applied
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
            (Self::FormerForgotten, Command::Register { .. }) => {
                let verdict = apply(state, entry);
                state.replicas.values_mut().for_each(|replica| Arc::make_mut(replica).former.clear());
                verdict
            }
            (Self::LateOutcomeCounts, Command::Settle { event, attempt, outcome }) => {
                let known = state.open.get_mut(event).map(Arc::make_mut);
                let known = known.and_then(|event| event.attempts.iter_mut().find(|known| known.id == *attempt));
                match known {
                    Some(known) if known.outcome.as_ref().is_some_and(|(was, _)| was != outcome) => {
                        known.outcome = Some((outcome.clone(), entry.at));
                        Verdict::Applied
                    }
                    _ => apply(state, entry),
                }
            }
            _ => apply(state, entry),
        }
    }

    pub(super) fn plan(self, state: &State, situation: &Situation) -> Vec<Command> {
        let mut due = plan(state, situation);
        due.retain(|due| match due {
            Command::Expire { .. } => self != Self::NeverExpires,
            Command::Claim { event, .. } => {
                let is_first = state.open_event(event).is_none_or(|event| event.claims.is_empty());
                self != Self::NeverClaimsAgain || is_first
            }
            _ => true,
        });
        if situation.lead.as_ref().is_some() && !matches!(due.first(), Some(Command::Lead { .. })) {
            for id in state.open.keys() {
                let approver = situation.approver(state, id).cloned();
                let (Some(reason), Some(approver)) = (self.claims(state, id, situation.now), approver) else {
                    continue;
                };
                let until = situation.now.plus(situation.timing.claim_lease);
                let stints = state.open_event(id).map(|event| stints_of(state, event)).unwrap_or_default();
                let decision = state.open_event(id).map_or(0, |event| event.decision);
                due.push(Command::Claim { event: id.clone(), approver, reason, decision, stints, until });
            }
            if self == Self::BudgetIgnored {
                let waits = |event: &&Event| event.slots_since.is_none() && slots::is_able(state, event, situation.now);
                let waiting = state.open_events().filter(waits).map(|event| event.announcement.id.clone());
                due.extend(waiting.map(|event| Command::Take { event }));
            }
        }
        due
    }

    /// Why this mistake claims an event that must not be claimed.
    fn claims(self, state: &State, id: &EventId, now: Timestamp) -> Option<Reason> {
        let event = state.open_event(id)?;
        let reason = |state: &State| match clearance(state, state.open_event(id)?, now) {
            Clearance::Clear(reason) => Some(reason),
            Clearance::Blocked(_) | Clearance::NothingToApprove => None,
        };
        let is_first = event.claims.is_empty() && event.takeovers.is_empty() && event.stage() <= Stage::Preparing;
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
                free.wishes.clear();
                Arc::make_mut(free.open.get_mut(id)?).wishes.clear();
                reason(&free)
            }
            _ => None,
        }
    }

    /// The event that the replica approves alone.
    pub(super) fn takeover(self, state: &State, situation: &Situation) -> Option<EventId> {
        let mut known = None;
        let mut changed = None;
        match self {
            Self::TakeoverTooEarly => {
                let mut situation = situation.clone();
                let alone = situation.alone.as_mut()?;
                alone.since = Timestamp(0);
                alone.seen_since.values_mut().for_each(|seen| *seen = Timestamp(0));
                changed = Some(situation);
            }
            Self::TakeoverOfAnything => {
                let mut situation = situation.clone();
                for event in &mut situation.alone.as_mut()?.document.as_mut()?.events {
                    event.source = Source::User;
                }
                let mut state = state.clone();
                state.open.values_mut().map(Arc::make_mut).for_each(|event| event.treatment = None);
                (known, changed) = (Some(state), Some(situation));
            }
            Self::TakeoverOfItself => {
                let mut situation = situation.clone();
                let alone = situation.alone.as_mut()?;
                let lost = alone.out_of_reach(&situation.me);
                for event in &mut alone.document.as_mut()?.events {
                    event.resources.clone_from(&lost);
                }
                changed = Some(situation);
            }
            Self::TakeoverByMinority => {
                let mut situation = situation.clone();
                let alone = situation.alone.as_mut()?;
                let others = alone.voters.iter().filter(|name| **name != situation.me).take(1);
                alone.voters = others.chain([&situation.me]).cloned().collect();
                changed = Some(situation);
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
        let (known, changed) = (known.as_ref().unwrap_or(state), changed.as_ref().unwrap_or(situation));
        takeover(known, changed).map(|announced| announced.id.clone())
    }
}

fn push_claim(state: &mut State, entry: &Entry, reason: Reason) -> Verdict {
    let Command::Claim { event, approver, until, decision, stints, .. } = &entry.command else {
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
        event.claims.push(Claim { attempt, approver, reason, decision, stints, at, until, outcome: None });
    }
    Verdict::Applied
}
