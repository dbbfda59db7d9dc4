//! The reason why an event is not approved yet, and whether an event may be claimed.

use crate::model::claim::{PostOutcome, Reason};
use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, GroupName, VmName};
use crate::model::isolated_blocker::ApprovalForecast;
use crate::model::operator::Suspension;
use crate::model::slot::SlotCause;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Opening;
use crate::model::workload::Member;
use alloc::string::String;
use alloc::vec::Vec;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Blocker {
    Deciding,
    Observing,
    TooEarly {
        starts_at: Timestamp,
        /// The last opening that passed without a preparation.
        missed: Option<Opening>,
    },
    HookWaiting {
        member: Member,
        hook: HookId,
        from: Timestamp,
    },
    /// No replica that could run the hook is reachable.
    ReplicaAway {
        member: Member,
        hook: HookId,
        /// Time since which the workload's own replica is unreachable; `None` if reachable, and another replica is to
        /// run the hook.
        since: Option<Timestamp>,
        /// Time from which the hook is no longer waited for, because a user asked for the event.
        passed_over_at: Option<Timestamp>,
    },
    /// The replica of one of the event's VMs has yet to register its workloads.
    Unregistered {
        replica: VmName,
        /// Time from which the registration is no longer waited for, because the budget is exhausted or a user asked
        /// for the event.
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
    /// The session workload is disconnected.
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
    /// The time for preparation ended before the hook ever ran.
    HookNotRun {
        member: Member,
        hook: HookId,
        notice_ends: Timestamp,
    },
    /// With the event's members too many members of the group would be out at once.
    Budget {
        /// `None` for a member without a group that waits for its own restore.
        group: Option<GroupName>,
        by: Vec<SlotCause>,
        /// A start at the end of the notice cannot be held.
        notice_ends: Timestamp,
    },
    /// An operator holds the event.
    Hold(Suspension),
    /// An operator paused all approvals.
    Paused(Suspension),
    NoHealthyChannel,
    /// A metadata endpoint works, and its document does not list the event: the event ends, unless it is listed again.
    NotListed,
    NoQuorum {
        /// Whether and when this replica approves the event alone; `None` when this replica does not decide.
        forecast: Option<ApprovalForecast>,
    },
    Posting {
        approver: VmName,
        since: Timestamp,
        /// Time from which another approver may be named.
        until: Timestamp,
    },
    /// The last post was not accepted; another post follows.
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
    /// The hook that the event waits for.
    pub(crate) fn of_hook(&self) -> Option<(&Member, HookId)> {
        match self {
            Self::HookWaiting { member, hook, .. }
            | Self::ReplicaAway { member, hook, .. }
            | Self::HookRunning { member, hook, .. }
            | Self::HookBlocked { member, hook, .. }
            | Self::WorkloadAway { member, hook, .. }
            | Self::HookFailed { member, hook, .. }
            | Self::HookNotRun { member, hook, .. } => Some((member, *hook)),
            _ => None,
        }
    }

    /// The operators' name of the hook that the event waits for.
    pub fn hook(&self, state: &State) -> Option<String> {
        self.of_hook().map(|(member, hook)| state.hook_name(member, hook))
    }
}

// The codes of `SPEC.md` 12.
variant_names!(Blocker, code, CODES {
    Self::Deciding => "deciding",
    Self::Observing => "observing",
    Self::TooEarly { .. } => "too_early",
    Self::HookWaiting { .. } | Self::ReplicaAway { .. } | Self::Unregistered { .. } => "hook_waiting",
    Self::HookRunning { .. } => "hook_running",
    Self::HookBlocked { .. } | Self::WorkloadAway { .. } => "hook_blocked",
    Self::HookFailed { .. } => "hook_failed",
    Self::HookNotRun { .. } => "hook_not_run",
    Self::Budget { .. } => "budget",
    Self::Hold(_) => "hold",
    Self::Paused(_) => "paused",
    Self::NoHealthyChannel => "no_healthy_channel",
    Self::NotListed => "not_listed",
    Self::NoQuorum { .. } => "no_quorum",
    Self::Posting { .. } => "posting",
    Self::PostFailed { outcome: PostOutcome::Differs, .. } => "views_differ",
    Self::PostFailed { .. } => "post_failed",
    Self::WaitingForPlatform { .. } => "waiting_for_platform",
});

/// Whether an event may be claimed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clearance {
    /// The event has started, is over or is not Scheduled.
    NothingToApprove,
    Blocked(Blocker),
    Clear(Reason),
}
