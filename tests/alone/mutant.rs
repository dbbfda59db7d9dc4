//! Deliberate mistakes: each must be detected by the broken property.

use allclear::core::apply;
use allclear::core::isolation::approval;
use allclear::core::model::blocker::Clearance;
use allclear::core::model::command::{ApplyResult, BeginLeadership, ClaimApproval, Command, Entry, ReconcileJournal};
use allclear::core::model::document::{Announcement, Source};
use allclear::core::model::id::{EventId, VmName};
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::plan;
use allclear::core::planning_input::PlanningInput;
use allclear::core::schedule::clearance::clearance;
use std::sync::Arc;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mutant {
    None,
    /// `apply` clears a voter by a reconciliation under any number.
    OldAccountsClear,
    /// `apply` does not adopt events known only from a journal.
    AccountsSkipUnknown,
    /// `apply` lets a leader begin without suspecting itself.
    LeadSparesLeader,
    /// `apply` and `plan` do not count possible approvals of suspects.
    SuspectsTakeNothing,
    /// `apply` and `plan` let a suspect leader claim.
    SuspectClaims,
    /// A voter is cleared by being reachable again.
    ReachabilityClears,
    /// `event_to_approve` ignores other events, and their slots.
    OthersIgnored,
    /// `event_to_approve` takes every minority for one of a pair.
    MinorityActs,
    /// `event_to_approve` ignores operators.
    HoldIgnored,
    /// `event_to_approve` takes every VM for the lost VM.
    TakesItself,
    /// `event_to_approve` approves events of the platform.
    AnySource,
    /// `event_to_approve` uses only entries which its replica has applied.
    TailIgnored,
    /// The journal does not survive a crash.
    JournalLost,
    /// The journal entry is begun though the replica follows a leader again.
    BegunInContact,
}

impl Mutant {
    pub(crate) fn apply(self, state: &mut State, entry: &Entry) -> ApplyResult {
        match (self, &entry.command) {
            (Self::OldAccountsClear, Command::ReconcileJournal(_)) => {
                apply::apply(state, entry);
                if let Some(suspicion) = state.reconcile_states.get_mut(&entry.by) {
                    suspicion.is_reconciled = true;
                }
                ApplyResult::Applied
            }
            (Self::AccountsSkipUnknown, Command::ReconcileJournal(ReconcileJournal { number, journal })) => {
                let known = |id: &EventId| state.event(id).is_some();
                let journal = journal.iter().filter(|entry| known(&entry.announcement.id)).cloned().collect();
                apply::apply(
                    state,
                    &Entry {
                        command: Command::ReconcileJournal(ReconcileJournal { number: *number, journal }),
                        ..entry.clone()
                    },
                )
            }
            (Self::LeadSparesLeader, Command::BeginLeadership(BeginLeadership { term, turn, voters })) => {
                let voters = voters.iter().filter(|voter| **voter != entry.by).cloned().collect();
                let command = Command::BeginLeadership(BeginLeadership { term: *term, turn: *turn, voters });
                apply::apply(state, &Entry { command, ..entry.clone() })
            }
            (Self::SuspectsTakeNothing, Command::ClaimApproval(_)) => {
                self.trusting(state, &entry.by, |state| apply::apply(state, entry))
            }
            (Self::SuspectClaims, Command::ClaimApproval(ClaimApproval { event, .. }))
                if is_clear(state, event, entry.at) =>
            {
                self.trusting(state, &entry.by, |state| apply::apply(state, entry))
            }
            _ => apply::apply(state, entry),
        }
    }

    pub(crate) fn plan(self, state: &State, input: &PlanningInput) -> Vec<Command> {
        let due = self.trusting(&mut state.clone(), &input.me, |state| plan::plan(state, input));
        let is_kept = |due: &Command| match due {
            Command::ClaimApproval(ClaimApproval { event, .. }) => {
                self != Self::SuspectClaims || is_clear(state, event, input.now)
            }
            _ => true,
        };
        due.into_iter().filter(is_kept).collect()
    }

    /// Judges as if the replicas of this mutant were cleared.
    fn trusting<T>(self, state: &mut State, me: &VmName, judge: impl FnOnce(&mut State) -> T) -> T {
        let real = state.reconcile_states.clone();
        for (name, suspicion) in &mut state.reconcile_states {
            suspicion.is_reconciled |= match self {
                Self::SuspectsTakeNothing => name != me,
                Self::SuspectClaims => name == me,
                _ => false,
            };
        }
        let judged = judge(state);
        state.reconcile_states = real;
        judged
    }

    /// The event of the isolated approval.
    pub(crate) fn takeover(self, state: &State, input: &PlanningInput) -> Option<EventId> {
        let (mut state, mut input) = (state.clone(), input.clone());
        let alone = input.isolated.as_mut()?;
        let document = alone.document.as_mut()?;
        match self {
            Self::OthersIgnored => {
                let is_users = |event: &&Announcement| event.source == Source::User;
                let only = document.events.iter().find(is_users)?.id.clone();
                document.events.retain(|event| event.id == only);
                state.open.retain(|id, _| *id == only);
                state.slots.clear();
            }
            Self::HoldIgnored => {
                state.open.values_mut().for_each(|event| Arc::make_mut(event).operator_records.clear());
            }
            Self::MinorityActs => {
                let other = alone.voters.iter().find(|name| **name != input.me).cloned();
                alone.voters = other.into_iter().chain([input.me.clone()]).collect();
            }
            Self::TakesItself => {
                let lost: Vec<VmName> = alone.voters.iter().filter(|name| **name != input.me).cloned().collect();
                for event in &mut document.events {
                    event.resources.clone_from(&lost);
                }
            }
            Self::AnySource => {
                for event in &mut document.events {
                    event.source = Source::User;
                }
            }
            _ => {}
        }
        approval::event_to_approve(&state, &input).map(|announced| announced.id.clone())
    }
}

fn is_clear(state: &State, event: &EventId, now: Timestamp) -> bool {
    let event = state.open_event(event);
    event.is_some_and(|event| matches!(clearance(state, event, now), Clearance::Clear(_)))
}
