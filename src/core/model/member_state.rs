//! The state of a member of a group: in service or out, ready or not, and whether its restore fails.

use crate::model::attempt::Outcome;
use crate::model::hook_id::HookId;
use crate::model::id::{EventId, VmName};
use crate::model::slot::{SlotCause, SlotState};
use crate::model::state::{Replica, State};
use crate::model::time::Timestamp;
use crate::model::workload::{Member, Phase, Role, Workload};
use alloc::vec::Vec;

impl State {
    /// The stint in which the event keeps the member out; `None` when the event does not keep the member out.
    pub fn stint(&self, event: &EventId, member: &Member) -> Option<u64> {
        self.slots.get(member).filter(|slot| slot.events.contains(event)).map(|slot| slot.stint)
    }

    pub fn is_unreachable(&self, vm: &VmName) -> bool {
        self.replicas.get(vm).is_some_and(|replica| replica.unreachable.is_some())
    }

    /// Time since which the member answers "not ready", or does not answer; `None` also for a member that cannot be
    /// asked.
    pub fn not_serving_since(&self, member: &Member) -> Option<Timestamp> {
        let replica = self.replicas.get(&member.vm)?;
        let workload = replica.workload(&member.workload).filter(|workload| is_asked(replica, workload))?;
        let since = if workload.is_session() { &replica.disconnected } else { &replica.unready };
        since.get(&member.workload).copied()
    }

    /// The readiness of the member can be asked.
    pub fn is_asked(&self, member: &Member) -> bool {
        let replica = self.replicas.get(&member.vm);
        replica.is_some_and(|replica| replica.workload(&member.workload).is_some_and(|it| is_asked(replica, it)))
    }

    /// Why the member fills a slot of its group (R3); `None` while it is in service.
    pub fn out_of_service_cause(&self, member: &Member) -> Option<SlotCause> {
        match self.slots.get(member) {
            Some(slot) if slot.state == SlotState::Returning => return Some(SlotCause::Returning(slot.by.clone())),
            Some(slot) => return Some(SlotCause::Event(slot.by.clone())),
            None => {}
        }
        if self.is_unreachable(&member.vm) {
            return Some(SlotCause::Unreachable(member.vm.clone()));
        }
        self.not_serving_since(member).map(|_| SlotCause::NotReady(member.clone()))
    }

    /// The member serves, as far as known. A failed restore counts against the member, with two exceptions: the member
    /// reports the primary, or the restore followed a return of slots by this event, and the member served before. In
    /// both cases the event would be a repair, which waits for no hook, and would take a serving member down.
    pub fn is_fit_for(&self, event: &EventId, member: &Member) -> bool {
        let slot = self.slots.get(member);
        let is_there = !self.is_unreachable(&member.vm) && self.not_serving_since(member).is_none();
        let served_before = slot.is_some_and(|slot| slot.by == *event && slot.was_fit);
        let restore_failed = || slot.is_some_and(|slot| slot.restore_failed) || self.has_failed_to_return(member);
        is_there && (served_before || self.role(member) == Role::Primary || !restore_failed())
    }

    /// Whether the member answers as a replica, and is not ready while no other member of its group serves: it may lack only
    /// its primary. Its restart repairs nothing, and takes a member away that could become the primary.
    pub fn may_lack_only_primary(&self, member: &Member) -> bool {
        let group = self.workload(member).and_then(|workload| workload.group.as_ref());
        let is_of_group = |workload: &Workload| group.is_some() && workload.group.as_ref() == group;
        let mut others = self.workloads().filter(|(vm, workload)| is_of_group(workload) && workload.on(vm) != *member);
        let is_there = !self.is_unreachable(&member.vm) && self.away_since(member).is_none();
        let is_alive = is_there && self.role(member) == Role::Replica;
        let restore_failed = self.slots.get(member).is_some_and(|slot| slot.restore_failed);
        let is_broken = restore_failed || self.has_failed_to_return(member);
        let is_unready = group.is_some() && self.not_serving_since(member).is_some() && !is_broken;
        is_alive && is_unready && others.all(|(vm, workload)| self.out_of_service_cause(&workload.on(vm)).is_some())
    }

    /// The state of the member, one of `MEMBER_STATES`.
    pub fn member_state(&self, member: &Member) -> &'static str {
        match self.slots.get(member).map(|slot| slot.state) {
            Some(SlotState::Gone) => "out_of_service",
            Some(state) => state.as_str(),
            None if self.is_unreachable(&member.vm) => "unknown",
            None if self.not_serving_since(member).is_some() => "not_ready",
            None => "in_service",
        }
    }

    /// The last attempt to restore the member failed.
    pub fn has_failed_to_return(&self, member: &Member) -> bool {
        self.failing_return(member).is_some()
    }

    /// The restore that keeps failing for the member; `None` when the last attempt did not fail.
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
        // A blocked hook is one attempt, however often it was asked.
        let asked = failed.iter().map(|(attempt, _)| {
            let blocked = attempt.blocked.map_or(0, |blocked| usize::try_from(blocked.times).unwrap_or(usize::MAX));
            blocked.saturating_add(usize::from(!attempt.is_blocked()))
        });
        let times = asked.fold(0, usize::saturating_add);
        Some(FailingReturn { hook: last.hook, outcome, since, times })
    }
}

/// A configured workload is asked by a `ready` hook. A session workload shows by its session that the workload is
/// connected, if the workload has reported a role.
fn is_asked(replica: &Replica, workload: &Workload) -> bool {
    let has_hook = workload.hooks_of(Phase::Ready).next().is_some();
    let has_role = replica.condition(&workload.name).role != Role::Unknown;
    has_hook || (workload.is_session() && has_role)
}

/// The words for the state of a member.
pub const MEMBER_STATES: [&str; 6] = ["in_service", "leaving", "out_of_service", "returning", "not_ready", "unknown"];

/// A member whose restore keeps failing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailingReturn<'a> {
    /// The hook that failed last.
    pub hook: HookId,
    /// The outcome of the last failed hook.
    pub outcome: &'a Outcome,
    /// When the first of the consecutive failed attempts ended.
    pub since: Timestamp,
    /// The number of these attempts.
    pub times: usize,
}
