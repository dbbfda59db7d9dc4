//! Workloads and their hooks.

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, numbered, pair, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{
    Condition, Group, Hook, Intent, Member, OnAbsent, OnFailure, Origin, Phase, Readiness, Role, RunsOn, Workload,
};

impl Stored for Workload {
    type Message = pb::Workload;

    fn store(&self) -> pb::Workload {
        pb::Workload {
            name: self.name.store(),
            group: self.group.store(),
            after: self.after.store(),
            hooks: self.hooks.store(),
            is_session: self.is_session(),
            owner: self.owner().unwrap_or_default(),
            on_absent: (self.on_absent != OnAbsent::default()).then(|| self.on_absent.store()),
        }
    }

    fn restore(message: pb::Workload) -> Result<Self, Undecodable> {
        let on_absent: Option<OnAbsent> = take!(message.on_absent at "on_absent");
        Ok(Self {
            name: take!(message.name at "name"),
            group: take!(message.group at "group"),
            after: take!(message.after at "after"),
            hooks: take!(message.hooks at "hooks"),
            origin: if message.is_session { Origin::Session { owner: message.owner } } else { Origin::Configured },
            on_absent: on_absent.unwrap_or_default(),
        })
    }
}

/// A `Workload` contains the name that is its key.
impl Paired<WorkloadName> for Workload {
    type Message = pb::Workload;

    fn store_with(&self, _: &WorkloadName) -> pb::Workload {
        self.store()
    }

    fn restore_pair(message: pb::Workload) -> Result<(WorkloadName, Self), Undecodable> {
        Self::restore(message).map(|workload| (workload.name.clone(), workload))
    }
}

pair!(WorkloadName, Condition as Condition { workload: workload, { role: role, connected: connected, readiness: readiness } });
pair!(WorkloadName, Timestamp as Disconnected { workload: workload, since: since_unix_ms });

message!(Group as Group { name: name, max_unavailable: max_unavailable });

message!(Hook as Hook {
    phase: phase,
    name: name,
    command_digest: command_digest,
    timeout: timeout_ms,
    max_attempts: max_attempts,
    on_failure: on_failure,
    runs_on: runs_on,
    can_confirm: can_confirm,
    can_undo: can_undo,
    can_dry_run: can_dry_run,
    min_freeze: min_freeze_ms,
    fresh_for: fresh_for_ms,
    optional_if_short: optional_if_short,
    worst: worst_ms,
    exclusive: exclusive,
    event_types: kinds,
    expected: expected_ms,
});

message!(HookId as HookId { phase: phase, key: key });
message!(Member as Member { vm: vm, workload: workload });

numbered!(Phase as Phase { Checkpoint, Failover, Drain, Shutdown, Restore, Ready, Check });
numbered!(OnAbsent as OnAbsent { Hold, Skip, Command });
numbered!(Readiness as Readiness { Unasked, Ready, NotReady });
numbered!(Role as Role { Unknown, Primary, Replica });
numbered!(OnFailure as OnFailure { Hold, Continue });
numbered!(RunsOn as RunsOn { Affected, Peer, Any });
numbered!(Intent as Intent { Run, Confirm, Undo });
