//! Workloads and their hooks.

use super::pb;
use super::stored::{Stored, named, numbered, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::document::Kind;
use crate::machine::id::WorkloadName;
use crate::machine::time::Timestamp;
use crate::machine::workload::{
    Condition, Group, Hook, HookId, Intent, Member, OnAbsent, OnFailure, Origin, Phase, Role, RunsOn, Workload,
};

impl Stored for Workload {
    type Message = pb::Workload;

    fn store(&self) -> pb::Workload {
        pb::Workload {
            name: self.name.store(),
            group: self.group.store(),
            after: self.after.store(),
            hooks: self.hooks.store(),
            dialled: self.origin == Origin::Dialled,
            on_absent: (self.on_absent != OnAbsent::default()).then(|| self.on_absent.store()),
        }
    }

    fn restore(message: pb::Workload) -> Result<Self, Undecodable> {
        let on_absent: Option<OnAbsent> = take!(message.on_absent);
        Ok(Self {
            name: take!(message.name),
            group: take!(message.group),
            after: take!(message.after),
            hooks: take!(message.hooks),
            origin: if message.dialled { Origin::Dialled } else { Origin::Configured },
            on_absent: on_absent.unwrap_or_default(),
        })
    }
}

impl Stored for (WorkloadName, Condition) {
    type Message = pb::Condition;

    fn store(&self) -> pb::Condition {
        let (workload, condition) = self;
        pb::Condition { workload: workload.store(), role: condition.role.store(), connected: condition.connected }
    }

    fn restore(message: pb::Condition) -> Result<Self, Undecodable> {
        let condition = Condition { role: take!(message.role), connected: message.connected };
        Ok((take!(message.workload), condition))
    }
}

impl Stored for (WorkloadName, Timestamp) {
    type Message = pb::Away;

    fn store(&self) -> pb::Away {
        let (workload, since) = self;
        pb::Away { workload: workload.store(), since_unix_ms: since.store() }
    }

    fn restore(message: pb::Away) -> Result<Self, Undecodable> {
        Ok((take!(message.workload), take!(message.since_unix_ms)))
    }
}

impl Stored for Group {
    type Message = pb::Group;

    fn store(&self) -> pb::Group {
        pb::Group { name: self.name.store(), max_unavailable: self.max_unavailable }
    }

    fn restore(message: pb::Group) -> Result<Self, Undecodable> {
        Ok(Self { name: take!(message.name), max_unavailable: message.max_unavailable })
    }
}

impl Stored for Hook {
    type Message = pb::Hook;

    fn store(&self) -> pb::Hook {
        pb::Hook {
            phase: self.phase.store(),
            timeout_ms: self.timeout.store(),
            attempts: self.attempts,
            on_failure: self.on_failure.store(),
            runs_on: self.runs_on.store(),
            can_confirm: self.can_confirm,
            can_undo: self.can_undo,
            can_dry_run: self.can_dry_run,
            min_freeze_ms: self.min_freeze.store(),
            fresh_for_ms: self.fresh_for.store(),
            optional_if_short: self.optional_if_short,
            worst_ms: self.worst.store(),
            exclusive: self.exclusive,
            kinds: self.kinds.iter().map(|kind| kind.as_word().into()).collect(),
        }
    }

    fn restore(message: pb::Hook) -> Result<Self, Undecodable> {
        Ok(Self {
            phase: take!(message.phase),
            timeout: take!(message.timeout_ms),
            attempts: message.attempts,
            on_failure: take!(message.on_failure),
            runs_on: take!(message.runs_on),
            can_confirm: message.can_confirm,
            can_undo: message.can_undo,
            can_dry_run: message.can_dry_run,
            min_freeze: take!(message.min_freeze_ms),
            fresh_for: take!(message.fresh_for_ms),
            optional_if_short: message.optional_if_short,
            worst: take!(message.worst_ms),
            exclusive: message.exclusive,
            kinds: message.kinds.iter().map(|kind| Kind::from_word(kind)).collect(),
        })
    }
}

impl Stored for HookId {
    type Message = pb::HookId;

    fn store(&self) -> pb::HookId {
        pb::HookId { phase: self.phase.store(), ordinal: self.ordinal.store() }
    }

    fn restore(message: pb::HookId) -> Result<Self, Undecodable> {
        Ok(Self { phase: take!(message.phase), ordinal: take!(message.ordinal) })
    }
}

impl Stored for Member {
    type Message = pb::Member;

    fn store(&self) -> pb::Member {
        pb::Member { vm: self.vm.store(), workload: self.workload.store() }
    }

    fn restore(message: pb::Member) -> Result<Self, Undecodable> {
        Ok(Self { vm: take!(message.vm), workload: take!(message.workload) })
    }
}

numbered!(Phase as Phase { Checkpoint, Failover, Drain, Shutdown, Restore, Ready });
numbered!(OnAbsent as OnAbsent { Hold, Skip, Command });
numbered!(Role as Role { Unknown, Primary, Replica });
numbered!(OnFailure as OnFailure { Hold, Continue });
numbered!(RunsOn as RunsOn { Affected, Peer, Any });
numbered!(Intent as Intent { Run, Confirm, Undo });
