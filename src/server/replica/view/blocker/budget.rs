//! The sentences of a group without room.

use super::{Sentences, Teller};
use crate::clock::rfc3339;
use allclear_core::model::blocker::Blocker;
use allclear_core::model::id::{EventId, GroupName};
use allclear_core::model::slot::{Slot, SlotCause, SlotState};
use allclear_core::model::workload::Member;
use allclear_core::schedule::affected_members::needed;
use allclear_core::schedule::{groups, last_call};

impl Teller<'_> {
    pub(super) fn budget(&self, group: Option<&GroupName>, by: &[SlotCause]) -> Sentences {
        let is_own = self.takes_nobody_further();
        let by: Vec<String> = by.iter().map(|cause| self.cause(cause)).collect();
        let message = match group {
            Some(group) => {
                let last = if groups::takes_last_members(self.state, self.event, group) {
                    "; during the event, no member of the group would be in service"
                } else {
                    ""
                };
                let why = if is_own {
                    "the event takes only members that are out of service already".to_owned()
                } else {
                    format!("no further member of the group {group} may be out of service")
                };
                format!("{why}; the event waits for {}{last}", by.join(", "))
            }
            None => format!("the workload of the event is being restored; the event waits for {}", by.join(", ")),
        };
        Sentences::new(
            message,
            Some(self.event.notice_ends()),
            format!(
                "{} when enough members are in service; otherwise {}{}",
                self.goal(),
                self.last_call(),
                self.platform()
            ),
            if is_own {
                "the operator of the VMs, if members are out of service; an operator, by `allclear approve \
                 --over-budget`, which lets Azure take the members as they are"
            } else {
                "the operator of the VMs, if members are out of service; an operator, by `allclear approve \
                 --over-budget`, which lets Azure take further members away"
            },
        )
    }

    /// The last call, in which the hooks run although the groups have no room.
    fn last_call(&self) -> String {
        let at = last_call::begins_at(self.state, self.event);
        let is_to_come = !self.event.is_drill() && self.is_to_be_called(at);
        let told = || format!("from {} on the event's hooks move service away, without an approval, and ", rfc3339(at));
        if is_to_come { told() } else { String::new() }
    }

    /// Whether all members of the event are out of service already, and not on account of this event.
    fn takes_nobody_further(&self) -> bool {
        let members = needed(self.state, self.event);
        let own = SlotCause::Event(self.event.announcement.id.clone());
        let is_out =
            |(member, _): &(Member, _)| self.state.out_of_service_cause(member).is_some_and(|cause| cause != own);
        !members.is_empty() && members.iter().all(is_out)
    }

    /// The members for whose return the event waits.
    pub(super) fn unrestored(&self, blocker: &Blocker) -> Vec<Member> {
        let Blocker::Budget { by, .. } = blocker else { return Vec::new() };
        let returning = by.iter().filter_map(|cause| match cause {
            SlotCause::Returning(id) => Some(self.returning_after(id)),
            _ => None,
        });
        returning.flatten().cloned().collect()
    }

    pub(super) fn returning_after(&self, id: &EventId) -> impl Iterator<Item = &Member> {
        let is_it = move |slot: &Slot| slot.by == *id && slot.state == SlotState::Returning;
        self.state.slots.iter().filter(move |(_, slot)| is_it(slot)).map(|(member, _)| member)
    }

    /// These members, with the reason of the last failure.
    fn returning(&self, id: &EventId) -> String {
        let told = self.returning_after(id).map(|member| {
            let failing = self.state.failing_return(member);
            let why = failing.map(|failing| failing.outcome.reason().unwrap_or_else(|| failing.outcome.as_str()));
            why.map_or_else(|| member.path(), |why| format!("{} (its restore fails: {why})", member.path()))
        });
        let members: Vec<String> = told.collect();
        let who = if members.is_empty() { "a member".to_owned() } else { members.join(" and ") };
        format!("{who}, not restored after {}", self.named(id))
    }

    fn cause(&self, cause: &SlotCause) -> String {
        match cause {
            SlotCause::Event(id) => self.named(id),
            SlotCause::Returning(id) => self.returning(id),
            SlotCause::Unreachable(name) => format!("{name} (unreachable)"),
            SlotCause::NotReady(member) => format!("{member} (not ready)"),
            SlotCause::Queue(id) => format!("{} (earlier in the order)", self.named(id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shown;
    use super::super::tests::{event, input};
    use super::*;
    use allclear_core::model::document::Source;
    use allclear_core::model::id::{VmName, WorkloadName};
    use allclear_core::model::state::{Replica, State};
    use allclear_core::model::workload::{OnAbsent, Origin, Workload};

    #[test]
    fn an_event_that_waits_for_its_own_member_takes_no_further_one() {
        let pg = Workload {
            name: WorkloadName("pg".into()),
            group: Some(GroupName("orders".into())),
            after: Vec::new(),
            hooks: Vec::new(),
            origin: Origin::Configured,
            on_absent: OnAbsent::Hold,
        };
        let mut state = State::default();
        for vm in ["db-1", "db-2"] {
            let replica = Replica { workloads: vec![pg.clone()], ..Replica::default() };
            state.replicas.insert(VmName::new(vm), replica.into());
        }
        let returning = Slot {
            stint: 1,
            first_stint: 1,
            state: SlotState::Returning,
            since: event(Source::User, Vec::new()).first_seen(),
            group: pg.group.clone(),
            events: [EventId::new("e-0")].into(),
            by: EventId::new("e-0"),
            was_fit: true,
            restore_failed: false,
            needs_restore: true,
        };
        state.slots.insert(pg.on(&VmName::new("db-1")), returning.clone());
        let told = |state: &State, resources: &[&str]| {
            let mut event = event(Source::User, Vec::new());
            event.announcement.resources = resources.iter().map(|vm| VmName::new(vm)).collect();
            let by = vec![SlotCause::Returning(EventId::new("e-0"))];
            let budget = Blocker::Budget { group: pg.group.clone(), by, notice_ends: event.notice_ends() };
            shown(&budget, &event, state, &input(1))
        };
        let (own, both) = (told(&state, &["db-1"]), told(&state, &["db-1", "db-2"]));
        assert!(own.message.starts_with("the event takes only members that are out of service already"), "{own:?}");
        assert!(own.resolved_by.ends_with("lets Azure take the members as they are"), "{own:?}");
        assert!(both.message.starts_with("no further member of the group orders may be out of service"), "{both:?}");
        assert!(both.resolved_by.ends_with("lets Azure take further members away"), "{both:?}");
        // The event itself takes the member.
        let id = event(Source::User, Vec::new()).announcement.id;
        let taken = Slot { state: SlotState::Leaving, events: [id.clone()].into(), by: id, ..returning };
        state.slots.insert(pg.on(&VmName::new("db-2")), taken);
        let leaving = told(&state, &["db-2"]);
        assert!(leaving.message.starts_with("no further member of the group orders"), "{leaving:?}");
    }
}
