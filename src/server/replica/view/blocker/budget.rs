//! The sentences of a group without room.

use super::{Sentences, Teller};
use allclear_core::model::blocker::Blocker;
use allclear_core::model::id::{EventId, GroupName};
use allclear_core::model::slot::{Slot, SlotCause, SlotState};
use allclear_core::model::workload::Member;
use allclear_core::schedule::groups;

impl Teller<'_> {
    pub(super) fn budget(&self, group: Option<&GroupName>, by: &[SlotCause]) -> Sentences {
        let is_own = by.iter().all(|cause| self.is_own(cause));
        let by: Vec<String> = by.iter().map(|cause| self.cause(cause)).collect();
        let message = match group {
            Some(_) if is_own => {
                format!("the event takes only members that are out of service already; it waits for {}", by.join(", "))
            }
            Some(group) => {
                let last = if groups::takes_last_members(self.state, self.event, group) {
                    "; during the event, no member of the group would be in service"
                } else {
                    ""
                };
                format!(
                    "no further member of the group {group} may be out of service; the event waits for {}{last}",
                    by.join(", ")
                )
            }
            None => format!("the workload of the event is being restored; the event waits for {}", by.join(", ")),
        };
        Sentences::new(
            message,
            Some(self.event.notice_ends()),
            format!("{} when enough members are in service; otherwise {}", self.goal(), self.platform()),
            if is_own {
                "the operator of the VMs, if members are out of service; an operator, by `allclear approve \
                 --over-budget`, which lets Azure take the members as they are"
            } else {
                "the operator of the VMs, if members are out of service; an operator, by `allclear approve \
                 --over-budget`, which lets Azure take further members away"
            },
        )
    }

    /// Whether all members of the cause are on VMs of the event.
    fn is_own(&self, cause: &SlotCause) -> bool {
        match cause {
            SlotCause::Event(_) | SlotCause::Queue(_) => false,
            SlotCause::Returning(id) => self.returning_after(id).all(|member| self.event.affects(&member.vm)),
            SlotCause::Unreachable(vm) => self.event.affects(vm),
            SlotCause::NotReady(member) => self.event.affects(&member.vm),
        }
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

    fn returning_after(&self, id: &EventId) -> impl Iterator<Item = &Member> {
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
    use super::super::tests::{event, told};
    use super::*;
    use allclear_core::model::document::Source;
    use allclear_core::model::id::{VmName, WorkloadName};

    #[test]
    fn an_event_that_waits_for_its_own_member_takes_no_further_one() {
        let event = event(Source::User, Vec::new());
        let of = |vm: &str| {
            let member = Member { vm: VmName::new(vm), workload: WorkloadName("pg".into()) };
            let group = Some(GroupName("orders".into()));
            told(
                &Blocker::Budget { group, by: vec![SlotCause::NotReady(member)], notice_ends: event.notice_ends() },
                &event,
                1,
            )
        };
        let (own, other) = (of("db-1"), of("db-0"));
        let wanted =
            "the event takes only members that are out of service already; it waits for pg on db-1 (not ready)";
        assert_eq!(own.message, wanted);
        assert!(own.resolved_by.ends_with("lets Azure take the members as they are"), "{own:?}");
        assert!(other.resolved_by.ends_with("lets Azure take further members away"), "{other:?}");
    }
}
