//! Deliberate mistakes, to see that the model sees them.

use std::sync::Arc;

use allclear::machine::apply::apply;
use allclear::machine::attempt::{Attempt, Outcome};
use allclear::machine::claim::{Claim, Reason};
use allclear::machine::command::{Command, Entry, Verdict};
use allclear::machine::id::AttemptId;
use allclear::machine::lifecycle::Stage;
use allclear::machine::operator::{Asked, What, Wish};
use allclear::machine::state::State;
use allclear::machine::workload::{Intent, Phase};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    None,
    /// `apply` takes every claim.
    ClaimUnguarded,
    /// `apply` takes a second claim while the first is in force.
    ClaimTwice,
    /// `apply` takes a claim while another event has the share of its group.
    ClaimBeyondBudget,
    /// `apply` puts back what was touched as soon as the event has started.
    RestoreEarly,
    /// `apply` takes back what is done.
    UndoDone,
    /// `apply` begins an exclusive hook beside another one.
    RunBeside,
    /// `apply` begins a hook beside another event's for the same workload.
    RunBesideEvent,
    /// `apply` lets what was asked about be asked about again.
    AskAgain,
    /// `apply` closes an event that is over without putting anything back.
    ForgetRestoring,
    /// `apply` lets an event go back to the beginning when it is listed again.
    GoBack,
    /// `apply` takes any answer of the platform for an approval.
    ApproveRefused,
    /// `apply` lets a late outcome replace the one that was recorded.
    Rewrite,
    /// `apply` claims a drill where it should end it.
    ClaimDrill,
    /// `apply` takes a drill that ends for an event that has started.
    StartDrill,
    /// `apply` lets a drill go on when an event is announced.
    DrillOn,
    /// An approver posts what it saw claimed once, without asking whether that is still so.
    PostUnconfirmed,
    /// A replica runs once more what it ran before it crashed.
    RunAgain,
    /// `apply` takes a claim while an operator holds the event, or everything.
    ClaimAgainstWish,
    /// `apply` takes an operator's approval of whatever the event has become.
    ApproveUnseen,
    /// The leader never finds that a silent replica's document is too old.
    NeverDiscount,
}

impl Mutant {
    /// A broken `apply` for this entry; `None` leaves it to the real one.
    pub(crate) fn overrules(self, state: &mut State, entry: &Entry) -> Option<Verdict> {
        match (self, &entry.command) {
            (Self::ClaimUnguarded, Command::Claim { event, .. }) => {
                let event = state.open.get_mut(event).filter(|event| event.claims.is_empty()).map(Arc::make_mut)?;
                event.entered.push((Stage::Claimed, entry.at));
                push_claim(state, entry)
            }
            (Self::ClaimTwice, Command::Claim { event, .. }) => {
                state.open_event(event).filter(|event| event.claims.len() == 1 && event.stage() == Stage::Claimed)?;
                push_claim(state, entry)
            }
            (Self::ClaimBeyondBudget, Command::Claim { event, reason: Reason::NothingToPrepare, .. }) => {
                state.open_events().find(|other| other.stage() == Stage::Claimed)?;
                let event = state.open.get_mut(event).filter(|event| event.claims.is_empty()).map(Arc::make_mut)?;
                event.treatment.as_ref()?;
                event.entered.push((Stage::Claimed, entry.at));
                push_claim(state, entry)
            }
            (Self::ForgetRestoring, Command::Begin { event, .. }) => {
                let mut event = state.open_event(event).filter(|event| event.stage() == Stage::Restoring)?.clone();
                event.entered.push((Stage::Closed, entry.at));
                state.open.remove(&event.announcement.id);
                state.history.push_back(event.into());
                Some(Verdict::Applied)
            }
            (Self::GoBack, Command::Report { .. }) => {
                let mut gone_back = false;
                for event in state.open.values_mut().filter(|event| event.stage() == Stage::Claimed) {
                    Arc::make_mut(event).entered.push((Stage::Preparing, entry.at));
                    gone_back = true;
                }
                gone_back.then_some(Verdict::Applied)
            }
            (Self::ApproveRefused, Command::Posted { event, outcome, .. }) => {
                let event =
                    state.open.get_mut(event).filter(|event| event.stage() == Stage::Claimed).map(Arc::make_mut)?;
                event.entered.push((Stage::Approved, entry.at));
                event.claims.last_mut()?.outcome = Some((outcome.clone(), entry.at));
                Some(Verdict::Applied)
            }
            (Self::Rewrite, Command::Settle { event, attempt, outcome }) => {
                let event = state.open.get_mut(event).map(Arc::make_mut)?;
                let attempt = event.attempts.iter_mut().find(|found| found.id == *attempt)?;
                attempt.outcome.is_some().then(|| attempt.outcome = Some((outcome.clone(), entry.at)))?;
                Some(Verdict::Applied)
            }
            _ => self.begins_wrongly(state, entry).or_else(|| self.mistakes_a_drill(state, entry)),
        }
    }

    fn begins_wrongly(self, state: &mut State, entry: &Entry) -> Option<Verdict> {
        match (self, &entry.command) {
            (Self::RestoreEarly, Command::Begin { event, member, hook, .. }) => {
                let event =
                    state.open.get_mut(event).filter(|event| event.stage() == Stage::Started).map(Arc::make_mut)?;
                (hook.phase == Phase::Restore && event.touched(member)).then_some(())?;
                event.entered.push((Stage::Restoring, entry.at));
                push_attempt(state, entry)
            }
            (Self::UndoDone, Command::Begin { event, member, hook, intent: Intent::Undo, .. }) => {
                let event = state.open_event(event)?;
                let last = event.attempts_of(member, *hook).next_back()?;
                matches!(last.outcome, Some((Outcome::Done, _))).then_some(())?;
                push_attempt(state, entry)
            }
            (Self::RunBeside, Command::Begin { event, hook, .. }) => {
                let is_free = state.open_event(event)?.attempts.is_empty() && hook.phase < Phase::Restore;
                is_free.then_some(())?;
                push_attempt(state, entry)
            }
            (Self::RunBesideEvent, Command::Begin { event, .. }) => {
                // As if there were no other event.
                let mut alone = state.clone();
                alone.open.retain(|id, _| id == event);
                let verdict = apply(&mut alone, entry);
                let begun = alone.open.remove(event).filter(|_| verdict == Verdict::Applied)?;
                state.attempts = alone.attempts;
                state.open.insert(event.clone(), begun);
                Some(verdict)
            }
            (Self::AskAgain, Command::Begin { event, member, hook, intent: Intent::Confirm, .. }) => {
                let last = state.open_event(event)?.attempts_of(member, *hook).next_back()?;
                (last.intent == Intent::Confirm && last.outcome.is_some()).then_some(())?;
                push_attempt(state, entry)
            }
            _ => None,
        }
    }

    fn mistakes_a_drill(self, state: &mut State, entry: &Entry) -> Option<Verdict> {
        match (self, &entry.command) {
            (Self::ClaimDrill, Command::EndDrill { event }) => {
                let (event, until) = (event.clone(), entry.at);
                let claim = Command::Claim { event, approver: entry.by.clone(), reason: Reason::Prepared, until };
                push_claim(state, &Entry { command: claim, ..entry.clone() })
            }
            (Self::StartDrill, Command::EndDrill { event }) => {
                Arc::make_mut(state.open.get_mut(event)?).entered.push((Stage::Started, entry.at));
                Some(Verdict::Applied)
            }
            (Self::DrillOn, Command::Report { .. }) => {
                let drill = state.open_events().find(|event| event.is_drill())?.clone();
                let verdict = apply(state, entry);
                state.open.insert(drill.announcement.id.clone(), drill.into());
                Some(verdict)
            }
            _ => self.overrules_operators(state, entry),
        }
    }

    fn overrules_operators(self, state: &mut State, entry: &Entry) -> Option<Verdict> {
        match (self, &entry.command) {
            (Self::ClaimAgainstWish, Command::Claim { event, .. }) => {
                let pause = state.pause(entry.at);
                let event = state.open.get_mut(event).filter(|event| event.claims.is_empty()).map(Arc::make_mut)?;
                pause.or_else(|| event.hold(entry.at))?;
                event.entered.push((Stage::Claimed, entry.at));
                push_claim(state, entry)
            }
            (Self::ApproveUnseen, Command::Ask { what: Asked::Approve { event, revision }, who, reason }) => {
                let event =
                    state.open.get_mut(event).filter(|event| event.stage() <= Stage::Preparing).map(Arc::make_mut)?;
                state.wished += 1;
                let what = What::Approve { revision: *revision };
                let (number, at, who, reason) = (state.wished, entry.at, who.clone(), reason.clone());
                event.wishes.push(Wish { number, at, who, reason, what });
                Some(Verdict::Applied)
            }
            _ => None,
        }
    }

    pub(crate) fn plans(self, due: &Command) -> bool {
        self != Self::NeverDiscount || !matches!(due, Command::Discount { .. })
    }
}

fn push_claim(state: &mut State, entry: &Entry) -> Option<Verdict> {
    let Command::Claim { event, approver, reason, until } = &entry.command else { return None };
    state.attempts += 1;
    let attempt = AttemptId(state.attempts);
    let event = state.open.get_mut(event).map(Arc::make_mut)?;
    let (approver, reason, until) = (approver.clone(), *reason, *until);
    event.claims.push(Claim { attempt, approver, reason, at: entry.at, until, outcome: None });
    Some(Verdict::Applied)
}

fn push_attempt(state: &mut State, entry: &Entry) -> Option<Verdict> {
    let Command::Begin { event, member, hook, intent, on, deadline } = &entry.command else { return None };
    state.attempts += 1;
    let id = AttemptId(state.attempts);
    Arc::make_mut(state.open.get_mut(event)?).attempts.push(Attempt {
        id,
        member: member.clone(),
        hook: *hook,
        intent: *intent,
        on: on.clone(),
        begun_at: entry.at,
        deadline: *deadline,
        progress: None,
        outcome: None,
        late: None,
    });
    Some(Verdict::Applied)
}
