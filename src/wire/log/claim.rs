//! Claims and the outcomes of posts.

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, numbered, one_of, pair, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::claim::{Claim, PostOutcome, Reason};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Member;

message!(Claim as Claim {
    attempt: attempt,
    approver: approver,
    reason: reason,
    at: at_unix_ms,
    until: until_unix_ms,
    outcome: recorded,
    stints: stints,
    decided_at_revision: decided_at_revision,
    is_last_resort: is_last_resort,
});

pair!(Member, u64 as Stint { member: member required, stint: stint });

numbered!(Reason as ClaimReason { Prepared, NothingToPrepare, BudgetSpent, Policy, IsolatedApproval, Operator });

pair!(PostOutcome, Timestamp as PostEnd { outcome: outcome required, at: at_unix_ms });

one_of!(PostOutcome as post_outcome { Accepted, Refused(refused), NotSent(not_sent), Unknown(unknown), Withdrawn, Differs });
