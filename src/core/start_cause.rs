//! Why an event started, and whether somebody else approved it.

use crate::model::claim::PostOutcome;
use crate::model::document::NotBefore;
use crate::model::event::{Ending, Event};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use core::time::Duration;

/// An event that starts this shortly before its notice ends started because of that: the platform's clock is not ours.
const CLOCKS_DIFFER: Duration = Duration::from_secs(5);

/// Why the event started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StartCause {
    Approved,
    NoticeExpired,
    /// It was started when it was first seen.
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
    /// `None` while it has not started, or when that was never seen and it was not approved.
    pub fn start_cause(&self) -> Option<StartCause> {
        // A post without a reply that is followed by the start of the event took effect, as far as anybody can tell.
        let is_told = |outcome: &Option<(PostOutcome, Timestamp)>| {
            outcome.as_ref().is_some_and(|(outcome, _)| outcome.may_have_arrived())
        };
        let outcomes =
            || self.claims.iter().map(|it| &it.outcome).chain(self.isolated_approvals.iter().map(|it| &it.outcome));
        let posted = outcomes().any(is_told);
        let Some(started) = self.entered_at(Stage::Started) else {
            return (self.ending == Some(Ending::Completed) && posted).then_some(StartCause::Approved);
        };
        // One that nobody recorded may have been made by a replica that was then lost, and explains an early start.
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

    /// Its notice had not ended. Where nobody knows when it ends, that is no reason to look for somebody who approved it.
    fn starts_early_at(&self, at: Timestamp) -> bool {
        matches!(self.announcement.not_before, NotBefore::At(_)) && at.plus(CLOCKS_DIFFER) < self.notice_ends()
    }
}

/// An event that started before its notice ended though nobody of this cluster approved it.
pub fn is_surely_approved_elsewhere(state: &State, event: &Event) -> bool {
    // One that has yet to give its account may have approved it alone.
    let may_be_alone = || event.is_user_initiated() && state.suspects().next().is_some();
    event.start_cause() == Some(StartCause::ApprovedElsewhere) && !may_be_alone()
}

/// A second approver is at work on the VMs of this cluster: policy did not leave the event to others.
pub fn is_second_approver(state: &State, event: &Event) -> bool {
    let names_us = || event.announcement.resources.iter().any(|vm| state.replicas.contains_key(vm));
    let is_left = event.treatment.as_ref().is_some_and(|treatment| treatment.action == Action::Observe);
    !is_left && is_surely_approved_elsewhere(state, event) && names_us()
}
