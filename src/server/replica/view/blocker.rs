//! A blocker in sentences: the reason of the wait, the next step with a time, and the party able to resolve the
//! blocker.

mod budget;
mod halted;
mod hook;
mod phrases;
mod platform;
mod quorum;

pub(super) use self::platform::last_document_at;
use allclear_core::schedule::last_call;

use self::phrases::{list, not_taken, too_early};
use crate::clock::rfc3339;
use allclear_core::explain::{approvable_by_hand, needs_person};
use allclear_core::model::blocker::Blocker;
use allclear_core::model::document::Status;
use allclear_core::model::event::Event;
use allclear_core::model::id::EventId;
use allclear_core::model::operator::{OperatorAction, OperatorRecord};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::treatment::Action;
use allclear_core::model::workload::Member;
use allclear_core::planning_input::PlanningInput;
use allclear_core::policy::PolicyInput;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Who can resolve a blocker that needs no person.
const NOBODY: &str = "no action is necessary";

pub fn shown(blocker: &Blocker, event: &Event, state: &State, input: &PlanningInput) -> shown::Blocker {
    let teller = Teller { event, state, input };
    let Sentences { message, until, next, resolved_by } = teller.sentences(blocker);
    let (until, next) = match blocker {
        Blocker::Deciding | Blocker::HookFailed { .. } | Blocker::HookNotRun { .. } if event.is_drill() => {
            (until, "the drill ends, and the prepared workloads are restored".into())
        }
        Blocker::NoQuorum { .. } | Blocker::WaitingForPlatform { .. } if is_gone_here(event, input) => {
            let next = "the metadata endpoint of this VM no longer lists the event: the event is over or cancelled, and \
                        its record follows when the replicas have a quorum";
            (None, next.into())
        }
        _ => (until, next),
    };
    let resolved_by = if event.is_drill() && input.quorum { "an operator, by ending the drill" } else { resolved_by };
    shown::Blocker {
        code: blocker.code().into(),
        message,
        // An overdue step may happen at any moment.
        until: until.filter(|until| *until > input.now).map(rfc3339),
        next,
        resolved_by: resolved_by.into(),
        hooks: blocker.hook(state).into_iter().collect(),
        isolated_approval: teller.isolated_approval(blocker),
        disconnected: match blocker {
            Blocker::WorkloadAway { member, .. } => Some(member.path()),
            _ => None,
        },
        unrestored: teller.unrestored(blocker).iter().map(Member::path).collect(),
        approvable_by_hand: match blocker {
            Blocker::NoHealthyChannel | Blocker::PostFailed { .. } => {
                approvable_by_hand(state, event, input).map(ToString::to_string)
            }
            _ => None,
        },
        needs_person: needs_person(state, event, blocker),
    }
}

/// Whether this replica has no quorum, and the event is no longer in its own document. The log cannot tell this.
fn is_gone_here(event: &Event, input: &PlanningInput) -> bool {
    let alone = input.isolated.as_ref().filter(|alone| alone.document.is_some() && !event.is_drill());
    alone.is_some_and(|alone| alone.listed(&event.announcement.id).is_none())
}

struct Sentences {
    message: String,
    /// The time of the last step in `next`.
    until: Option<Timestamp>,
    next: String,
    resolved_by: &'static str,
}

impl Sentences {
    fn new(
        message: impl Into<String>,
        until: Option<Timestamp>,
        next: impl Into<String>,
        resolved_by: &'static str,
    ) -> Self {
        Self { message: message.into(), until, next: next.into(), resolved_by }
    }
}

struct Teller<'a> {
    event: &'a Event,
    state: &'a State,
    input: &'a PlanningInput,
}

impl Teller<'_> {
    fn sentences(&self, blocker: &Blocker) -> Sentences {
        let notice_ends = Some(self.event.notice_ends());
        match blocker {
            Blocker::Deciding => {
                Sentences::new("the leader has not decided yet", None, "the leader decides within a moment", NOBODY)
            }
            Blocker::Observing => Sentences::new(
                self.left_to_others(),
                notice_ends.filter(|_| !self.is_gone()),
                if self.is_gone() { "the event is over in a moment".into() } else { self.platform() },
                "an operator, by approving the event, or another approver; for future events, a policy rule",
            ),
            Blocker::TooEarly { starts_at, missed } => Sentences::new(
                self.asked_to_prepare().unwrap_or_else(|| too_early(*starts_at, *missed)),
                Some(*starts_at),
                "preparation starts",
                "no action is necessary; an operator may let the event be prepared at an earlier time, with all hooks; \
                 for future events, policy.prepare_ahead or a rule with a window",
            ),
            Blocker::HookWaiting { .. }
            | Blocker::ReplicaAway { .. }
            | Blocker::Unregistered { .. }
            | Blocker::HookRunning { .. }
            | Blocker::HookBlocked { .. }
            | Blocker::WorkloadAway { .. }
            | Blocker::HookFailed { .. }
            | Blocker::HookNotRun { .. } => self.of_hook(blocker),
            Blocker::Budget { group, by, .. } => self.budget(group.as_ref(), by),
            Blocker::Hold(halt) => {
                let what = if halt.no_hooks {
                    "the event is held, and no further hook of it begins"
                } else {
                    "the event is held"
                };
                self.halted(halt, what, "hold", "an operator, with allclear release")
            }
            Blocker::Paused(halt) => {
                self.halted(halt, "all approvals are paused", "pause", "an operator, with allclear resume")
            }
            Blocker::NoHealthyChannel => self.blind(),
            Blocker::NotListed => Sentences::new(
                "the metadata service answers, and does not list the event at this moment",
                None,
                "the event is over in a moment, unless a document lists the event again",
                NOBODY,
            ),
            Blocker::NoQuorum { forecast: takeover } => self.no_quorum(takeover.as_ref()),
            Blocker::Posting { approver, since, until } => Sentences::new(
                format!("{approver} has been posting the approval since {}{}", rfc3339(*since), self.in_vain()),
                Some(*until),
                "the event is approved when Azure accepts the post; without an answer, the leader assigns the \
                 approval again",
                self.who_helps_posts(blocker),
            ),
            Blocker::PostFailed { approver, outcome, at, again_at } => Sentences::new(
                format!("{}{}", not_taken(approver, outcome, *at), self.in_vain()),
                Some(*again_at),
                "the approval is posted again, by another replica if possible",
                self.who_helps_posts(blocker),
            ),
            Blocker::WaitingForPlatform { since } => self.waiting_for_platform(*since),
        }
    }

    /// The end of a preparation that goes well.
    fn goal(&self) -> &'static str {
        if self.event.is_drill() { "the drill goes on" } else { "the event is prepared and approved" }
    }

    fn left_to_others(&self) -> String {
        match self.event.treatment.as_ref().filter(|treatment| treatment.action == Action::Observe) {
            Some(treatment) if treatment.rule == PolicyInput::Foreign.name() => {
                "the event names no VM of this cluster, and policy leaves such events to other approvers".into()
            }
            Some(treatment) => {
                format!("policy leaves this event to other approvers, by the rule \"{}\"", treatment.rule)
            }
            None if self.is_gone() => {
                "no document lists the event any more; the event is over, unless a document lists the event again"
                    .into()
            }
            None => "Azure does not list the event as Scheduled, so there is nothing to approve".into(),
        }
    }

    /// No document lists the event, which was listed before.
    fn is_gone(&self) -> bool {
        self.state.observed_status(&self.event.announcement.id) == Some(&Status::Missing)
    }

    /// The operator's request to prepare the event at a time.
    fn asked_to_prepare(&self) -> Option<String> {
        let from = self.event.asked_to_prepare_from()?;
        let is_it = |record: &&OperatorRecord| matches!(record.what, OperatorAction::Prepare { .. });
        let asked = self.event.operator_records.iter().rfind(is_it)?;
        let at = rfc3339(from);
        Some(format!("{} wants the preparation to start at {at}: {}; a hold takes this back", asked.who, asked.reason))
    }

    /// The description of another event for operators.
    fn named(&self, id: &EventId) -> String {
        let Some(event) = self.state.event(id) else { return format!("event {id}") };
        let vms: Vec<_> = event.announcement.resources.iter().map(ToString::to_string).collect();
        format!("{} of {} (event {id})", event.announcement.kind, vms.join(", "))
    }

    /// Whether a last call is still to come.
    fn is_to_be_called(&self, at: Timestamp) -> bool {
        let (event, now) = (self.event, self.input.now);
        let prepares = event.treatment.as_ref().is_some_and(|it| it.action == Action::Prepare);
        let is_let = !event.hold(now).is_some_and(|hold| hold.no_hooks);
        prepares
            && is_let
            && event.last_call_since.is_none()
            && at > now
            && last_call::has_service(self.state, event, now)
    }
}

#[cfg(test)]
mod tests;
