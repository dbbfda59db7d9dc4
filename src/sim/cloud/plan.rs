//! Plans of the platform: the events, the VMs, and the platform's behaviour. Plain data.

use std::num::NonZeroU32;
use std::time::Duration;

use allclear_core::model::document::{EventType, Source};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

/// One event, before its announcement. `EventPlan::new` fills in the usual behaviour of events.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EventPlan {
    /// If left out, the cloud generates an id.
    pub id: Option<EventId>,
    pub kind: EventType,
    pub source: Source,
    pub description: String,
    pub resource_type: String,
    /// Any VMs, including VMs outside this cloud.
    pub resources: Vec<VmName>,
    /// The announced interruption; `None` is shown as -1.
    pub duration: Option<Duration>,
    /// From the announcement to NotBefore.
    pub notice: Duration,
    pub seen_by: Audience,
    pub opening: Opening,
    /// From the approval to the start.
    pub start_delay: Duration,
    /// How long the other tenants of the host take to agree after the approval; at NotBefore they have timed out.
    pub other_tenants: Duration,
    /// The time from NotBefore to the start without an approval.
    pub late: Duration,
    /// The actual interruption.
    pub impact: Duration,
    /// Further, shorter interruptions while the event is Started, counted from the start.
    pub relapses: Vec<Relapse>,
    /// From the end of the last interruption until the event leaves the array.
    pub linger: Duration,
    /// Cancelled this long after the announcement, if the event has not started.
    pub cancel_after: Option<Duration>,
    /// Approved by another party (a policy, the control plane) this long after the announcement.
    pub approved_after: Option<Duration>,
    /// Impact this long after the announcement, regardless of NotBefore.
    pub strikes_after: Option<Duration>,
    /// NotBefore changes, counted from the announcement; ordered by time.
    pub moves: Vec<ScheduleMove>,
}

impl EventPlan {
    /// An event of this kind for these VMs, with the notice documented by the vendor. The event starts a second after
    /// the approval, interrupts for five seconds and leaves the array five seconds later.
    pub fn new(kind: EventType, source: Source, resources: Vec<VmName>) -> Self {
        let notice = kind.minimum_notice();
        Self {
            id: None,
            kind,
            source,
            description: String::new(),
            resource_type: "VirtualMachine".into(),
            resources,
            duration: None,
            notice,
            seen_by: Audience::Everyone,
            opening: Opening::Scheduled,
            start_delay: Duration::from_secs(1),
            other_tenants: Duration::ZERO,
            late: Duration::ZERO,
            impact: Duration::from_secs(5),
            relapses: Vec::new(),
            linger: Duration::from_secs(5),
            cancel_after: None,
            approved_after: None,
            strikes_after: None,
            moves: Vec::new(),
        }
    }

    /// The plan with every duration divided by `speed`. The announced duration stays: policies read this duration.
    #[must_use]
    pub fn faster(mut self, speed: NonZeroU32) -> Self {
        let speed = speed.get();
        for span in [
            &mut self.notice,
            &mut self.start_delay,
            &mut self.other_tenants,
            &mut self.late,
            &mut self.impact,
            &mut self.linger,
        ] {
            *span /= speed;
        }
        for span in [&mut self.cancel_after, &mut self.approved_after, &mut self.strikes_after] {
            *span = span.map(|span| span / speed);
        }
        for Relapse { after, lasts } in &mut self.relapses {
            (*after, *lasts) = (*after / speed, *lasts / speed);
        }
        for ScheduleMove { after, notice } in &mut self.moves {
            (*after, *notice) = (*after / speed, *notice / speed);
        }
        self
    }

    /// From the start until the event leaves the array.
    pub fn time_in_started(&self) -> Duration {
        let last = self
            .relapses
            .iter()
            .map(|relapse| relapse.after.saturating_add(relapse.lasts))
            .fold(self.impact, Duration::max);
        last.saturating_add(self.linger)
    }
}

/// The VMs whose documents show the event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Audience {
    Everyone,
    /// As for scale sets with one fault domain: only these VMs.
    Only(Vec<VmName>),
}

/// The status at the announcement.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Opening {
    Scheduled,
    /// The hardware has failed already.
    Started,
}

/// One more interruption of an event that has started.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Relapse {
    pub after: Duration,
    pub lasts: Duration,
}

/// NotBefore is announced anew.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ScheduleMove {
    pub after: Duration,
    /// From the change to the new NotBefore.
    pub notice: Duration,
}

/// When an event is announced.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum When {
    At(Timestamp),
    /// This long after the end of another event, however the event has ended.
    After {
        event: EventId,
        pause: Duration,
    },
}
