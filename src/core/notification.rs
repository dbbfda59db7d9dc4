//! Notifications that are due, and those that the log records as delivered. A notification is delivered within an hour
//! of its subject, or not at all, so its record is kept for that hour.

use crate::explain::explain;
use crate::model::blocker::Blocker;
use crate::model::event::Event;
use crate::model::id::{EventId, VmName};
use crate::model::isolation::ImdsHealth;
use crate::model::lifecycle::Stage;
use crate::model::notification::{Notification, NotificationKind, TOLD_WITHIN};
use crate::model::slot::Slot;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use crate::planning_input::PlanningInput;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString as _;
use alloc::vec::Vec;
use core::time::Duration;

/// A replica that approved alone tells it itself as soon as it reaches anybody: the leader leaves it that much time.
const ACCOUNT_FIRST: Duration = Duration::from_secs(10);

/// Open events whose blocker is asked for, the oldest first.
const EXPLAINED: usize = 100;

/// Since when each open event waits for what it waits for. The log does not tell, so every leader counts anew.
#[derive(Default, Debug)]
pub struct BlockedSince(BTreeMap<EventId, BlockedWait>);

#[derive(Debug)]
struct BlockedWait {
    what: String,
    since: Timestamp,
}

impl BlockedSince {
    pub fn update(&mut self, state: &State, input: &PlanningInput) {
        let mut open: Vec<&Event> = state.open_events().filter(|event| !event.is_drill()).collect();
        open.sort_by_key(|event| event.first_seen());
        let waiting = |event: &&Event| Some((event.announcement.id.clone(), waits_for(state, event, input)?));
        let waiting: BTreeMap<EventId, String> = open.iter().take(EXPLAINED).filter_map(waiting).collect();
        self.0.retain(|id, wait| waiting.get(id) == Some(&wait.what));
        for (id, what) in waiting {
            self.0.entry(id).or_insert(BlockedWait { what, since: input.now });
        }
    }

    pub fn forget(&mut self) {
        self.0.clear();
    }

    fn longer_than<'a>(&'a self, state: &'a State, span: Duration) -> impl Iterator<Item = Notification> + use<'a> {
        let notice = move |(id, wait): (&EventId, &BlockedWait)| {
            Some(Notification::blocked(state.open_event(id)?, &wait.what, wait.since.plus(span)))
        };
        self.0.iter().filter_map(notice)
    }
}

/// What somebody could do something about; `None` while it waits for its time, or for others.
fn waits_for(state: &State, event: &Event, input: &PlanningInput) -> Option<String> {
    let blocker = explain(state, event, input)?;
    if matches!(blocker, Blocker::TooEarly { .. } | Blocker::Observing | Blocker::WaitingForPlatform { .. }) {
        return None;
    }
    let code = blocker.code();
    Some(blocker.hook(state).map_or_else(|| code.to_string(), |hook| format!("{code}/{hook}")))
}

/// What the leader has to tell now, in the order in which it happened; what is told already is among it.
pub fn due(state: &State, input: &PlanningInput, waits: &BlockedSince, blocked_after: Duration) -> Vec<Notification> {
    let now = input.now;
    let is_recent = |event: &&Event| event.entered_at(Stage::Closed).is_none_or(|at| now.since(at) < TOLD_WITHIN);
    let events = state.open_events().chain(state.closed_events().rev().take_while(is_recent));
    let of_events = events.filter(|event| !event.is_drill()).flat_map(of_event);
    let all = of_events.chain(waits.longer_than(state, blocked_after)).chain(failing(state)).chain(stalled(input));
    let mut due: Vec<Notification> = all.filter(|notice| notice.is_due(now)).collect();
    due.sort_unstable();
    due
}

fn of_event(event: &Event) -> impl Iterator<Item = Notification> + use<> {
    let moments = [
        (NotificationKind::Announced, Some(event.first_seen())),
        (NotificationKind::AllClear, event.entered_at(Stage::Approved).or(event.accepted_at())),
        (NotificationKind::Started, event.entered_at(Stage::Started)),
        (NotificationKind::Closed, event.entered_at(Stage::Closed)),
    ];
    let stages = moments.map(|(topic, at)| at.map(|at| Notification::of(event, topic, at)));
    let alone =
        event.isolated_approvals.iter().filter(|takeover| takeover.may_have_been_posted()).filter_map(|takeover| {
            let known = takeover.recorded?.plus(ACCOUNT_FIRST);
            Some(Notification::alone(&event.announcement.id, &takeover.approver, takeover.at, known))
        });
    let alone: Vec<Notification> = alone.collect();
    stages.into_iter().flatten().chain(alone)
}

fn failing(state: &State) -> impl Iterator<Item = Notification> {
    let notice = |(member, slot): (&Member, &Slot)| {
        let failing = state.failing_return(member)?;
        Some(Notification::restore_failed(member, slot.stint, failing.since))
    };
    state.slots.iter().filter_map(notice)
}

fn stalled(input: &PlanningInput) -> impl Iterator<Item = Notification> {
    let is_stalled = |name: &VmName| {
        let contact = input.peers.get(name)?;
        let since = contact.document_age.map_or(contact.imds_since, |age| input.now.minus(age));
        (contact.reachable && contact.imds == ImdsHealth::Stalled).then_some(since)
    };
    input.members.iter().filter_map(move |name| Some(Notification::stalled(name, is_stalled(name)?)))
}

#[cfg(test)]
mod tests;
