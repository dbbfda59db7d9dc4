//! Exports a trace of every closed event while this replica leads. Exports are not recorded: a new leader exports
//! recently closed events again. Every replica makes equal spans of equal logs, so the repeated trace is equal. Nothing
//! waits for an export.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{Collector, ExportResult};
use crate::export::retry::RetrySchedule;
use crate::replica::clock;
use crate::replica::cluster::ClusterHandle;
use crate::replica::metrics::{ExportLabel, Metrics};
use crate::replica::trace::TraceId;
use allclear_core::model::event::Event;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The time for the replicas of the event's VMs to report their observations.
const SETTLED_AFTER: Duration = Duration::from_secs(5);
/// Exports are abandoned at this time after the event was closed.
const GIVEN_UP_AFTER: Duration = Duration::from_mins(5);

/// Exports traces until `stop`.
pub async fn export(cluster: Arc<ClusterHandle>, metrics: Arc<Metrics>, collector: Collector, stop: CancellationToken) {
    let mut known = ExportProgress::default();
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK_EVERY) => {}
            () = stop.cancelled() => return,
        }
        if !cluster.leads() {
            known = ExportProgress::default();
        } else if stop.run_until_cancelled(known.export(&cluster, &metrics, &collector)).await.is_none() {
            return;
        }
    }
}

/// The results of exports since this replica leads.
#[derive(Default)]
struct ExportProgress {
    /// Traces without further work.
    settled: BTreeSet<TraceId>,
    /// Traces not exported yet, with the reason.
    waiting: BTreeMap<TraceId, String>,
    pace: RetrySchedule,
}

impl ExportProgress {
    /// Exports the oldest first, until an export has to wait.
    async fn export(&mut self, cluster: &ClusterHandle, metrics: &Metrics, collector: &Collector) {
        let (state, now) = (cluster.state(), cluster.time.now());
        let recent: Vec<_> =
            recent(&state, now).into_iter().map(|event| (TraceId::of(&cluster.node.cluster, event), event)).collect();
        self.forget_all_but(&recent.iter().map(|(id, _)| *id).collect(), metrics);
        for (id, event) in recent {
            if !self.pace.wait(clock::monotonic()).is_zero() {
                break;
            }
            if !self.settled.contains(&id) && is_settled(event, now) {
                let taken = collector.take(&cluster.node.cluster, &state, event).await;
                self.note(id, event, taken, metrics);
            }
        }
    }

    fn forget_all_but(&mut self, recent: &BTreeSet<TraceId>, metrics: &Metrics) {
        self.settled.retain(|id| recent.contains(id));
        self.waiting.retain(|id, why| {
            let may_wait = recent.contains(id);
            if !may_wait {
                tracing::warn!(trace = %id, why, "trace export abandoned: check [tracing]");
                metrics.export(ExportLabel::GivenUp);
            }
            may_wait
        });
    }

    fn note(&mut self, id: TraceId, event: &Event, taken: ExportResult, metrics: &Metrics) {
        let event = &event.announcement.id;
        match taken {
            ExportResult::NotNow(why, wish) => {
                tracing::debug!(%event, trace = %id, why, "trace not exported yet");
                // Only the leader exports, so there is no need for jitter.
                self.pace.failed(clock::monotonic(), Some(wish.min(GIVEN_UP_AFTER)), u8::MAX);
                self.waiting.insert(id, why);
                return;
            }
            ExportResult::Accepted => {
                tracing::debug!(%event, trace = %id, "trace exported");
                metrics.export(ExportLabel::Accepted);
            }
            ExportResult::Refused(why) => {
                tracing::warn!(%event, trace = %id, why, "trace refused by the collector: check [tracing]");
                metrics.export(ExportLabel::Refused);
            }
        }
        self.pace.succeeded();
        self.waiting.remove(&id);
        self.settled.insert(id);
    }
}

/// Events closed recently enough for an export, oldest first.
fn recent(state: &State, now: Timestamp) -> Vec<&Event> {
    let is_recent = |event: &&Event| age(event, now).is_some_and(|age| age < GIVEN_UP_AFTER);
    let mut recent: Vec<_> = state.closed_events().rev().take_while(is_recent).collect();
    recent.reverse();
    recent
}

fn is_settled(event: &Event, now: Timestamp) -> bool {
    age(event, now).is_some_and(|age| age >= SETTLED_AFTER)
}

fn age(event: &Event, now: Timestamp) -> Option<Duration> {
    event.entered_at(Stage::Closed).map(|closed| now.since(closed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
    use allclear_core::model::id::{EventId, VmName};

    fn closed_at(id: &str, at: i64) -> Event {
        let announcement = Announcement {
            id: EventId::new(id),
            status: Status::Scheduled,
            kind: EventType::Freeze,
            source: Source::Platform,
            resource_type: "VirtualMachine".into(),
            resources: vec![VmName::new("db-0")],
            not_before: NotBefore::Unknown,
            description: String::new(),
            duration: None,
        };
        let mut event = Event::first_seen_as(announcement, VmName::new("db-0"), Timestamp(0));
        event.entered.push((Stage::Closed, Timestamp(at)));
        event
    }

    #[test]
    fn what_closed_lately_is_exported_once_its_replicas_had_time_to_tell_what_they_observed() {
        let state = State {
            history: [closed_at("E-1", 0), closed_at("E-2", 10_000)].map(Into::into).into(),
            ..State::default()
        };
        let ids = |at| {
            let found = recent(&state, Timestamp(at)).into_iter();
            found.map(|event| event.announcement.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(ids(299_999), ["e-1", "e-2"]);
        assert_eq!(ids(300_000), ["e-2"]);
        assert_eq!(ids(310_000), [""; 0]);
        assert!(!is_settled(&state.history[1], Timestamp(14_999)) && is_settled(&state.history[1], Timestamp(15_000)));
    }
}
