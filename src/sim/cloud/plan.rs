//! What the platform means to do to whom, and how it will behave about it. Plain data.

use std::num::NonZeroU32;
use std::time::Duration;

use allclear_core::model::document::{EventType, Source};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

/// One event, before it is announced. `EventPlan::new` fills in how events behave as a rule.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct EventPlan {
    /// Left out: the cloud makes one up.
    pub id: Option<EventId>,
    pub kind: EventType,
    pub source: Source,
    pub description: String,
    pub resource_type: String,
    /// Any VMs, also such that are not in this cloud.
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
    /// How long after NotBefore it starts when nobody has approved.
    pub late: Duration,
    /// The interruption as it really is.
    pub impact: Duration,
    /// Further, shorter interruptions while the event is Started, counted from the start.
    pub relapses: Vec<Relapse>,
    /// From the end of the last interruption until the event leaves the array.
    pub linger: Duration,
    /// Cancelled this long after the announcement, when it has not started by then.
    pub cancel_after: Option<Duration>,
    /// Approved by somebody else (a policy, the control plane) this long after the announcement.
    pub approved_after: Option<Duration>,
    /// Strikes this long after the announcement, whatever NotBefore says.
    pub strikes_after: Option<Duration>,
    /// NotBefore changes, counted from the announcement; in the order of time.
    pub moves: Vec<ScheduleMove>,
}

impl EventPlan {
    /// An event of this kind for these VMs, with the notice the vendor documents for it, that starts a second after
    /// the approval, interrupts for five and is gone five later.
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

    /// The same with every length so many times shorter. What is announced as the duration stays: policies read it.
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

/// Whose documents show the event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Audience {
    Everyone,
    /// As for scale sets with one fault domain: only these.
    Only(Vec<VmName>),
}

/// How the event is seen first.
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
    /// From then to the new NotBefore.
    pub notice: Duration,
}

/// When an event is announced.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum When {
    At(Timestamp),
    /// So long after another event has ended in whatever way.
    After {
        event: EventId,
        pause: Duration,
    },
}
