//! The sentences of a group without room.

use super::{Sentences, Teller};
use allclear_core::model::id::GroupName;
use allclear_core::model::slot::SlotCause;
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

    fn cause(&self, cause: &SlotCause) -> String {
        match cause {
            SlotCause::Event(id) => self.named(id),
            SlotCause::Returning(id) => format!("a member that is not restored after {}", self.named(id)),
            SlotCause::Unreachable(name) => format!("{name} (unreachable)"),
            SlotCause::NotReady(member) => format!("{member} (not ready)"),
            SlotCause::Queue(id) => format!("{} (earlier in the order)", self.named(id)),
        }
    }
}
