//! Drills: made-up events that go through the real hooks, without an all-clear. What a drill takes away is put back as
//! soon as it ends, and it ends at once when there is something real to do.

use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;

use super::apply::Applied;
use super::command::{Command, Ignored, bounded};
use super::document::{Announcement, NotBefore, Status};
use super::event::{Ending, Event};
use super::id::{EventId, VmName};
use super::sight;
use super::state::State;
use super::steps::{self, Progress, Step};
use super::time::Timestamp;

/// How the id of every drill begins. The platform's ids are GUIDs, which have no such letters.
pub const PREFIX: &str = "drill-";

/// A made-up event, and who wanted it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Drill {
    pub mode: Mode,
    pub who: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mode {
    /// Hooks that can say what they would do are run; the others are only named.
    DryRun,
    /// Every hook is run as if the event were real.
    Rehearsal,
}

words!(Mode { DryRun => "dry_run", Rehearsal => "rehearsal" });

impl Event {
    pub fn is_drill(&self) -> bool {
        self.drill.is_some()
    }

    pub fn is_dry_run(&self) -> bool {
        self.drill.as_ref().is_some_and(|drill| drill.mode == Mode::DryRun)
    }

    /// A real event that names, or touched, somebody of this cluster: a drill gives way to it.
    fn is_pressing(&self, state: &State) -> bool {
        let names_somebody = || self.announcement.resources.iter().any(|vm| state.replicas.contains_key(vm));
        !self.is_drill() && (names_somebody() || !self.attempts.is_empty())
    }
}

/// One at a time, and only while there is nothing real to do.
pub(super) fn begin(state: &mut State, by: &VmName, announced: &Announcement, mode: Mode, who: &str) -> Applied {
    let now = state.now;
    if !announced.id.as_str().starts_with(PREFIX) || state.is_listed(&announced.id) {
        return Err(Ignored::NotYours);
    }
    if state.event(&announced.id).is_some() {
        return Err(Ignored::Repeated);
    }
    if !announced.resources.iter().any(|vm| state.replicas.contains_key(vm)) {
        return Err(Ignored::UnknownReplica);
    }
    if state.open_events().any(|event| event.is_drill() || event.is_pressing(state)) {
        return Err(Ignored::NotNow);
    }
    let announcement = Announcement {
        status: Status::Scheduled,
        // One that was written down long ago is rehearsed with the notice of its type.
        not_before: match announced.not_before {
            NotBefore::At(at) if at > now => announced.not_before,
            NotBefore::At(_) | NotBefore::Unknown => NotBefore::Unknown,
        },
        ..announced.clone()
    };
    let event = Event {
        seen_by: BTreeSet::new(),
        drill: Some(Drill { mode, who: bounded(who) }),
        ..Event::first_seen_as(announcement, by.clone(), now)
    };
    state.open.insert(announced.id.clone(), event.into());
    Ok(())
}

/// By the leader when nothing is left to prepare, or by an operator at any time.
pub(super) fn end(state: &mut State, id: &EventId) -> Applied {
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    if !event.is_drill() {
        return Err(Ignored::NotDue);
    }
    if event.stage().is_over() {
        return Err(Ignored::Repeated);
    }
    let ending = if is_finished(state, event, state.now) { Ending::Drilled } else { Ending::Interrupted };
    sight::end(state, id, Some(ending));
    Ok(())
}

/// Ends what has become a drill beside something real.
pub(super) fn give_way(state: &mut State) {
    let under_way = || state.open_events().filter(|event| !event.stage().is_over());
    let drills = under_way().filter(|event| event.is_drill());
    let drills: Vec<EventId> = drills.map(|event| event.announcement.id.clone()).collect();
    if drills.is_empty() || !under_way().any(|event| event.is_pressing(state)) {
        return;
    }
    for id in drills {
        sight::end(state, &id, Some(Ending::Interrupted));
    }
}

/// Everything that could be prepared is, or the time for it is up.
fn is_finished(state: &State, event: &Event, now: Timestamp) -> bool {
    let due = steps::next(state, event, now);
    let is_settled = |step: &Step<'_>| match steps::progress(event, step, now) {
        Progress::Favourable | Progress::Failed(_) | Progress::OutOfTime => true,
        Progress::Running(_) => false,
        // What stands behind a hook that failed is never begun.
        Progress::Due { from, .. } => {
            from <= now && !due.iter().any(|next| next.step.member == step.member && next.step.id == step.id)
        }
    };
    event.treatment.is_some() && steps::preparing(state, event).iter().all(is_settled)
}

pub(super) fn to_end(state: &State, event: &Event, now: Timestamp) -> Option<Command> {
    let is_over = event.is_drill() && is_finished(state, event, now);
    is_over.then(|| Command::EndDrill { event: event.announcement.id.clone() })
}
