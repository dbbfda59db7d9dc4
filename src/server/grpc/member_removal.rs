//! Removal of a member, and the check of a replica's name before a request is recorded.

use tonic::Status;

use super::names::{name, spelled};
use super::operator_actions::OperatorCall;
use super::refusal::refused;
use allclear_core::model::command::{ApplyResult, ClearSuspect, Command, ExcludeReplica, ReadmitReplica};
use allclear_core::model::id::VmName;
use allclear_wire::pb::allclear::operator::v1 as shown;

impl OperatorCall<'_> {
    pub(super) async fn remove_member(&self, request: shown::RemoveMemberRequest) -> Result<(), Status> {
        let shown::RemoveMemberRequest { name: given, gone, reason } = request;
        let asked = self.cluster.consensus.on_behalf_of(self.who.clone());
        let replica = name(given)?;
        let vm = VmName::new(&replica);
        let unknown = if gone {
            format!("{replica} is not a member, and the cluster waits for no reconciliation of {replica}")
        } else {
            format!("{replica} is not a member of this cluster")
        };
        // The vote of a lost disk is no member to the replica on the new disk.
        let is_own = vm == self.cluster.node.name;
        let is_awaited = || gone && self.cluster.state().is_suspect(&vm);
        self.check_known(|| is_own || self.is_member(&self.spelled(&replica)) || is_awaited(), &unknown).await?;
        let replica = self.spelled(&replica);
        let for_good = if gone { ", permanently lost" } else { "" };
        self.record(format!("removal of {replica} from the members{for_good}"), reason).await?;
        let is_member = self.is_member(&replica);
        if is_member {
            self.wait_for_quorum().await?;
            // Before the removal: a replica with an empty disk would be added again at once.
            self.commit(Command::ExcludeReplica(ExcludeReplica { replica: vm.clone() })).await?;
        }
        if (is_member || !gone)
            && let Err(error) = asked.remove_member(&replica).await
        {
            if is_member && error.is_refusal() {
                self.commit(Command::ReadmitReplica(ReadmitReplica { replica: vm })).await?;
            }
            return Err(refused(&error, error.is_refusal()));
        }
        if gone {
            let absolved = self.cluster.propose(&Command::ClearSuspect(ClearSuspect { replica: vm })).await;
            match absolved {
                Ok(ApplyResult::Applied) => {}
                Ok(ApplyResult::Rejected(_)) => return Err(Status::failed_precondition(unknown)),
                Err(error) => {
                    return Err(Status::aborted(format!("the replica may still be suspect: {error}; try again")));
                }
            }
        }
        Ok(())
    }

    /// A member's name as the membership or the configuration has it.
    pub(super) fn spelled(&self, given: &str) -> String {
        let members = self.cluster.consensus.members();
        let configured = self.cluster.node.configured.iter().map(VmName::as_str);
        spelled(given, members.voters.iter().chain(&members.learners).map(String::as_str).chain(configured))
    }

    fn is_member(&self, replica: &str) -> bool {
        let members = self.cluster.consensus.members();
        members.voters.iter().chain(&members.learners).any(|member| member == replica)
    }

    /// Refuses a request about an unknown replica, before the request is recorded.
    pub(super) async fn check_known(&self, is_known: impl Fn() -> bool, unknown: &str) -> Result<(), Status> {
        // This replica may be behind.
        if !is_known() {
            self.wait_for_quorum().await?;
            self.catch_up().await?;
        }
        if is_known() { Ok(()) } else { Err(Status::failed_precondition(unknown)) }
    }

    /// Proposes the command; a command without effect is no error.
    pub(super) async fn commit(&self, command: Command) -> Result<(), Status> {
        let recorded = self.cluster.propose(&command).await;
        recorded.map(drop).map_err(|error| refused(&error, error.is_refusal()))
    }
}
