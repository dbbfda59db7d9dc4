//! Why an event started, and whether an approver outside this cluster approved the event.

use crate::model::claim::PostOutcome;
use crate::model::document::NotBefore;
use crate::model::event::{Ending, Event};
use crate::model::id::EventId;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use core::time::Duration;

/// An event that starts this shortly before the notice ends started because of the end: the platform's clock differs
/// from ours.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);
/// An event that is over this soon after another one was first seen Started may have been replaced by the other one.
const REPLACED_WITHIN: Duration = Duration::from_mins(1);

/// Why the event started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StartCause {
    Approved,
    NoticeExpired,
    /// The event was already started at first sight.
    Platform,
    ApprovedElsewhere,
}

string_enum!(StartCause {
    Approved => "approved",
    NoticeExpired => "notice_expired",
    Platform => "platform",
    ApprovedElsewhere => "approved_elsewhere",
});

impl Event {
    /// `None` while the event has not started, or when the start was never seen and the event was not approved.
    pub fn start_cause(&self) -> Option<StartCause> {
        // A post without a reply that is followed by the start of the event counts as effective.
        let is_told = |outcome: &Option<(PostOutcome, Timestamp)>| {
            outcome.as_ref().is_some_and(|(outcome, _)| outcome.may_have_arrived())
        };
        let outcomes =
            || self.claims.iter().map(|it| &it.outcome).chain(self.isolated_approvals.iter().map(|it| &it.outcome));
        let posted = outcomes().any(is_told);
        let Some(started) = self.entered_at(Stage::Started) else {
            return (self.ending == Some(Ending::Completed) && posted).then_some(StartCause::Approved);
        };
        // A post without a recorded outcome may have been made by a replica that was then lost, and explains an early
        // start.
        let is_early = started != self.first_seen() && self.starts_early_at(started);
        Some(if posted || (is_early && outcomes().any(Option::is_none)) {
            StartCause::Approved
        } else if started == self.first_seen() {
            StartCause::Platform
        } else if is_early {
            StartCause::ApprovedElsewhere
        } else {
            StartCause::NoticeExpired
        })
    }

    /// Policy leaves the approval to others.
    pub fn is_left_to_others(&self) -> bool {
        self.treatment.as_ref().is_some_and(|treatment| treatment.action == Action::Observe)
    }

    /// The notice had not ended. An unknown end of the notice is no sign of another approver.
    fn starts_early_at(&self, at: Timestamp) -> bool {
        matches!(self.announcement.not_before, NotBefore::At(_)) && at.plus(CLOCKS_DIFFER) < self.notice_ends()
    }
}

/// An event that started before the notice ended, without an approval of this cluster.
pub fn is_surely_approved_elsewhere(state: &State, event: &Event) -> bool {
    // An unreconciled replica may have an isolated approval of this event.
    let may_be_alone = || event.is_user_initiated() && state.suspects().next().is_some();
    event.start_cause() == Some(StartCause::ApprovedElsewhere) && !may_be_alone()
}

/// The event that this event probably continues. Azure keeps the id of an event, and the vendor's mock server gives a new
/// id to each state of an event.
pub fn former_id<'a>(state: &'a State, event: &Event) -> Option<&'a EventId> {
    let continues = |former: &&Event| {
        let (new, old) = (&event.announcement, &former.announcement);
        let is_alike = (&new.kind, &new.source, &new.resources) == (&old.kind, &old.source, &old.resources);
        let was_replaced = former.entered_at(Stage::Started).is_none()
            && former
                .over_at()
                .is_some_and(|over| over >= event.first_seen() && over.since(event.first_seen()) <= REPLACED_WITHIN);
        new.id != old.id && is_alike && was_replaced
    };
    let began_anew = event.start_cause() == Some(StartCause::Platform);
    state.events().filter(|_| began_anew).find(continues).map(|former| &former.announcement.id)
}

/// A second approver acts on the VMs of this cluster: policy did not leave the event to others.
pub fn is_second_approver(state: &State, event: &Event) -> bool {
    let is_left = event.is_left_to_others();
    !is_left && is_surely_approved_elsewhere(state, event) && event.announcement.concerns(state)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::apply;
    use crate::model::command::{ApplyResult, Command, Entry, RegisterWorkloads, ReportDocument};
    use crate::model::document::{Announcement, Document, EventType, Source, Status};
    use crate::model::id::VmName;
    use alloc::string::String;
    use alloc::vec::Vec;

    fn event(id: &str, kind: EventType, status: Status) -> Announcement {
        Announcement {
            id: EventId::new(id),
            status,
            kind,
            source: Source::User,
            resource_type: String::new(),
            resources: alloc::vec![VmName::new("a")],
            not_before: NotBefore::Unknown,
            description: String::new(),
            duration: None,
        }
    }

    /// The documents of one replica, a second apart.
    fn reported(documents: &[&[&Announcement]]) -> State {
        let mut state = State::default();
        let report = |(after, events): (usize, &&[&Announcement])| {
            let after = u64::try_from(after).unwrap();
            Command::ReportDocument(ReportDocument {
                after,
                document: Document::new(events.iter().map(|event| (*event).clone()).collect()),
            })
        };
        let register = Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() });
        let reports = documents.iter().enumerate().map(report);
        for (second, command) in (0..).zip([register].into_iter().chain(reports)) {
            let entry = Entry { at: Timestamp(second * 1_000), by: VmName::new("a"), command };
            assert_eq!(apply(&mut state, &entry), ApplyResult::Applied);
        }
        state
    }

    #[test]
    fn an_event_that_is_started_under_a_new_id_continues_the_one_that_went() {
        let reboot = |id, status| event(id, EventType::Reboot, status);
        let former = |documents: &[&[&Announcement]]| {
            let state = reported(documents);
            former_id(&state, state.event(&EventId::new("new")).unwrap()).cloned()
        };
        let old = reboot("old", Status::Scheduled);
        let new = reboot("new", Status::Started);
        assert_eq!(former(&[&[&old], &[&new]]), Some(EventId::new("old")));
        assert_eq!(former(&[&[&old], &[&old, &new]]), None, "both are listed");
        let other = event("old", EventType::Freeze, Status::Scheduled);
        assert_eq!(former(&[&[&other], &[&new]]), None, "another type");
        let started = reboot("old", Status::Started);
        assert_eq!(former(&[&[&started], &[&new]]), None, "both were started");
        let announced = reboot("new", Status::Scheduled);
        assert_eq!(former(&[&[&old], &[&announced], &[&new]]), None, "it was announced");
    }
}
