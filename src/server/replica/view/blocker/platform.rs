//! What depends on Azure: the posts of an approval, the start of an event, and a cluster without an endpoint.

use allclear_core::explain::{approvable_by_hand, needs_person};
use allclear_core::model::blocker::Blocker;
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::slot::Slot;
use allclear_core::model::time::{Timestamp, to_the_second};
use allclear_core::model::treatment::Action;
use allclear_core::planning_input::PlanningInput;
use allclear_core::schedule::last_call;

use super::super::post_detail::claim_detail;
use super::{NOBODY, Sentences, Teller};
use crate::clock::rfc3339;

/// The time of the last document, while no reachable replica receives documents.
pub(in super::super) fn last_document_at(input: &PlanningInput) -> Option<Timestamp> {
    let reached = || input.peers.values().filter(|contact| contact.reachable);
    if reached().any(|contact| contact.imds == ImdsHealth::Healthy) {
        return None;
    }
    let ages = reached().filter_map(|contact| contact.document_age);
    ages.min().map(|age| to_the_second(input.now.minus(age)))
}

impl Teller<'_> {
    /// The wait of an approved event.
    pub(super) fn waiting_for_platform(&self, since: Timestamp) -> Sentences {
        let ends = self.event.notice_ends();
        Sentences::new(
            format!(
                "the event has been approved since {}, and Azure has not started the event yet{}",
                rfc3339(since),
                self.kept_out()
            ),
            Some(ends),
            if self.input.now < ends {
                let again = self.repost().map_or_else(String::new, |at| {
                    format!("at {} the same approval is posted again, if the event has not started; ", rfc3339(at))
                });
                format!("{again}Azure starts the event when the host is free, at the latest when the notice ends")
            } else {
                self.platform()
            },
            if self.input.now < ends { "Azure" } else { "the support of Azure, with the id of the event" },
        )
    }

    /// When an accepted approval is posted again.
    fn repost(&self) -> Option<Timestamp> {
        let at = self.event.repost_at().filter(|at| *at > self.input.now)?;
        self.state.pause(at).is_none().then_some(at)
    }

    /// The members that the event keeps out of service until it is over.
    fn kept_out(&self) -> String {
        let id = &self.event.announcement.id;
        let out = self.state.slots.iter().filter(|(_, slot)| slot.events.contains(id));
        let of_group = |slot: &Slot| slot.group.as_ref().map_or_else(String::new, |group| format!(" of {group}"));
        let members: Vec<String> = out.map(|(member, slot)| format!("{}{}", member.path(), of_group(slot))).collect();
        match members.len() {
            0 => String::new(),
            1 => format!("; until it is over, {} counts as out of service", members.join("")),
            _ => format!("; until it is over, {} count as out of service", members.join(" and ")),
        }
    }

    pub(super) fn blind(&self) -> Sentences {
        // Beside another blocker, an endpoint that works again approves nothing.
        let is_listed = self.state.is_listed(&self.event.announcement.id);
        let goes_on = match approvable_by_hand(self.state, self.event, self.input) {
            Some(_) if is_listed => "the event is approved when an endpoint works again",
            _ => "when an endpoint works again, the event continues",
        };
        let unmoved = if is_listed { "" } else { self.unmoved() };
        let again = format!("{goes_on}{}{unmoved}", self.last_resort());
        let blind = format!(
            "no reachable replica that lists the event has a working metadata endpoint{}",
            self.last_document()
        );
        let tried = self.event.claims.iter().rev().find(|claim| claim.is_last_resort && claim.outcome.is_some());
        let message = match tried.and_then(|claim| claim_detail(claim).zip(Some(&claim.approver))) {
            Some((told, approver)) => format!("{blind}; {approver} tried the {told}"),
            None => blind,
        };
        Sentences::new(
            message,
            Some(self.event.notice_ends()),
            format!("{again}; otherwise {}", self.platform()),
            "the operator of the VMs",
        )
    }

    /// The hooks that no longer begin, because no document counts.
    fn unmoved(&self) -> &'static str {
        if self.event.last_call_since.is_some() || !self.has_service_to_move() {
            ""
        } else if self.no_hooks() {
            "; until then no hook that moves service away begins, also not shortly before the notice ends: if the primary \
             is on the VM, move it by hand, once no hook of the event runs"
        } else {
            "; until then no hook that moves service away begins, also not shortly before the notice ends: if the primary \
             is on the VM, hold the event with --no-hooks, so that allclear's own failover does not begin meanwhile, and \
             move the primary by hand, once no hook of the event runs"
        }
    }

    /// Whether hooks that move service away have still to run.
    pub(super) fn has_service_to_move(&self) -> bool {
        let event = self.event;
        let prepares = event.treatment.as_ref().is_some_and(|it| it.action == Action::Prepare);
        let is_left = prepares && !event.is_drill() && event.is_undecided() && !event.is_approved_by_operator();
        is_left && last_call::has_service(self.state, event, self.input.now)
    }

    /// The time of the last document about the event, while no replica receives documents.
    fn last_document(&self) -> String {
        last_document_at(self.input).map_or_else(String::new, |at| {
            let at = rfc3339(at);
            format!("; the last document is from {at}, and what Azure did with the event since then is not known")
        })
    }

    /// The approval without any endpoint, where replicas are configured for it.
    fn last_resort(&self) -> &'static str {
        if self.event.may_use_last_resort() && self.input.peers.values().any(|contact| contact.can_acknowledge) {
            ", or once through the control plane, if it is prepared while the last document counts and no replica is \
             unreachable"
        } else {
            ""
        }
    }

    /// The number of earlier tries.
    pub(super) fn in_vain(&self) -> String {
        let lapsed = self.event.claims.iter().filter(|claim| claim.outcome.is_none()).count();
        match (self.tries(), lapsed) {
            (tries, 2..) => {
                format!(
                    "; {} earlier attempts failed, {} of them because the approver did not report the outcome in time",
                    tries + lapsed - 1,
                    lapsed - 1
                )
            }
            (0 | 1, _) => String::new(),
            (tries, _) => format!("; {tries} attempts have failed so far"),
        }
    }

    fn tries(&self) -> usize {
        self.event.claims.iter().filter(|claim| claim.outcome.is_some()).count()
    }

    pub(super) fn who_helps_posts(&self, blocker: &Blocker) -> &'static str {
        if needs_person(self.state, self.event, blocker) {
            "the operator of the VMs; allclear continues as soon as Azure accepts the approval"
        } else {
            NOBODY
        }
    }

    /// The start by the platform, which cannot be held, and the members then out of service beside the event's own;
    /// `until` is the end of the notice.
    pub(super) fn platform(&self) -> String {
        if self.event.is_drill() {
            return "the drill ends when its time is over".into();
        }
        let out = last_call::overdraft(self.state, self.event);
        let out: Vec<String> = out.iter().map(ToString::to_string).collect();
        let are = if out.len() == 1 { "is" } else { "are" };
        let although = if out.is_empty() {
            String::new()
        } else {
            format!(", although {} {are} out of service,", out.join(" and "))
        };
        if self.input.now < self.event.notice_ends() {
            format!("Azure starts the event{although} when the notice ends")
        } else {
            format!("the notice has ended, and Azure may start the event{although} at any moment")
        }
    }
}
