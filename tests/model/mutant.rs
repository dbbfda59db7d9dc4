//! Deliberate mistakes, each of which the model must detect.

use std::sync::Arc;

use allclear::core::apply::apply;
use allclear::core::model::attempt::{Attempt, Outcome};
use allclear::core::model::claim::{Claim, Reason};
use allclear::core::model::command::{
    ApplyResult, BeginAttempt, BeginLastCall, ClaimApproval, Command, EndDrill, Entry, FinishAttempt, GiveBackSlots,
    RecordPost, RequestAction, TakeSlots,
};
use allclear::core::model::document::Source;
use allclear::core::model::id::AttemptId;
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::operator::{OperatorAction, OperatorRecord, OperatorRequest};
use allclear::core::model::slot::{Slot, SlotState};
use allclear::core::model::state::State;
use allclear::core::model::workload::{Intent, Member, Phase, Role};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    None,
    /// `apply` accepts every claim.
    ClaimUnguarded,
    /// `apply` accepts a second claim while the first is in force.
    ClaimTwice,
    /// `apply` restores prepared workloads as soon as the event has started.
    RestoreEarly,
    /// `apply` undoes a hook which is done.
    UndoDone,
    /// `apply` begins an exclusive hook beside another exclusive hook.
    RunBeside,
    /// `apply` begins a hook beside another event's hook for the same workload.
    RunBesideEvent,
    /// `apply` lets a confirmation be requested again.
    AskAgain,
    /// `apply` closes an event which is over without restoring anything.
    ForgetRestoring,
    /// `apply` resets an event to the beginning when the event is listed again.
    GoBack,
    /// `apply` takes any answer of the platform for an approval.
    ApproveRefused,
    /// The approver does not check whether the event still matches the decision.
    PostUndecided,
    /// `apply` lets a late outcome replace the recorded outcome.
    Rewrite,
    /// `apply` claims a drill instead of ending the drill.
    ClaimDrill,
    /// `apply` takes a drill which ends for an event which has started.
    StartDrill,
    /// `apply` continues a drill when an event is announced.
    DrillOn,
    /// An approver posts an old claim without confirming the claim.
    PostUnconfirmed,
    /// A replica runs an attempt again which ran before the crash.
    RunAgain,
    /// `apply` accepts a claim while an operator holds the event, or all events.
    ClaimAgainstWish,
    /// `apply` accepts an operator's approval of any later revision of the event.
    ApproveUnseen,
    /// The leader never finds that a silent replica's document is too old.
    NeverDiscount,
    /// `apply` grants an event its slots regardless of other members which are out.
    TakeBeyondLimit,
    /// `apply` grants an event its slots as if only events took members out, and no member failed.
    TakeBesideTheSick,
    /// `apply` takes every event for a repair.
    RepairAnything,
    /// `apply` begins a disruptive hook without a slot.
    BeginWithoutSlot,
    /// `apply` begins a disruptive hook though another member has failed since the slot was taken.
    BeginAboveLimit,
    /// `apply` accepts the last call of an event at any time.
    LastCallEarly,
    /// `apply` accepts a claim for stints which are over.
    ClaimOldStint,
    /// `apply` counts hooks of an earlier stint.
    CountOldStint,
    /// `apply` takes a member for restored when the member's event is over.
    ForgetDebt,
    /// `apply` takes a member for restored after a failed restore.
    RestoredByFailure,
    /// `apply` does not count how often an event gives back.
    GiveBackForEver,
    /// The leader never has an event give back.
    NeverGiveBack,
    /// The leader gives no slots to the second event.
    NeverTake,
    /// `apply` begins a failover beside another failover of the group.
    FailoverBeside,
    /// `apply` drains a primary before its failover.
    DrainPrimary,
    /// `apply` restores a member which an event keeps out.
    RestoreKeptOut,
}

impl Mutant {
    /// Result of a broken `apply` for this entry; `None` leaves the entry to the real `apply`.
    pub(crate) fn overrules(self, state: &mut State, entry: &Entry) -> Option<ApplyResult> {
        match (self, &entry.command) {
            (Self::ClaimUnguarded, Command::ClaimApproval(ClaimApproval { event, .. })) => {
                let event = state.open.get_mut(event).filter(|event| event.claims.is_empty()).map(Arc::make_mut)?;
                event.entered.push((Stage::Claimed, entry.at));
                push_claim(state, entry)
            }
            (Self::ClaimTwice, Command::ClaimApproval(ClaimApproval { event, .. })) => {
                state.open_event(event).filter(|event| event.claims.len() == 1 && event.stage() == Stage::Claimed)?;
                push_claim(state, entry)
            }
            (Self::ForgetRestoring, Command::BeginAttempt(BeginAttempt { event, .. })) => {
                let mut event = state.open_event(event).filter(|event| event.stage() == Stage::Restoring)?.clone();
                event.entered.push((Stage::Closed, entry.at));
                state.open.remove(&event.announcement.id);
                state.history.push_back(event.into());
                Some(ApplyResult::Applied)
            }
            (Self::GoBack, Command::ReportDocument(_)) => {
                let mut gone_back = false;
                for event in state.open.values_mut().filter(|event| event.stage() == Stage::Claimed) {
                    Arc::make_mut(event).entered.push((Stage::Announced, entry.at));
                    gone_back = true;
                }
                gone_back.then_some(ApplyResult::Applied)
            }
            (Self::ApproveRefused, Command::RecordPost(RecordPost { event, outcome, .. })) => {
                let event =
                    state.open.get_mut(event).filter(|event| event.stage() == Stage::Claimed).map(Arc::make_mut)?;
                event.entered.push((Stage::Approved, entry.at));
                event.claims.last_mut()?.outcome = Some((outcome.clone(), entry.at));
                Some(ApplyResult::Applied)
            }
            (Self::Rewrite, Command::FinishAttempt(FinishAttempt { event, attempt, outcome })) => {
                let event = state.open.get_mut(event).map(Arc::make_mut)?;
                let attempt = event.attempts.iter_mut().find(|found| found.id == *attempt)?;
                attempt.outcome.is_some().then(|| attempt.outcome = Some((outcome.clone(), entry.at)))?;
                Some(ApplyResult::Applied)
            }
            _ => self.begins_wrongly(state, entry).or_else(|| self.mistakes_a_drill(state, entry)),
        }
    }

    fn begins_wrongly(self, state: &mut State, entry: &Entry) -> Option<ApplyResult> {
        match (self, &entry.command) {
            (Self::RestoreEarly, Command::BeginAttempt(BeginAttempt { event, member, hook, .. })) => {
                let event =
                    state.open.get_mut(event).filter(|event| event.stage() == Stage::Started).map(Arc::make_mut)?;
                (hook.phase == Phase::Restore && event.was_prepared(member)).then_some(())?;
                event.entered.push((Stage::Restoring, entry.at));
                push_attempt(state, entry)
            }
            (Self::UndoDone, Command::BeginAttempt(BeginAttempt { event, member, hook, intent: Intent::Undo, .. })) => {
                let event = state.open_event(event)?;
                let last = event.attempts_of(member, *hook).next_back()?;
                matches!(last.outcome, Some((Outcome::Done, _))).then_some(())?;
                push_attempt(state, entry)
            }
            (Self::RunBeside, Command::BeginAttempt(BeginAttempt { event, member, hook, .. })) => {
                let is_free = state.open_event(event)?.attempts.is_empty() && hook.phase < Phase::Restore;
                (is_free && state.stint(event, member).is_some()).then_some(())?;
                push_attempt(state, entry)
            }
            (Self::RunBesideEvent, Command::BeginAttempt(BeginAttempt { event, .. })) => {
                // As if there were no other event.
                let mut alone = state.clone();
                alone.open.retain(|id, _| id == event);
                let verdict = apply(&mut alone, entry);
                let begun = alone.open.remove(event).filter(|_| verdict == ApplyResult::Applied)?;
                state.attempts = alone.attempts;
                state.slots.extend(alone.slots);
                state.open.insert(event.clone(), begun);
                Some(verdict)
            }
            (
                Self::AskAgain,
                Command::BeginAttempt(BeginAttempt { event, member, hook, intent: Intent::Confirm, .. }),
            ) => {
                let last = state.open_event(event)?.attempts_of(member, *hook).next_back()?;
                (last.intent == Intent::Confirm && last.outcome.is_some()).then_some(())?;
                push_attempt(state, entry)
            }
            _ => None,
        }
    }

    fn mistakes_a_drill(self, state: &mut State, entry: &Entry) -> Option<ApplyResult> {
        match (self, &entry.command) {
            (Self::ClaimDrill, Command::EndDrill(EndDrill { event })) => {
                let (event, until) = (event.clone(), entry.at);
                let claim = Command::ClaimApproval(ClaimApproval {
                    event,
                    approver: entry.by.clone(),
                    reason: Reason::Prepared,
                    decided_at_revision: 1,
                    stints: Vec::new(),
                    until,
                    is_last_resort: false,
                });
                push_claim(state, &Entry { command: claim, ..entry.clone() })
            }
            (Self::StartDrill, Command::EndDrill(EndDrill { event })) => {
                Arc::make_mut(state.open.get_mut(event)?).entered.push((Stage::Started, entry.at));
                Some(ApplyResult::Applied)
            }
            (Self::DrillOn, Command::ReportDocument(_)) => {
                let drill = state.open_events().find(|event| event.is_drill())?.clone();
                let verdict = apply(state, entry);
                state.open.insert(drill.announcement.id.clone(), drill.into());
                Some(verdict)
            }
            _ => self.overrules_operators(state, entry).or_else(|| self.overrules_slots(state, entry)),
        }
    }

    fn overrules_operators(self, state: &mut State, entry: &Entry) -> Option<ApplyResult> {
        match (self, &entry.command) {
            (Self::ClaimAgainstWish, Command::ClaimApproval(ClaimApproval { event, .. })) => {
                let pause = state.pause(entry.at);
                let event = state.open.get_mut(event).filter(|event| event.claims.is_empty()).map(Arc::make_mut)?;
                pause.or_else(|| event.hold(entry.at))?;
                event.entered.push((Stage::Claimed, entry.at));
                push_claim(state, entry)
            }
            (
                Self::ApproveUnseen,
                Command::RequestAction(RequestAction {
                    what: OperatorRequest::Approve { event, revision, .. },
                    who,
                    reason,
                }),
            ) => {
                let event =
                    state.open.get_mut(event).filter(|event| event.stage() <= Stage::Preparing).map(Arc::make_mut)?;
                state.operator_seq += 1;
                let what = OperatorAction::Approve { revision: *revision, over_budget: false };
                let (number, at, who, reason) = (state.operator_seq, entry.at, who.clone(), reason.clone());
                event.operator_records.push(OperatorRecord { number, at, who, reason, what });
                Some(ApplyResult::Applied)
            }
            _ => None,
        }
    }

    pub(crate) fn plans(self, due: &Command) -> bool {
        match (self, due) {
            (Self::NeverDiscount, Command::MarkDocumentStale(_)) | (Self::NeverGiveBack, Command::GiveBackSlots(_)) => {
                false
            }
            (Self::NeverTake, Command::TakeSlots(TakeSlots { event })) => *event != crate::world::event_id(1),
            _ => true,
        }
    }

    /// Mutants of the rules for members being out.
    fn overrules_slots(self, state: &mut State, entry: &Entry) -> Option<ApplyResult> {
        match (self, &entry.command) {
            (Self::TakeBeyondLimit, Command::TakeSlots(TakeSlots { event })) => {
                state.open_event(event).filter(|event| event.slots_since.is_none() && event.treatment.is_some())?;
                let mut alone = state.clone();
                alone.slots.clear();
                alone.open.retain(|id, _| id == event);
                apply_to(state, alone, entry)
            }
            (Self::TakeBesideTheSick, Command::TakeSlots(_)) | (Self::BeginAboveLimit, Command::BeginAttempt(_)) => {
                let mut healthy = state.clone();
                for replica in healthy.replicas.values_mut().map(Arc::make_mut) {
                    replica.conditions.clear();
                    replica.unready.clear();
                    replica.unreachable = None;
                }
                apply_to(state, healthy, entry)
            }
            (Self::RepairAnything, Command::TakeSlots(TakeSlots { event })) => {
                let mut sick = state.clone();
                let vms = sick.open_event(event)?.announcement.resources.clone();
                for (_, replica) in sick.replicas.iter_mut().filter(|(vm, _)| vms.contains(vm)) {
                    Arc::make_mut(replica).unreachable = Some(entry.at);
                }
                Arc::make_mut(sick.open.get_mut(event)?).announcement.source = Source::User;
                apply_to(state, sick, entry)
            }
            (Self::BeginWithoutSlot, Command::BeginAttempt(BeginAttempt { event, member, hook, .. })) => {
                let is_idle = state.open_event(event)?.attempts.is_empty() && hook.phase == Phase::Drain;
                (is_idle && !state.slots.contains_key(member)).then_some(())?;
                push_attempt(state, entry)
            }
            _ => self.mixes_stints(state, entry),
        }
    }

    fn mixes_stints(self, state: &mut State, entry: &Entry) -> Option<ApplyResult> {
        match (self, &entry.command) {
            (Self::LastCallEarly, Command::BeginLastCall(BeginLastCall { event })) => {
                let event = state.open.get_mut(event).map(Arc::make_mut)?;
                (event.last_call_since.is_none() && event.stage() <= Stage::Preparing).then_some(())?;
                event.last_call_since = Some(entry.at);
                Some(ApplyResult::Applied)
            }
            (Self::ClaimOldStint, Command::ClaimApproval(ClaimApproval { event, stints, .. })) => {
                let claimable = state.open_event(event)?;
                (claimable.claims.is_empty() && claimable.stage() == Stage::Preparing).then_some(())?;
                let is_old =
                    |(member, stint): &(Member, u64)| state.slots.get(member).is_none_or(|it| it.stint != *stint);
                stints.iter().any(is_old).then_some(())?;
                Arc::make_mut(state.open.get_mut(event)?).entered.push((Stage::Claimed, entry.at));
                push_claim(state, entry)
            }
            (Self::CountOldStint, Command::TakeSlots(TakeSlots { event })) => {
                let verdict = apply(state, entry);
                let stints: Vec<(Member, u64)> =
                    state.slots.iter().map(|(member, slot)| (member.clone(), slot.stint)).collect();
                for attempt in &mut Arc::make_mut(state.open.get_mut(event)?).attempts {
                    let now = stints.iter().find(|(member, _)| *member == attempt.member);
                    attempt.stint = now.map_or(attempt.stint, |(_, stint)| *stint);
                }
                Some(verdict)
            }
            _ => self.forgets_members(state, entry),
        }
    }

    fn forgets_members(self, state: &mut State, entry: &Entry) -> Option<ApplyResult> {
        match (self, &entry.command) {
            (Self::ForgetDebt, Command::ReportDocument(_)) => {
                let verdict = apply(state, entry);
                let over = |slot: &Slot| slot.state == SlotState::Returning;
                state.slots.retain(|_, slot| !over(slot));
                Some(verdict)
            }
            (
                Self::RestoredByFailure,
                Command::FinishAttempt(FinishAttempt { event, attempt, outcome: Outcome::Failed(_) }),
            ) => {
                let known = state.open_event(event)?.attempt(*attempt)?.clone();
                let verdict = apply(state, entry);
                (known.hook.phase == Phase::Restore).then(|| state.slots.remove(&known.member))?;
                Some(verdict)
            }
            (Self::GiveBackForEver, Command::GiveBackSlots(GiveBackSlots { event })) => {
                let verdict = apply(state, entry);
                let event = Arc::make_mut(state.open.get_mut(event)?);
                event.times_given_back = if event.times_given_back == 1 { 3 } else { event.times_given_back };
                Some(verdict)
            }
            (
                Self::FailoverBeside | Self::DrainPrimary,
                Command::BeginAttempt(BeginAttempt { event, member, hook, intent: Intent::Run, .. }),
            ) => {
                let is_it = match self {
                    Self::FailoverBeside => hook.phase == Phase::Failover,
                    _ => hook.phase == Phase::Drain && state.role(member) == Role::Primary,
                };
                let has_run =
                    state.open_event(event)?.attempts.iter().any(|it| it.member == *member && it.hook == *hook);
                (is_it && !has_run && state.stint(event, member).is_some()).then_some(())?;
                push_attempt(state, entry)
            }
            (
                Self::RestoreKeptOut,
                Command::BeginAttempt(BeginAttempt { event, member, hook, intent: Intent::Run, .. }),
            ) => {
                let is_idle = state.open_event(event)?.attempts.iter().all(|attempt| attempt.outcome.is_some());
                let is_out = state.slots.get(member).is_some_and(|slot| !slot.events.is_empty());
                (hook.phase == Phase::Restore && is_idle && is_out).then_some(())?;
                push_attempt(state, entry)
            }
            _ => None,
        }
    }
}

/// Applies the entry to `other`, and copies the resulting event into `state`.
fn apply_to(state: &mut State, mut other: State, entry: &Entry) -> Option<ApplyResult> {
    let verdict = apply(&mut other, entry);
    let (Command::TakeSlots(TakeSlots { event }) | Command::BeginAttempt(BeginAttempt { event, .. })) = &entry.command
    else {
        return None;
    };
    if verdict != ApplyResult::Applied {
        return Some(verdict);
    }
    let mut changed = other.open.remove(event)?;
    if let Some(known) = state.open.get(event) {
        Arc::make_mut(&mut changed).announcement = known.announcement.clone();
    }
    (state.attempts, state.stints) = (other.attempts, state.stints.max(other.stints));
    state.open.insert(event.clone(), changed);
    for (member, slot) in other.slots {
        state.slots.entry(member).or_insert(slot);
    }
    Some(verdict)
}

fn push_claim(state: &mut State, entry: &Entry) -> Option<ApplyResult> {
    let Command::ClaimApproval(ClaimApproval {
        event,
        approver,
        reason,
        decided_at_revision: decision,
        stints,
        until,
        is_last_resort: false,
    }) = &entry.command
    else {
        return None;
    };
    state.attempts += 1;
    let attempt = AttemptId(state.attempts);
    let event = state.open.get_mut(event).map(Arc::make_mut)?;
    let (approver, reason, decision) = (approver.clone(), *reason, *decision);
    let (stints, until) = (stints.clone(), *until);
    event.claims.push(Claim {
        attempt,
        approver,
        reason,
        decided_at_revision: decision,
        stints,
        at: entry.at,
        until,
        outcome: None,
        is_last_resort: false,
    });
    Some(ApplyResult::Applied)
}

fn push_attempt(state: &mut State, entry: &Entry) -> Option<ApplyResult> {
    let Command::BeginAttempt(BeginAttempt { event, member, hook, intent, on, deadline }) = &entry.command else {
        return None;
    };
    state.attempts += 1;
    let id = AttemptId(state.attempts);
    let stint = state.slots.get(member).map_or(0, |slot| slot.stint);
    Arc::make_mut(state.open.get_mut(event)?).attempts.push(Attempt {
        id,
        member: member.clone(),
        hook: *hook,
        intent: *intent,
        stint,
        on: on.clone(),
        begun_at: entry.at,
        deadline: *deadline,
        progress: None,
        blocked: None,
        outcome: None,
        late: None,
    });
    Some(ApplyResult::Applied)
}
