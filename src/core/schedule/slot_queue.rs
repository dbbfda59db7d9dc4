//! The order in which events take slots (`SPEC.md` 8, R4).

use crate::model::event::Event;
use crate::model::id::{EventId, GroupName, VmName};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Role, Workload};
use crate::schedule::affected_members::affected;
use crate::schedule::groups::by_group;
use crate::schedule::last_call;
use alloc::collections::BTreeSet;
use core::time::Duration;

/// Duration of an event beside its hooks where the platform announces no duration.
const USUAL_IMPACT: Duration = Duration::from_mins(1);

/// An event with a lower position takes slots first.
pub(crate) type QueuePosition<'a> = (bool, bool, Timestamp, Timestamp, &'a EventId);

pub(crate) fn queue_position<'a>(state: &State, event: &'a Event, now: Timestamp) -> QueuePosition<'a> {
    let goes_last = names_a_primary(state, event) && can_go_last(state, event, now);
    (event.is_deferred, goes_last, event.notice_ends(), event.first_seen(), &event.announcement.id)
}

fn names_a_primary(state: &State, event: &Event) -> bool {
    let is_primary = |(vm, workload): &(&VmName, &Workload)| {
        workload.group.is_some() && state.role(&workload.on(vm)) == Role::Primary
    };
    !event.is_dry_run() && affected(state, event).iter().any(is_primary)
}

/// Whether the time before the event's last call holds the expected course of the other events in its groups.
fn can_go_last(state: &State, event: &Event, now: Timestamp) -> bool {
    let groups: BTreeSet<&GroupName> = by_group(state, event).into_keys().collect();
    let others = state.open_events().filter(|other| {
        let is_other = other.announcement.id != event.announcement.id && !other.is_drill() && !other.stage().is_over();
        is_other && by_group(state, other).keys().any(|group| groups.contains(group))
    });
    let course = |other: &Event| {
        let impact = other.announcement.duration.unwrap_or(USUAL_IMPACT);
        last_call::expected_course(state, other) * 2 + impact
    };
    let all: Duration = others.map(course).sum();
    now.plus(all) < last_call::begins_at(state, event)
}
