//! The reason why an event is not approved yet, and whether an event may be claimed.

use crate::model::claim::{PostOutcome, Reason};
use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, GroupName, VmName};
use crate::model::isolated_blocker::ApprovalForecast;
use crate::model::operator::Suspension;
use crate::model::slot::SlotCause;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::Member;
use alloc::string::String;
use alloc::vec::Vec;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocker {
    Deciding,
    Observing,
    TooEarly {
        starts_at: Timestamp,
    },
    HookWaiting {
        member: Member,
        hook: HookId,
        from: Timestamp,
    },
    /// No replica that could run it answers.
    ReplicaAway {
        member: Member,
        hook: HookId,
        /// Since when the workload's own is out of reach; `None` where it answers, and another is to run the hook.
        since: Option<Timestamp>,
        /// From when on it is not waited for, because somebody asked for the event.
        passed_over_at: Option<Timestamp>,
    },
    /// The replica of one of its VMs has yet to say what runs there.
    Unregistered {
        replica: VmName,
        /// From when on it is not waited for, because the budget is spent or somebody asked for the event.
        passed_over_at: Option<Timestamp>,
    },
    HookRunning {
        attempt: AttemptId,
        member: Member,
        hook: HookId,
        on: VmName,
        since: Timestamp,
        deadline: Timestamp,
        expected_end: Option<Timestamp>,
    },
    HookBlocked {
        member: Member,
        hook: HookId,
        reason: String,
        retry_at: Timestamp,
    },
    /// Its workload dials in and is away.
    WorkloadAway {
        member: Member,
        hook: HookId,
        since: Timestamp,
        notice_ends: Timestamp,
    },
    HookFailed {
        member: Member,
        hook: HookId,
        reason: String,
        notice_ends: Timestamp,
    },
    /// With its members too many of the group would be out at once.
    Budget {
        /// `None` where a member without a group waits for its own restore.
        group: Option<GroupName>,
        by: Vec<SlotCause>,
        /// What the end of the notice starts cannot be held.
        notice_ends: Timestamp,
    },
    /// An operator does not want it to be approved yet.
    Hold(Suspension),
    /// An operator wants nothing to be approved yet.
    Paused(Suspension),
    NoHealthyChannel,
    NoQuorum {
        /// Whether and when this replica approves it alone; `None` where it has no say.
        forecast: Option<ApprovalForecast>,
    },
    Posting {
        approver: VmName,
        since: Timestamp,
        /// From when on another may be named.
        until: Timestamp,
    },
    /// The last post was not accepted; another is made.
    PostFailed {
        approver: VmName,
        outcome: PostOutcome,
        at: Timestamp,
        again_at: Timestamp,
    },
    WaitingForPlatform {
        since: Timestamp,
    },
}

impl Blocker {
    /// The hook that the event waits for, as operators call it.
    pub fn hook(&self, state: &State) -> Option<String> {
        match self {
            Self::HookWaiting { member, hook, .. }
            | Self::ReplicaAway { member, hook, .. }
            | Self::HookRunning { member, hook, .. }
            | Self::HookBlocked { member, hook, .. }
            | Self::WorkloadAway { member, hook, .. }
            | Self::HookFailed { member, hook, .. } => Some(state.hook_name(member, *hook)),
            _ => None,
        }
    }
}

// `contract.md` 4 has these codes.
variant_names!(Blocker, code, CODES {
    Self::Deciding => "deciding",
    Self::Observing => "observing",
    Self::TooEarly { .. } => "too_early",
    Self::HookWaiting { .. } | Self::ReplicaAway { .. } | Self::Unregistered { .. } => "hook_waiting",
    Self::HookRunning { .. } => "hook_running",
    Self::HookBlocked { .. } | Self::WorkloadAway { .. } => "hook_blocked",
    Self::HookFailed { .. } => "hook_failed",
    Self::Budget { .. } => "budget",
    Self::Hold(_) => "hold",
    Self::Paused(_) => "paused",
    Self::NoHealthyChannel => "no_healthy_channel",
    Self::NoQuorum { .. } => "no_quorum",
    Self::Posting { .. } => "posting",
    Self::PostFailed { outcome: PostOutcome::Differs, .. } => "views_differ",
    Self::PostFailed { .. } => "post_failed",
    Self::WaitingForPlatform { .. } => "waiting_for_platform",
});

/// Whether an event may be claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clearance {
    /// It has started, is over or is not Scheduled.
    NothingToApprove,
    Blocked(Blocker),
    Clear(Reason),
}
