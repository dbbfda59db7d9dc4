//! Reads the metadata service, and posts approvals to it.

mod poll_loop;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::clock;
use super::cluster::ClusterHandle;
use super::metrics::Metrics;
use super::peer_tracker::ImdsReport;
use crate::control_plane::ControlPlane;
use crate::imds::poll_schedule::PollSchedule;
use crate::imds::{Approval, ImdsHealthTracker, MetadataService, NoInformation, Polled};
use allclear_core::allowance::Allowance;
use allclear_core::cluster_time::{ASKS_FOR, ClockReading};
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::{Command, RegisterWorkloads};
use allclear_core::model::document::Document;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Group, Workload};
use allclear_core::observation::{Observation, Patience, Poll, PollTime};
use allclear_core::platform_time::PlatformTime;

pub struct ImdsPoller {
    service: Arc<dyn MetadataService>,
    control_plane: Option<ControlPlane>,
    patience: Patience,
    sight: Mutex<PollState>,
    looks: Looks,
    polls: watch::Sender<()>,
    metrics: Arc<Metrics>,
}

struct PollState {
    observation: Observation,
    channel: ImdsHealthTracker,
    pace: PollSchedule,
    /// The time taken by the last document.
    took: Duration,
    platform: PlatformTime,
    /// The time of the poller's start.
    opened: Timestamp,
    allowance: Allowance,
}

/// Reads for concurrent approvals: a single read serves all approvals that asked before the read began.
#[derive(Default)]
struct Looks {
    begun: AtomicU64,
    /// The last finished read, with the number of the read.
    last: tokio::sync::Mutex<Option<(u64, Result<Document, NoInformation>)>>,
}

impl ImdsPoller {
    pub fn new(
        service: Arc<dyn MetadataService>,
        pace: PollSchedule,
        patience: Patience,
        stall_after: Duration,
        metrics: Arc<Metrics>,
    ) -> Self {
        let opened = clock::monotonic();
        let sight = Mutex::new(PollState {
            observation: Observation::default(),
            channel: ImdsHealthTracker::new(stall_after, opened),
            pace,
            took: Duration::ZERO,
            platform: PlatformTime::default(),
            opened,
            allowance: Allowance::default(),
        });
        let (looks, polls) = (Looks::default(), watch::channel(()).0);
        Self { service, control_plane: None, patience, sight, looks, polls, metrics }
    }

    /// Approves through the control plane as the last resort.
    #[must_use]
    pub fn with_control_plane(self, control_plane: ControlPlane) -> Self {
        Self { control_plane: Some(control_plane), ..self }
    }

    /// Keeps a token for the control plane, if one is configured, until `stop`.
    pub async fn keep_token(self: Arc<Self>, stop: CancellationToken) {
        if let Some(control_plane) = &self.control_plane {
            stop.run_until_cancelled(control_plane.keep_token()).await;
        }
    }

    /// Asks the endpoint at the time of a poll.
    pub async fn ask(&self, state: &State) -> Result<Document, NoInformation> {
        let asked = clock::monotonic();
        let polled = self.service.poll().await;
        let time = PollTime { asked, answered: clock::monotonic() };
        self.take(polled, |observation, polled| {
            let poll = Poll { document: &polled.document, time, patience: self.patience };
            observation.record_poll(poll, state, |kind| polled.version.shows(kind));
        })
    }

    /// Reads a document for an approval, requested after the start of this call. The read is no poll: an event missing
    /// in the document is not gone because of the read.
    pub async fn fetch_now(&self, state: &State) -> Result<Document, NoInformation> {
        let begun = self.looks.begun.load(Ordering::SeqCst);
        let mut last = self.looks.last.lock().await;
        if let Some((_, looked)) = last.as_ref().filter(|(number, _)| *number > begun) {
            return looked.clone();
        }
        let number = self.looks.begun.fetch_add(1, Ordering::SeqCst) + 1;
        let polled = self.service.look().await;
        let looked = self.take(polled, |observation, polled| observation.looked(&polled.document, state));
        *last = Some((number, looked.clone()));
        looked
    }

    fn take(
        &self,
        polled: Result<Polled, NoInformation>,
        observe: impl FnOnce(&mut Observation, &Polled),
    ) -> Result<Document, NoInformation> {
        self.metrics.poll(polled.as_ref().err().map(NoInformation::word));
        let now = clock::monotonic();
        let mut sight = self.sight();
        let result = match polled {
            Ok(polled) => {
                if polled.document.has_element_without_id {
                    tracing::warn!("element without a readable EventId received");
                }
                observe(&mut sight.observation, &polled);
                self.metrics.excess.left_out(sight.observation.left_out());
                sight.channel.document(now);
                self.metrics.metadata_failure.end();
                if let Some(date) = polled.date {
                    sight.platform.record_date(date, polled.took, now);
                }
                sight.pace.document();
                sight.took = polled.took;
                Ok(polled.document)
            }
            Err(why) => {
                if sight.channel.failed(&why) {
                    tracing::warn!(%why, "metadata poll failed");
                }
                sight.observation.record_failed_poll();
                if why.is_failure() {
                    let is_stalled = sight.channel.health(now) != ImdsHealth::Healthy;
                    self.metrics.metadata_failure.note(why.to_string(), is_stalled);
                }
                sight.pace.failed(&why);
                Err(why)
            }
        };
        drop(sight);
        self.polls.send_replace(());
        result
    }

    /// The endpoint's document, as far as trusted; `None` while the channel does not work.
    pub fn trusted_document(&self) -> Option<Document> {
        let sight = self.sight();
        let is_healthy = sight.channel.health(clock::monotonic()) == ImdsHealth::Healthy;
        sight.observation.document().filter(|_| is_healthy).cloned()
    }

    /// Posts the approval of an event through the same channel, or nothing if the channel is occupied for longer than
    /// `within`.
    pub async fn approve(&self, event: &EventId, within: Duration) -> Approval {
        self.service.approve(event, within).await
    }

    /// Approves an event of a VM through the control plane, once.
    pub async fn acknowledge(&self, event: &EventId, vm: &VmName) -> PostOutcome {
        match &self.control_plane {
            Some(control_plane) => control_plane.acknowledge(event, vm).await,
            None => PostOutcome::NotSent("this replica is not permitted to use the control plane".into()),
        }
    }

    pub fn health(&self) -> ImdsReport {
        let now = clock::monotonic();
        let sight = self.sight();
        let (channel, document_age) = (sight.channel.health(now), sight.channel.age(now));
        let can_acknowledge = self.control_plane.as_ref().is_some_and(ControlPlane::is_ready);
        ImdsReport { health: channel, document_age, answers_in: sight.took, can_acknowledge }
    }

    /// The endpoint's time, independent of the wall clock; measured against this time of the cluster.
    pub fn reading(&self, wall: Option<i64>, time: Timestamp) -> ClockReading {
        let now = clock::monotonic();
        let sight = self.sight();
        ClockReading {
            wall,
            platform: sight.platform.ahead_of(time, now),
            is_asking: sight.channel.age(now).is_none() && now.since(sight.opened) < ASKS_FOR,
        }
    }

    /// Notifies after each poll, independent of the result.
    pub fn polls(&self) -> watch::Receiver<()> {
        self.polls.subscribe()
    }

    /// Returns when the health differs from `channel`; checked after each poll.
    pub async fn health_changes_from(&self, channel: ImdsHealth) {
        let mut polls = self.polls();
        while self.health().health == channel {
            if polls.changed().await.is_err() {
                return;
            }
        }
    }

    pub(super) fn due(&self, cluster: &ClusterHandle, workloads: &[Workload], groups: &[Group]) -> Option<Command> {
        let state = cluster.state();
        let known = state.replicas.get(&cluster.node.name);
        if !known.is_some_and(|replica| replica.workloads == workloads && replica.groups == groups) {
            return Some(Command::RegisterWorkloads(RegisterWorkloads {
                workloads: workloads.into(),
                groups: groups.into(),
            }));
        }
        let mut sight = self.sight();
        sight.observation.adopt_state(&state, &cluster.node.name);
        let report = sight.observation.report_by(cluster.time.trust(), &state, &cluster.node.name)?;
        let is_let = sight.allowance.admits_report(&report, &state, &cluster.node.name, clock::monotonic());
        drop(sight);
        self.metrics.excess.waits(!is_let);
        is_let.then_some(report)
    }

    pub(super) fn spend(&self, command: &Command) {
        self.sight().allowance.spend_on(command, clock::monotonic());
    }

    pub(super) fn may_wait(&self, cluster: &ClusterHandle) -> bool {
        let votes =
            || !cluster.consensus.members().learners.iter().any(|learner| VmName::new(learner) == cluster.node.name);
        self.sight().observation.may_wait(cluster.time.trust(), &cluster.state(), &cluster.node.name, votes)
    }

    fn sight(&self) -> MutexGuard<'_, PollState> {
        self.sight.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
