//! The record of a round: facts only, by a single clock, from observers outside the replicas. Only the stories and the
//! sightings come from replicas.

use std::collections::BTreeSet;

use allclear::wire::pb::allclear::operator::v1::{Approval, Event, Hook};

/// Milliseconds since 1970 by the clock of the machine, which no fault touches.
pub(super) type Moment = i64;

/// A replica's list of all events at the end.
pub(super) type Story = (String, Vec<Event>);

#[derive(Clone, Default, Debug)]
pub(super) struct Record {
    pub(super) vms: Vec<String>,
    /// The duties of every VM.
    pub(super) duties: Vec<Duty>,
    pub(super) max_unavailable: usize,
    pub(super) user_budget_ms: i64,
    pub(super) claim_lease_ms: i64,
    pub(super) events: Vec<Announced>,
    /// The posts in the order of arrival.
    pub(super) posts: Vec<Post>,
    /// The runs in the order of their begin.
    pub(super) runs: Vec<Run>,
    pub(super) stories: Vec<Story>,
    /// The sightings in the order of time.
    pub(super) sightings: Vec<Sighting>,
    pub(super) strikes: Vec<Strike>,
    pub(super) halts: Vec<Halt>,
    /// Replicas that ended by themselves without a fault of their disks.
    pub(super) deaths: Vec<String>,
}

/// A hook that prepares, and whether its failure holds the event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Duty {
    pub(super) workload: &'static str,
    pub(super) phase: &'static str,
    pub(super) holds: bool,
}

/// An event as the platform knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Announced {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) is_users: bool,
    pub(super) vms: Vec<String>,
    pub(super) duration_s: i64,
    pub(super) at: Moment,
    /// The time and the approver of the approval.
    pub(super) accepted: Option<(Moment, String)>,
    pub(super) ended: Option<Moment>,
    /// True if no fault was in force during the event.
    pub(super) is_calm: bool,
}

/// A request for approval that arrived, regardless of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Post {
    pub(super) at: Moment,
    pub(super) vm: String,
    pub(super) event: String,
}

/// A process of a hook, by the process's own lines in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Run {
    pub(super) event: String,
    pub(super) vm: String,
    pub(super) workload: String,
    pub(super) phase: String,
    pub(super) intent: String,
    pub(super) attempt: String,
    /// The replica that ran the hook.
    pub(super) on: String,
    pub(super) pid: String,
    pub(super) began: Moment,
    /// The end time and the exit status; `None` if the process was killed.
    pub(super) ended: Option<(Moment, u8)>,
}

/// The events that a replica showed during the round.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sighting {
    pub(super) by: String,
    pub(super) answered: Moment,
    pub(super) events: Vec<Event>,
}

/// One fault.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Strike {
    pub(super) kind: &'static str,
    pub(super) what: String,
    pub(super) from: Moment,
    pub(super) to: Moment,
    pub(super) took_effect: bool,
}

/// An operator's hold or pause, reportedly known to every voter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Halt {
    /// `None`: all events.
    pub(super) event: Option<String>,
    /// The time at which the operator had the answer.
    pub(super) from: Moment,
    /// The earliest time of the hold's release.
    pub(super) to: Moment,
    /// The events that had been decided before, according to the answer.
    pub(super) spared: Vec<String>,
}

impl Halt {
    pub(super) fn is_against(&self, post: &Post) -> bool {
        let is_meant = self.event.as_ref().is_none_or(|event| *event == post.event);
        is_meant && !self.spared.contains(&post.event) && self.from < post.at && post.at < self.to
    }
}

impl Run {
    /// True for a run before the event that does not merely confirm a previous run.
    pub(super) fn prepares(&self) -> bool {
        !self.restores() && self.intent == "run"
    }

    /// True if the run takes service away.
    pub(super) fn disrupts(&self) -> bool {
        ["failover", "drain", "shutdown"].contains(&self.phase.as_str()) && self.intent == "run"
    }

    pub(super) fn restores(&self) -> bool {
        ["restore", "ready"].contains(&self.phase.as_str())
    }

    pub(super) fn went_well(&self) -> bool {
        self.ended.is_some_and(|(_, code)| code == 0 || code == 11)
    }

    pub(super) fn is_of(&self, event: &str, vm: &str, workload: &str) -> bool {
        self.event == event && self.vm == vm && self.workload == workload
    }
}

impl Record {
    pub(super) fn event(&self, id: &str) -> Option<&Announced> {
        self.events.iter().find(|event| event.id == id)
    }

    /// The event's VMs that have replicas.
    pub(super) fn members<'a>(&'a self, event: &'a Announced) -> BTreeSet<&'a str> {
        event.vms.iter().filter(|vm| self.vms.contains(vm)).map(String::as_str).collect()
    }

    /// The replicas' entries of an event: several if the event was listed again after its end. The agreement of all
    /// replicas is judged separately.
    pub(super) fn told<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Event> {
        self.stories.iter().take(1).flat_map(|(_, events)| events).filter(move |event| event.id == id)
    }

    pub(super) fn approvals<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Approval> {
        self.told(id).flat_map(|event| &event.approvals)
    }

    pub(super) fn attempts(&self) -> impl Iterator<Item = (&Event, &Hook)> {
        let events = self.stories.iter().take(1).flat_map(|(_, events)| events);
        events.flat_map(|event| event.hooks.iter().map(move |hook| (event, hook)))
    }

    pub(super) fn posts_of<'a>(&'a self, id: &'a str) -> impl Iterator<Item = &'a Post> {
        self.posts.iter().filter(move |post| post.event == id)
    }
}
