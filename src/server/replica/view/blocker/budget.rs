//! The sentences of a group without room.

use super::{Sentences, Teller};
use allclear_core::model::blocker::Blocker;
use allclear_core::model::id::{EventId, GroupName};
use allclear_core::model::slot::{Slot, SlotCause, SlotState};
use allclear_core::model::workload::Member;
use allclear_core::schedule::groups;

impl Teller<'_> {
    pub(super) fn budget(&self, group: Option<&GroupName>, by: &[SlotCause]) -> Sentences {
        let by: Vec<String> = by.iter().map(|cause| self.cause(cause)).collect();
        let message = match group {
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
            "the operator of the VMs, if members are out of service; an operator, by `allclear approve \
                 --over-budget`, which lets Azure take further members away",
        )
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
