//! One announced event: its progress, and its announcement in a document. The stage of an event never goes back.

use allclear_core::model::document::{Announcement, NotBefore, Status};
use allclear_core::model::id::EventId;
use allclear_core::model::time::Timestamp;

use super::approval::Approver;
use super::due::PlatformChange;
use super::history::PlatformOccurrence;
use super::orders::Amendment;
use super::plan::{EventPlan, Opening};

/// An event with its changes so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlatformEvent {
    pub id: EventId,
    pub plan: EventPlan,
    pub announced_at: Timestamp,
    pub not_before: Timestamp,
    /// The first approval; later approvals change nothing.
    pub accepted: Option<(Timestamp, Approver)>,
    pub started: Option<(Timestamp, PlatformStartCause)>,
    pub ended: Option<(Timestamp, EventEnd)>,
    /// The number of executed moves of the plan.
    pub moved: usize,
}

/// Why an event has started.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum PlatformStartCause {
    /// The machine failed: no approval and no NotBefore counts.
    Failure,
    Approved,
    NotBefore,
    /// Ordered by the driver of the cloud.
    Ordered,
}

/// Why an event is no longer in the array.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum EventEnd {
    Finished,
    Cancelled,
}

impl PlatformEvent {
    pub(super) fn announced(id: EventId, plan: EventPlan, at: Timestamp) -> Self {
        let started = match plan.opening {
            Opening::Scheduled => None,
            Opening::Started => Some((at, PlatformStartCause::Failure)),
        };
        let not_before = at.plus(plan.notice);
        Self { id, plan, announced_at: at, not_before, accepted: None, started, ended: None, moved: 0 }
    }

    pub fn is_scheduled(&self) -> bool {
        self.started.is_none() && self.ended.is_none()
    }

    pub fn is_started(&self) -> bool {
        self.started.is_some() && self.ended.is_none()
    }

    /// Whether the event interrupts its VMs at this moment.
    pub fn is_impacting(&self, now: Timestamp) -> bool {
        let (Some((start, _)), None) = (&self.started, &self.ended) else { return false };
        let within = |from: Timestamp, lasts| now >= from && now < from.plus(lasts);
        within(*start, self.plan.impact)
            || self.plan.relapses.iter().any(|relapse| within(start.plus(relapse.after), relapse.lasts))
    }

    /// The row of the array; `None` once the event is over.
    pub fn announcement(&self) -> Option<Announcement> {
        let (status, not_before) = match (&self.started, &self.ended) {
            (_, Some(_)) => return None,
            (Some(_), None) => (Status::Started, NotBefore::Unknown),
            (None, None) => (Status::Scheduled, NotBefore::At(self.not_before)),
        };
        Some(Announcement {
            id: self.id.clone(),
            status,
            kind: self.plan.kind.clone(),
            source: self.plan.source.clone(),
            resource_type: self.plan.resource_type.clone(),
            resources: self.plan.resources.clone(),
            not_before,
            description: self.plan.description.clone(),
            duration: self.plan.duration,
        })
    }

    pub(super) fn change(&mut self, at: Timestamp, change: PlatformChange) -> PlatformOccurrence {
        match change {
            PlatformChange::Move { not_before, planned } => {
                self.not_before = not_before;
                self.moved += usize::from(planned);
                PlatformOccurrence::Moved { not_before }
            }
            PlatformChange::Amend(amendment) => {
                match amendment.clone() {
                    Amendment::Resources(resources) => self.plan.resources = resources,
                    Amendment::Duration(duration) => self.plan.duration = duration,
                }
                PlatformOccurrence::Amended(amendment)
            }
            PlatformChange::Accept(by) => {
                self.accepted = Some((at, by.clone()));
                PlatformOccurrence::Accepted(by)
            }
            PlatformChange::Start(cause) => {
                self.started = Some((at, cause));
                PlatformOccurrence::Started(cause)
            }
            PlatformChange::End(end) => {
                self.ended = Some((at, end));
                PlatformOccurrence::Ended(end)
            }
        }
    }
}
