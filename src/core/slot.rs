//! The slot of a member: the right to be out of service, and how far the member is on its way out and back
//! (`members.md` 1). A registered member without a slot is in service.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::fmt;

use super::attempt::Outcome;
use super::event::Event;
use super::id::{EventId, GroupName, VmName};
use super::needs::affected;
use super::state::{Replica, State};
use super::time::Timestamp;

use super::workload::{Member, Phase, Role, Workload};

/// A taken slot.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// The number of this taking, unique in a cluster. A hook counts only in the stint in which it was begun.
    pub stint: u64,
    /// The number of the taking since which the member was not restored: what was begun since then is taken back.
    pub first_stint: u64,
    pub state: SlotState,
    /// Since when `state` is what it is.
    pub since: Timestamp,
    /// The member's group as the slot was taken; the member may be registered otherwise, or not at all, by now.
    pub group: Option<GroupName>,
    /// The open events that keep the member out.
    pub events: BTreeSet<EventId>,
    /// The event that took the slot last. The member is restored on its account.
    pub by: EventId,
    /// As the slot was taken, the member was reachable and ready, and its last restore had not failed.
    pub was_fit: bool,
    /// It was taken again after a restore that failed.
    pub restore_failed: bool,
    /// A disruptive hook was begun, and no restore has ended well since.
    pub needs_restore: bool,
}

/// How far a member with a slot is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SlotState {
    /// Disruptive hooks run, or are about to.
    Leaving,
    /// An event that names the member is claimed, approved or started.
    Out,
    /// No event keeps the member out: it is restored, and asked whether it is ready.
    Returning,
    /// The member's VM was deleted. Nothing is restored; the slot is free when another member joins the group.
    Gone,
}

words!(SlotState { Leaving => "leaving", Out => "out_of_service", Returning => "returning", Gone => "gone" });

/// Why a member counts as not in service.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cause {
    /// The event keeps it out.
    Event(EventId),
    /// The event is over or has given the slot back, and the member is not back yet.
    Returning(EventId),
    /// Its replica is unreachable.
    Unreachable(VmName),
    /// It answers that it is not ready, or does not answer.
    NotReady(Member),
    /// The event is earlier in the order and lacks a slot of the group.
    Queue(EventId),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(id) => write!(f, "{id}"),
            Self::Returning(id) => write!(f, "{id} (not restored)"),
            Self::Unreachable(name) => write!(f, "{name}"),
            Self::NotReady(member) => write!(f, "{member} (not ready)"),
            Self::Queue(id) => write!(f, "{id} (before it)"),
        }
    }
}

impl Cause {
    /// Only the member's recovery ends it, no event of the cluster.
    pub const fn is_sickness(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::NotReady(_) | Self::Returning(_) => true,
            Self::Event(_) | Self::Queue(_) => false,
        }
    }
}

impl Phase {
    /// Hooks of this phase take service away.
    pub const fn is_disruptive(self) -> bool {
        matches!(self, Self::Failover | Self::Drain | Self::Shutdown)
    }
}

impl State {
    /// The stint in which the event keeps the member out; `None` when it does not.
    pub fn stint(&self, event: &EventId, member: &Member) -> Option<u64> {
        self.slots.get(member).filter(|slot| slot.events.contains(event)).map(|slot| slot.stint)
    }

    pub fn is_unreachable(&self, vm: &VmName) -> bool {
        self.replicas.get(vm).is_some_and(|replica| replica.unreachable.is_some())
    }

    /// Since when the member says that it is not ready, or does not answer; `None` also where nobody can ask it.
    pub fn unready_since(&self, member: &Member) -> Option<Timestamp> {
        let replica = self.replicas.get(&member.vm)?;
        let workload = replica.workload(&member.workload).filter(|workload| is_asked(replica, workload))?;
        let since = if workload.dials_in() { &replica.away } else { &replica.unready };
        since.get(&member.workload).copied()
    }

    /// Somebody can tell whether the member serves.
    pub fn is_asked(&self, member: &Member) -> bool {
        let replica = self.replicas.get(&member.vm);
        replica.is_some_and(|replica| replica.workload(&member.workload).is_some_and(|it| is_asked(replica, it)))
    }

    /// Why the member fills a slot of its group (R3); `None` while it is in service.
    pub fn cause(&self, member: &Member) -> Option<Cause> {
        match self.slots.get(member) {
            Some(slot) if slot.state == SlotState::Returning => return Some(Cause::Returning(slot.by.clone())),
            Some(slot) => return Some(Cause::Event(slot.by.clone())),
            None => {}
        }
        if self.is_unreachable(&member.vm) {
            return Some(Cause::Unreachable(member.vm.clone()));
        }
        self.unready_since(member).map(|_| Cause::NotReady(member.clone()))
    }

    /// The member serves, as far as anybody can tell.
    pub fn is_fit(&self, member: &Member) -> bool {
        let restore_failed = || self.slots.get(member).is_some_and(|slot| slot.restore_failed);
        let is_there = !self.is_unreachable(&member.vm) && self.unready_since(member).is_none();
        is_there && !restore_failed() && !self.has_failed_to_return(member)
    }

    /// How the member is, as one of `MEMBER_STATES`.
    pub fn member_state(&self, member: &Member) -> &'static str {
        match self.slots.get(member).map(|slot| slot.state) {
            Some(SlotState::Gone) => "out_of_service",
            Some(state) => state.as_word(),
            None if self.is_unreachable(&member.vm) => "unknown",
            None if self.unready_since(member).is_some() => "not_ready",
            None => "in_service",
        }
    }

    /// The last attempt to restore the member failed.
    pub fn has_failed_to_return(&self, member: &Member) -> bool {
        self.failing_return(member).is_some()
    }

    /// What keeps failing to bring the member back; `None` when the last attempt did not fail.
    pub fn failing_return(&self, member: &Member) -> Option<FailingReturn<'_>> {
        let slot = self.slots.get(member).filter(|slot| slot.state == SlotState::Returning)?;
        let event = self.open_event(&slot.by)?;
        let restores = event.attempts.iter().rev().filter(|attempt| {
            attempt.member == *member && attempt.stint == slot.stint && attempt.hook.phase >= Phase::Restore
        });
        let ended = restores.filter_map(|attempt| Some((attempt, attempt.outcome.as_ref()?)));
        let failed: Vec<_> = ended.take_while(|(_, (outcome, _))| !outcome.is_favourable()).collect();
        let ((last, (outcome, _)), (first, (_, ended))) = (failed.first()?, failed.last()?);
        let since = first.blocked.map_or(*ended, |blocked| blocked.since);
        // What is blocked is one attempt, however often it was asked.
        let asked = failed.iter().map(|(attempt, _)| {
            let blocked = attempt.blocked.map_or(0, |blocked| usize::try_from(blocked.times).unwrap_or(usize::MAX));
            blocked.saturating_add(usize::from(!attempt.is_blocked()))
        });
        let times = asked.fold(0, usize::saturating_add);
        Some(FailingReturn { phase: last.hook.phase, outcome, since, times })
    }
}

/// A configured workload with a `ready` hook is asked, and one that dials in shows by its session that it is there, when it
/// has promised to say how it does.
fn is_asked(replica: &Replica, workload: &Workload) -> bool {
    let has_hook = workload.hooks_of(Phase::Ready).next().is_some();
    let has_role = replica.condition(&workload.name).role != Role::Unknown;
    has_hook || (workload.dials_in() && has_role)
}

/// The words for how a member is.
pub const MEMBER_STATES: [&str; 6] = ["in_service", "leaving", "out_of_service", "returning", "not_ready", "unknown"];

/// A member that does not come back, whatever is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailingReturn<'a> {
    /// Of the hook that failed last.
    pub phase: Phase,
    /// How it ended.
    pub outcome: &'a Outcome,
    /// When the first of the attempts ended that failed one after the other.
    pub since: Timestamp,
    /// How many they are.
    pub times: usize,
}

/// The members whose slots an event needs: those that it names and that have a group or hooks.
/// A dry run takes nothing away.
pub fn needed<'a>(state: &'a State, event: &Event) -> Vec<(Member, Option<&'a GroupName>)> {
    if event.is_dry_run() {
        return Vec::new();
    }
    let matters = |workload: &Workload| workload.group.is_some() || !workload.hooks.is_empty();
    let members = affected(state, event).into_iter().filter(|(_, workload)| matters(workload));
    members.map(|(vm, workload)| (workload.on(vm), workload.group.as_ref())).collect()
}
