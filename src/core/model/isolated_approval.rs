//! Approvals that an isolated replica gave, and the entries of its journal.

use crate::model::claim::{PostOutcome, Reason};
use crate::model::document::Announcement;
use crate::model::id::VmName;
use crate::model::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;

/// A journal never holds more: so many approvals in one loss of contact are no accident any more.
pub const JOURNAL_LIMIT: usize = 100;

/// The operator who asked for something, and why.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RequestedBy {
    pub who: String,
    pub reason: String,
}

/// One approval that a replica gave, or was about to give, without a quorum.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct IsolatedApproval {
    pub approver: VmName,
    /// When it was written down, before the post. Tells the takeovers of one replica apart.
    pub at: Timestamp,
    /// Since when its replica heard no leader.
    pub alone_since: Timestamp,
    /// The voters it did not reach.
    pub out_of_reach: Vec<VmName>,
    /// `None` where the replica decided by itself.
    pub requested_by: Option<RequestedBy>,
    /// `None` while nobody knows what became of the post.
    pub outcome: Option<(PostOutcome, Timestamp)>,
    /// When it came into the log; `None` in a journal.
    pub recorded: Option<Timestamp>,
}

impl IsolatedApproval {
    pub fn outcome_is(&self, outcome: &PostOutcome) -> bool {
        self.outcome.as_ref().is_some_and(|(found, _)| found == outcome)
    }

    pub const fn reason(&self) -> Reason {
        if self.requested_by.is_some() { Reason::Operator } else { Reason::IsolatedApproval }
    }

    /// The platform has, or may have, this approval.
    pub fn may_have_been_posted(&self) -> bool {
        self.outcome.as_ref().is_none_or(|(outcome, _)| outcome.may_have_arrived())
    }
}

/// A takeover with its event, as the replica's document showed it: an entry of its journal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct JournalEntry {
    pub announcement: Announcement,
    pub approval: IsolatedApproval,
}
