//! Commands for an event on a replica without a quorum.

use super::super::primaries;
use super::{Commands, approve_alone, command};
use allclear_wire::pb::allclear::operator::v1 as shown;

impl Commands<'_> {
    /// Of three or more voters the others may act, so no approval is offered that is ready to be copied.
    pub(super) fn without_quorum(&mut self, blocker: &shown::Blocker) {
        let others = blocker.isolated_approval.as_ref().filter(|alone| alone.others_may_have_quorum);
        let look = match others {
            Some(alone) => format!(
                "first ask the other replicas, on the VMs of {}: they may have a quorum, and hold or approve the event \
                 there",
                alone.other_voters.join(", ")
            ),
            None => "show which replicas are unreachable, on each of the VMs".into(),
        };
        self.add(look, command("status", &[]));
        self.add_other("find the fault, on each unreachable VM", self.doctor.into());
        if let Some(alone) = others {
            let does = format!(
                "only if none of them has a quorum: {}; without a revision the command approves nothing, and answers with \
                 the revision that the approval needs",
                approve_alone(self.event, alone)
            );
            self.add_with_reason(does, command("approve", &[&self.event.id]).map(|line| line + " --alone"));
        } else if let Some(alone) = &blocker.isolated_approval {
            self.move_without_quorum();
            self.add_with_reason(approve_alone(self.event, alone), self.approve("--alone"));
        }
    }

    /// Without a quorum no hook moves the primary, and a hold that would stop its failover is refused.
    fn move_without_quorum(&mut self) {
        let staying = primaries(self.event);
        if !staying.is_empty() {
            let does = format!(
                "{}: if no quorum comes back in time, move the primary by hand. Once no hook of the event runs, first stop \
                 allclear on that VM: otherwise its failover may begin in the middle of it, when a quorum is back",
                staying.join(" and ")
            );
            self.add_other(&does, "systemctl stop allclear".into());
        }
    }
}
