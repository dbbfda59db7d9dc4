//! The host of the core's procedures in the program: the process beside a database.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock;
use super::cluster::ClusterHandle;
use super::hook_executor::HookExecutor;
use super::input_source::InputSource;
use super::isolated_requests::IsolatedRequests;
use super::journal::ApprovalJournal;
use super::latest_answers::LatestReadiness;
use super::metrics::Metrics;
use super::poller::ImdsPoller;
use super::watchdog::Watchdog;
use crate::imds::Approval;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::bounded;
use allclear_core::model::document::Document;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::planning_input::Timing;
use allclear_core::procedure::executor::LeftOver;
use allclear_core::procedure::{Host, PostReason};

#[derive(Clone)]
pub(super) struct ReplicaHost {
    pub(super) cluster: Arc<ClusterHandle>,
    pub(super) inputs: Arc<InputSource>,
    pub(super) journal: Arc<ApprovalJournal>,
    pub(super) isolated_requests: Arc<IsolatedRequests>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) watchdog: Arc<Watchdog>,
    pub(super) readiness: Arc<LatestReadiness>,
    pub(super) hooks: Arc<HookExecutor>,
    pub(super) observer: Arc<ImdsPoller>,
    /// Approvals under way.
    pub(super) approvals: TaskTracker,
    /// What a previous run left over; `None` until this run has caught up.
    pub(super) left_over: watch::Receiver<Option<LeftOver>>,
    pub(super) stop: CancellationToken,
}

impl Host for ReplicaHost {
    type State = Arc<State>;

    fn name(&self) -> &VmName {
        &self.cluster.node.name
    }

    fn state(&self) -> Arc<State> {
        self.cluster.state()
    }

    fn timing(&self) -> &Timing {
        &self.cluster.node.timing
    }

    fn monotonic(&self) -> Timestamp {
        clock::monotonic()
    }

    fn cluster_time(&self) -> Timestamp {
        self.cluster.time.now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn fresh_document(&self) -> Result<Document, String> {
        let state = self.cluster.state();
        let fetched = self.stop.run_until_cancelled(self.observer.fetch_now(&state)).await;
        let fetched = fetched.ok_or_else(|| "this replica is stopping".to_owned())?;
        fetched.map_err(|why| why.to_string())
    }

    fn trusted_document(&self) -> Option<Document> {
        self.observer.trusted_document()
    }

    async fn ensure_linearizable(&self) -> bool {
        self.cluster.consensus.ensure_linearizable().await.is_ok()
    }

    async fn post(&self, event: &EventId, reason: PostReason, within: Duration) -> PostOutcome {
        if matches!(reason, PostReason::LastResort(_)) {
            return self.acknowledge(event).await;
        }
        match self.observer.approve(event, within).await {
            Approval::Accepted => PostOutcome::Accepted,
            Approval::Refused(status) => PostOutcome::Refused(status),
            Approval::NotSent(why) => PostOutcome::NotSent(bounded(&why.to_string())),
            Approval::Unknown(why) => PostOutcome::Unknown(bounded(&why.to_string())),
        }
    }
}

impl ReplicaHost {
    /// Approves through the control plane, where an event belongs to a VM.
    async fn acknowledge(&self, event: &EventId) -> PostOutcome {
        let state = self.state();
        let announcement = state.open_event(event).map(|event| &event.announcement);
        let Some((id, vm)) = announcement.and_then(|it| Some((&it.id, it.resources.first()?))) else {
            return PostOutcome::NotSent("the event names no VM any more".into());
        };
        tracing::warn!(event = %id, %vm, "approval through the control plane: no metadata endpoint works");
        match self.observer.acknowledge(id, vm).await {
            PostOutcome::NotSent(why) => PostOutcome::NotSent(bounded(&why)),
            PostOutcome::Unknown(why) => PostOutcome::Unknown(bounded(&why)),
            settled => settled,
        }
    }
}
