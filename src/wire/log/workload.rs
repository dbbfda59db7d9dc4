//! Workloads and their hooks.

use super::pb;
use super::stored::{Stored, named, numbered, take};
use super::undecodable::{Fault, Undecodable};
use crate::machine::workload::{Group, Hook, HookId, Intent, Member, OnFailure, Phase, RunsOn, Workload};

impl Stored for Workload {
    type Message = pb::Workload;

    fn store(&self) -> pb::Workload {
        pb::Workload {
            name: self.name.store(),
            group: self.group.store(),
            after: self.after.store(),
            hooks: self.hooks.store(),
        }
    }

    fn restore(message: pb::Workload) -> Result<Self, Undecodable> {
        Ok(Self {
            name: take!(message.name),
            group: take!(message.group),
            after: take!(message.after),
            hooks: take!(message.hooks),
        })
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
numbered!(OnFailure as OnFailure { Hold, Continue });
numbered!(RunsOn as RunsOn { Affected, Peer, Any });
numbered!(Intent as Intent { Run, Confirm, Undo });
