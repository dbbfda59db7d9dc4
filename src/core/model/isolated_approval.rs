//! Approvals of an isolated replica, and the entries of its journal.

use crate::model::claim::{PostOutcome, Reason};
use crate::model::document::Announcement;
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;

/// The maximum size of a journal: this many approvals in one loss of contact are no accident any more.
pub const JOURNAL_LIMIT: usize = 100;

/// The operator of a request, and the reason.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RequestedBy {
    pub who: String,
    pub reason: String,
}

/// One approval, given or about to be given by a replica without a quorum.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IsolatedApproval {
    pub approver: VmName,
    /// When the approval was written to the journal, before the post. Distinguishes the isolated approvals of one
    /// replica.
    pub at: Timestamp,
    /// Time since which the replica had no leader.
    pub alone_since: Timestamp,
    /// The voters that were unreachable.
    pub out_of_reach: Vec<VmName>,
    /// `None` if the replica decided automatically.
    pub requested_by: Option<RequestedBy>,
    /// `None` while the outcome of the post is unknown.
    pub outcome: Option<(PostOutcome, Timestamp)>,
    /// When the approval was recorded in the log; `None` in a journal.
    pub recorded: Option<Timestamp>,
}

impl IsolatedApproval {
    pub fn outcome_is(&self, outcome: &PostOutcome) -> bool {
        self.outcome.as_ref().is_some_and(|(found, _)| found == outcome)
    }

    pub const fn reason(&self) -> Reason {
        if self.requested_by.is_some() { Reason::Operator } else { Reason::IsolatedApproval }
    }

    /// The platform has, or may have, the approval.
    pub fn may_have_been_posted(&self) -> bool {
        self.outcome.as_ref().is_none_or(|(outcome, _)| outcome.may_have_arrived())
    }
}

impl Event {
    /// A replica without a quorum approved the event, and the post may have been sent to the platform.
    pub fn has_isolated_approval(&self) -> bool {
        self.isolated_approvals.iter().any(IsolatedApproval::may_have_been_posted)
    }

    /// As `has_isolated_approval`, at the request of an operator.
    pub fn has_isolated_approval_of_operator(&self) -> bool {
        self.isolated_approvals
            .iter()
            .any(|approval| approval.may_have_been_posted() && approval.requested_by.is_some())
    }
}

/// An isolated approval with its event, as listed in the replica's document: an entry of the replica's journal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct JournalEntry {
    pub announcement: Announcement,
    pub approval: IsolatedApproval,
}
