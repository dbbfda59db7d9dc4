//! The state: the content of a snapshot.

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, numbered, pair, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::id::VmName;
use allclear_core::model::slot::{Slot, SlotState};
use allclear_core::model::state::{Replica, State};
use allclear_core::model::workload::Member;

message!(State as State {
    version: version,
    now: now_unix_ms,
    replicas: replicas,
    open: open,
    history: history,
    attempts: attempts,
    leadership: leadership,
    reconcile_states: reconcile_states,
    operator_seq: operator_seq,
    operator_records: operator_records,
    deliveries: deliveries,
    slots: slots,
    stints: stints,
    excluded: excluded,
});

impl Paired<Member> for Slot {
    type Message = pb::Slot;

    fn store_with(&self, member: &Member) -> pb::Slot {
        pb::Slot {
            member: Some(member.store()),
            stint: self.stint,
            first_stint: self.first_stint,
            state: self.state.store(),
            since_unix_ms: self.since.store(),
            group: self.group.store(),
            events: self.events.store(),
            by: self.by.store(),
            was_fit: self.was_fit,
            restore_failed: self.restore_failed,
            needs_restore: self.needs_restore,
        }
    }

    fn restore_pair(message: pb::Slot) -> Result<(Member, Self), Undecodable> {
        let slot = Self {
            stint: message.stint,
            first_stint: message.first_stint,
            state: take!(message.state at "state"),
            since: take!(message.since_unix_ms at "since_unix_ms"),
            group: take!(message.group at "group"),
            events: take!(message.events at "events"),
            by: take!(message.by at "by"),
            was_fit: message.was_fit,
            restore_failed: message.restore_failed,
            needs_restore: message.needs_restore,
        };
        Ok((take!(message.member required at "member"), slot))
    }
}

numbered!(SlotState as SlotState { Leaving, Out, Returning, Gone });

pair!(VmName, Replica as Replica {
    name: name,
    {
        workloads: workloads,
        reports: reports,
        document: document,
        stale_since: stale_since_unix_ms,
        groups: groups,
        sessions: sessions,
        conditions: conditions,
        disconnected: disconnected,
        unready: unready,
        unreachable: unreachable_unix_ms,
        owed_workloads: owed_workloads,
    }
});
