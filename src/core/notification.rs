//! Notifications that are due, and notifications that the log records as delivered. A notification is delivered within
//! an hour of its subject, or not at all, so the record is kept for an hour.

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

/// A replica with an isolated approval sends the notification as soon as any receiver is reachable: the leader waits
/// this long before sending.
const ACCOUNT_FIRST: Duration = Duration::from_secs(10);

/// The number of open events whose blocker is computed, oldest first.
const EXPLAINED: usize = 100;

/// Time since which each open event waits for the current blocker. The log does not contain this time, so every leader
/// counts anew.
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

/// The blocker, if a person could act on the blocker; `None` while the event waits for a time, or for the platform or
/// another approver.
fn waits_for(state: &State, event: &Event, input: &PlanningInput) -> Option<String> {
    let blocker = explain(state, event, input)?;
    if matches!(blocker, Blocker::TooEarly { .. } | Blocker::Observing | Blocker::WaitingForPlatform { .. }) {
        return None;
    }
    let code = blocker.code();
    // A hook that fails again after an operator's retry is a new notification: the operator may be asleep by then.
    let retried = match &blocker {
        Blocker::HookFailed { member, hook, .. } => event.retry_of(member, *hook),
        _ => None,
    };
    let again = retried.map_or_else(String::new, |(_, number)| format!("/retry-{number}"));
    Some(blocker.hook(state).map_or_else(|| code.to_string(), |hook| format!("{code}/{hook}{again}")))
}

/// All notifications of the last hour that the leader has to send, in the order of the changes; delivered notifications
/// are included.
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
