//! Why an event started, and whether an approver outside this cluster approved the event.

use crate::model::claim::PostOutcome;
use crate::model::document::NotBefore;
use crate::model::event::{Ending, Event};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use core::time::Duration;

/// An event that starts this shortly before the notice ends started because of the end: the platform's clock differs
/// from ours.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

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

/// A second approver acts on the VMs of this cluster: policy did not leave the event to others.
pub fn is_second_approver(state: &State, event: &Event) -> bool {
    let names_us = || event.announcement.resources.iter().any(|vm| state.replicas.contains_key(vm));
    let is_left = event.treatment.as_ref().is_some_and(|treatment| treatment.action == Action::Observe);
    !is_left && is_surely_approved_elsewhere(state, event) && names_us()
}
