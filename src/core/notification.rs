//! Notifications that are due, and notifications that the log records as delivered. A notification is delivered within
//! an hour of its subject, or not at all, so the record is kept for an hour.

mod wait_end;

use self::wait_end::{WaitEnd, wait_end};
use crate::explain::{explain, needs_person};
use crate::model::blocker::Blocker;
use crate::model::event::Event;
use crate::model::id::{EventId, VmName};
use crate::model::isolation::ImdsHealth;
use crate::model::lifecycle::Stage;
use crate::model::notification::{Notification, NotificationKind, RESOLVED, TOLD_WITHIN};
use crate::model::slot::{Slot, SlotCause, SlotState};
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use crate::planning_input::PlanningInput;
use crate::schedule::slots;
use alloc::collections::{BTreeMap, BTreeSet};
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

/// The number of names of one notification: after a resolution, the same trouble has a new name.
const NAMES: u32 = 20;

/// The end of a wait is sent after this long without the blocker: many blockers are gone for a moment only.
const ENDED_AFTER: Duration = Duration::from_secs(10);

/// The beginning of each wait for a person, by event and blocker, and the end of each notified wait. The log does not
/// contain these times, so every leader counts anew.
#[derive(Default, Debug)]
pub struct BlockedSince {
    waiting: BTreeMap<(EventId, String), Timestamp>,
    /// Notified waits that are over, and since when they have this end.
    ended: BTreeMap<(EventId, String), (WaitEnd, Timestamp)>,
}

impl BlockedSince {
    pub fn update(&mut self, state: &State, input: &PlanningInput) {
        let mut open: Vec<&Event> = state.open_events().filter(|event| !event.is_drill()).collect();
        open.sort_by_key(|event| event.first_seen());
        let mut waiting = BTreeSet::new();
        for event in open.iter().take(EXPLAINED) {
            let id = &event.announcement.id;
            waiting.extend(what_needs_a_person(state, event, input).into_iter().map(|what| (id.clone(), what)));
        }
        self.waiting.retain(|key, _| waiting.contains(key));
        self.ended = ends(state, input)
            .filter(|(key, _)| !waiting.contains(key))
            .map(|(key, end)| {
                let since =
                    self.ended.get(&key).filter(|(known, _)| *known == end).map_or(input.now, |(_, since)| *since);
                (key, (end, since))
            })
            .collect();
        for key in waiting {
            self.waiting.entry(key).or_insert(input.now);
        }
    }

    pub fn forget(&mut self) {
        *self = Self::default();
    }

    fn longer_than<'a>(&'a self, state: &'a State, span: Duration) -> impl Iterator<Item = Notification> + use<'a> {
        let notice = move |((id, what), since): (&(EventId, String), &Timestamp)| {
            Some(Notification::blocked(state.open_event(id)?, what, since.plus(span)))
        };
        self.waiting.iter().filter_map(notice)
    }

    fn ended<'a>(&'a self, state: &'a State) -> impl Iterator<Item = Notification> + use<'a> {
        let notice = move |((id, what), (end, since)): (&(EventId, String), &(WaitEnd, Timestamp))| {
            let (blocked, at) = (Notification::blocked(state.event(id)?, what, *since), since.plus(ENDED_AFTER));
            Some(match end {
                WaitEnd::Resolved => blocked.resolved(at),
                WaitEnd::Unresolved => blocked.unresolved(at),
            })
        };
        self.ended.iter().filter_map(notice)
    }
}

/// The notified waits of recent events, each with its end if nothing caused it now.
fn ends<'a>(
    state: &'a State,
    input: &'a PlanningInput,
) -> impl Iterator<Item = ((EventId, String), WaitEnd)> + use<'a> {
    recent_events(state, input.now).flat_map(|event| {
        let end = |key: (EventId, String)| Some((wait_end(state, event, &key.1, input)?, key));
        told_blockers(state, event).filter_map(end).map(|(end, key)| (key, end)).collect::<Vec<_>>()
    })
}

/// The notified blockers of an event.
fn told_blockers(state: &State, event: &Event) -> impl Iterator<Item = (EventId, String)> {
    let id = event.announcement.id.clone();
    let head = Notification::blocked(event, "", Timestamp(0)).id;
    delivered(state, head).map(move |what| (id.clone(), what.into()))
}

/// The blockers on which a person has to act, by code and hook. A blocker that comes back after its resolution has a new
/// name.
fn what_needs_a_person(state: &State, event: &Event, input: &PlanningInput) -> Vec<String> {
    let blockers = explain(state, event, input);
    let needed = blockers.iter().filter_map(|blocker| {
        let code = code_for_a_person(state, event, blocker)?;
        // A hook that fails again after an operator's retry is a new notification: the operator may be asleep by then.
        let retried = match blocker {
            Blocker::HookFailed { member, hook, .. } => event.retry_of(member, *hook),
            _ => None,
        };
        let again = retried.map_or_else(String::new, |(_, number)| format!("/retry-{number}"));
        let what = blocker.hook(state).map_or_else(|| code.to_string(), |hook| format!("{code}/{hook}{again}"));
        let blocked = Notification::blocked(event, &what, input.now);
        let head = Notification::blocked(event, "", input.now).id;
        fresh_name(state, blocked.id).strip_prefix(&head).map(Into::into)
    });
    needed.collect()
}

/// The code of a blocker on which a person has to act. Nobody has to act while an event waits for a time, for the
/// platform or another approver, for a hook that runs, for another event, or because an operator asked for it. But a hold
/// that lets no hook begin before Azure starts the event is told: the primary would go down.
fn code_for_a_person(state: &State, event: &Event, blocker: &Blocker) -> Option<&'static str> {
    match blocker {
        Blocker::Hold(_) if needs_person(state, event, blocker) => Some(blocker.code()),
        Blocker::TooEarly { .. }
        | Blocker::Observing
        | Blocker::WaitingForPlatform { .. }
        | Blocker::Hold(_)
        | Blocker::Paused(_) => None,
        // A hook that is asked again after "blocked" is still blocked.
        Blocker::HookRunning { attempt, .. } => {
            let attempt = event.attempts.iter().find(|it| it.id == *attempt)?;
            attempt.blocked_since().map(|_| "hook_blocked")
        }
        Blocker::HookWaiting { .. } => slots::waits_for_last_call(event).then(|| blocker.code()),
        Blocker::Budget { by, .. } => {
            let is_sick = |cause: &SlotCause| matches!(cause, SlotCause::Unreachable(_) | SlotCause::NotReady(_));
            by.iter().any(is_sick).then(|| blocker.code())
        }
        _ => Some(blocker.code()),
    }
}

fn recent_events(state: &State, now: Timestamp) -> impl Iterator<Item = &Event> {
    let is_recent = move |event: &&Event| event.entered_at(Stage::Closed).is_none_or(|at| now.since(at) < TOLD_WITHIN);
    let all = state.open_events().chain(state.closed_events().rev().take_while(is_recent));
    all.filter(|event| !event.is_drill())
}

/// All notifications of the last hour that the leader has to send, in the order of the changes; delivered notifications
/// are included.
pub fn due(state: &State, input: &PlanningInput, waits: &BlockedSince, blocked_after: Duration) -> Vec<Notification> {
    let now = input.now;
    let of_events = recent_events(state, now).flat_map(of_event);
    let blocked = waits.longer_than(state, blocked_after).chain(waits.ended(state));
    let others = failing(state).chain(restored(state, now)).chain(stalled(state, input)).chain(healed(state, input));
    let all = of_events.chain(blocked).chain(others);
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

/// The resolutions of failed restores: no stint since the restore that failed is left. An event that takes the member out
/// once more restores nothing. After a successful `restore`, the member may still wait for its `ready` hook.
fn restored(state: &State, now: Timestamp) -> impl Iterator<Item = Notification> {
    let members = state.workloads().map(|(vm, workload)| workload.on(vm));
    members.flat_map(move |member| {
        let slot = state.slots.get(&member).filter(|slot| slot.state != SlotState::Gone);
        let unrestored = slot.map(|slot| slot.first_stint..=slot.stint);
        let head = format!("{}/{}/", member.path(), NotificationKind::RestoreFailed);
        let stints = delivered(state, head).filter_map(|stint| stint.parse::<u64>().ok());
        let over = stints.filter(|stint| unrestored.as_ref().is_none_or(|unrestored| !unrestored.contains(stint)));
        over.map(|stint| Notification::restore_failed(&member, stint, now).resolved(now)).collect::<Vec<_>>()
    })
}

/// The resolutions of stalled channels.
fn healed(state: &State, input: &PlanningInput) -> impl Iterator<Item = Notification> {
    let is_well = |name: &&VmName| {
        input.peers.get(*name).is_some_and(|contact| contact.reachable && contact.imds == ImdsHealth::Healthy)
    };
    input.members.iter().filter(is_well).flat_map(|name| {
        let told = delivered(state, format!("{name}/{}/", NotificationKind::ChannelStalled));
        told.map(|hour| Notification::stalled_as(name, hour, input.now).resolved(input.now)).collect::<Vec<_>>()
    })
}

/// The ends of the ids of delivered notifications with this beginning. A resolution stays due after its delivery to one
/// receiver, for the sake of the others.
fn delivered(state: &State, head: String) -> impl Iterator<Item = &str> {
    let from = state.deliveries.range(head.clone()..);
    let told = from.map_while(move |(id, _)| id.strip_prefix(&head));
    told.filter(|end| !end.ends_with(RESOLVED))
}

/// The first name of a notification without a resolution. Trouble that comes and goes all the time is told for the last
/// time under the last name.
fn fresh_name(state: &State, first: String) -> String {
    if !state.is_resolved(&first) {
        return first;
    }
    let mut names = (2..=NAMES).map(|number| format!("{first}/{number}"));
    names.find(|name| !state.is_resolved(name)).unwrap_or_else(|| format!("{first}/{NAMES}"))
}

fn stalled(state: &State, input: &PlanningInput) -> impl Iterator<Item = Notification> {
    let is_stalled = |name: &VmName| {
        let contact = input.peers.get(name)?;
        let since = contact.document_age.map_or(contact.imds_since, |age| input.now.minus(age));
        (contact.reachable && contact.imds == ImdsHealth::Stalled).then_some(since)
    };
    input.members.iter().filter_map(move |name| {
        let stalled = Notification::stalled(name, is_stalled(name)?);
        Some(Notification { id: fresh_name(state, stalled.id), ..stalled })
    })
}

#[cfg(test)]
mod tests;
