//! An operator's approval on a replica without a leader.

use std::time::Duration;

use tokio::time::timeout;
use tonic::Status;

use super::operator_actions::OperatorCall;
use super::refusal::unknown;
use crate::replica::view::advice::approve_alone;
use crate::replica::view::detail;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::id::EventId;
use allclear_core::model::isolated_approval::RequestedBy;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The limit for a document, two writes to the disk and a post, each with a shorter limit of its own.
const APPROVED_WITHIN: Duration = Duration::from_secs(30);

impl OperatorCall<'_> {
    /// Approves, given a revision. Without a revision nothing is approved, and the answer lists the overridden
    /// obstacles.
    pub(super) async fn approve_alone(
        self,
        id: EventId,
        revision: Option<u64>,
        reason: String,
    ) -> Result<shown::ApproveResponse, Status> {
        let Some(revision) = revision else { return Err(self.what_it_risks(&id)) };
        tracing::warn!(who = self.who, event = %id, reason, "isolated approval requested");
        let requested_by = RequestedBy { who: self.who.clone(), reason };
        let approved = self.isolated_requests.approve(id.clone(), revision, requested_by);
        let unclear =
            || Status::aborted("the outcome of the approval is unknown; check the event with `allclear explain`");
        match timeout(APPROVED_WITHIN, approved).await.ok().flatten().ok_or_else(unclear)? {
            Ok(PostOutcome::Accepted) => Ok(shown::ApproveResponse { event: self.view.event(id.as_str()) }),
            Ok(outcome) => {
                let why = detail(&outcome).unwrap_or_default();
                Err(Status::aborted(format!("the approval ended with the outcome {}: {why}", outcome.as_str())))
            }
            Err(why) => Err(Status::failed_precondition(why.to_string())),
        }
    }

    fn what_it_risks(&self, id: &EventId) -> Status {
        let Some(event) = self.view.event(id.as_str()) else { return unknown(&self.cluster.state(), id) };
        let Some(blocker) = &event.blocker else {
            return Status::failed_precondition(format!("event {id} does not wait for an approval"));
        };
        let Some(alone) = &blocker.isolated_approval else {
            return Status::failed_precondition(format!(
                "this replica cannot approve event {id} alone: {}",
                blocker.message
            ));
        };
        Status::failed_precondition(format!(
            "nothing is approved yet. With --revision {} the command would {}",
            event.revision,
            approve_alone(&event, alone)
        ))
    }
}
