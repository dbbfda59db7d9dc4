//! Events.

use std::time::Duration;

use super::pb;
use super::stored::{Paired, Stored};
use super::tables::{message, numbered, pair, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::drill::{Drill, Mode};
use allclear_core::model::event::{Ending, Event};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::time::Timestamp;

message!(Event as Event {
    announcement: announcement required,
    seen_by: seen_by,
    entered: entered,
    revision: revision,
    treatment: treatment,
    attempts: attempts,
    waivers: waivers,
    claims: claims,
    ending: ending,
    isolated_approvals: isolated_approvals,
    departed: departed,
    drill: drill,
    operator_records: operator_records,
    impacts: impacts,
    treated: treated_unix_ms,
    slots_since: slots_since_unix_ms,
    stuck_since: stuck_since_unix_ms,
    times_given_back: given_back,
    is_deferred: is_deferred,
    last_call_since: last_call_since_unix_ms,
    former_calls: former_calls_unix_ms,
    decided_at_revision: decided_at_revision,
    reopened: reopened_unix_ms,
    gave_back: gave_back_unix_ms,
    halted_until: halted_until_unix_ms,
});

/// An `Event` contains the id that is its key.
impl Paired<EventId> for Event {
    type Message = pb::Event;

    fn store_with(&self, _: &EventId) -> pb::Event {
        self.store()
    }

    fn restore_pair(message: pb::Event) -> Result<(EventId, Self), Undecodable> {
        Self::restore(message).map(|event| (event.announcement.id.clone(), event))
    }
}

pair!(VmName, Duration as Impact { vm: vm, lasted: lasted_ms });

message!(Drill as Drill { mode: mode, who: who });

pair!(Stage, Timestamp as Step { stage: stage, at: at_unix_ms });

numbered!(Stage as Stage { Announced, Preparing, Claimed, Approved, Started, Restoring, Closed });
numbered!(Ending as Ending { Completed, Cancelled, Forgotten, Drilled, Interrupted });
numbered!(Mode as DrillMode { DryRun, Rehearsal });
