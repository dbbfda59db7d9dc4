//! The tasks of a replica around the core. The tasks decide nothing.
//!
//! [`ReplicaTasks::start`] starts all tasks, and [`ReplicaTasks::stop`] ends them.

extern crate alloc;

mod approve;
pub mod attempt_key;
pub mod check_poller;
pub mod clock;
pub mod clock_skew;
pub mod cluster;
mod decommission;
mod downtime;
mod executor;
mod former_hooks;
mod hook_calls;
pub mod hook_executor;
mod hook_lookup;
mod host;
pub mod input_source;
pub mod isolated_requests;
mod isolation;
pub mod journal;
mod journal_sync;
pub mod late_outcomes;
pub mod latest_answers;
mod leader_loop;
pub mod metrics;
pub mod peer_tracker;
pub mod policy_fingerprints;
pub mod poller;
mod polls;
pub mod readiness_poller;
mod reporter;
pub mod role_poller;
pub mod sanitize;
mod session_sync;
pub mod state_machine;
pub mod trace;
pub mod view;
pub mod watchdog;

use allclear_cluster::{consensus, net};
use allclear_effects::{control_plane, hooks, imds};

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::check_poller::CheckProbe;
use self::cluster::ClusterHandle;
use self::downtime::PulseFile;
use self::hook_executor::HookExecutor;
use self::host::ReplicaHost;
use self::input_source::InputSource;
use self::isolated_requests::IsolatedRequests;
use self::journal::ApprovalJournal;
use self::latest_answers::{LatestFaults, LatestReadiness, LatestRoles};
use self::metrics::Metrics;
use self::poller::ImdsPoller;
use self::readiness_poller::ReadinessProbe;
use self::role_poller::PolledRole;
use self::watchdog::Watchdog;
use crate::hooks::{HookEnvironment, HookReport};
use allclear_core::model::workload::{Group, Workload};

/// The questions to the configured workloads of this VM, independent of events.
pub struct Questions {
    /// The part of this replica's environment visible to the programs that answer.
    pub surroundings: HookEnvironment,
    pub roles: Vec<PolledRole>,
    pub ready: Vec<ReadinessProbe>,
    pub checks: Vec<CheckProbe>,
}

/// The registrations and questions of the configuration.
pub struct Startup {
    pub workloads: Vec<Workload>,
    pub groups: Vec<Group>,
    pub questions: Questions,
    /// The reports of command hooks and of session hooks.
    pub reports: [Receiver<HookReport>; 2],
}

/// The parts shared by the tasks of a replica. Each task receives the parts that the task reads and writes, and no
/// others.
#[derive(Clone)]
pub struct SharedParts {
    pub inputs: Arc<InputSource>,
    pub journal: Arc<ApprovalJournal>,
    pub isolated_requests: Arc<IsolatedRequests>,
    pub metrics: Arc<Metrics>,
    pub watchdog: Arc<Watchdog>,
    pub roles: Arc<LatestRoles>,
    pub checks: Arc<LatestFaults>,
    pub unknown_roles: Arc<LatestFaults>,
    pub unready: Arc<LatestFaults>,
}

impl SharedParts {
    /// `version` is the cluster version known to this program.
    pub fn new(cluster: ClusterHandle, journal: ApprovalJournal, metrics: Arc<Metrics>, version: u64) -> Self {
        Self {
            inputs: Arc::new(InputSource::new(Arc::new(cluster), version)),
            journal: Arc::new(journal),
            isolated_requests: Arc::default(),
            metrics,
            watchdog: Arc::default(),
            roles: Arc::default(),
            checks: Arc::default(),
            unknown_roles: Arc::default(),
            unready: Arc::default(),
        }
    }
}

/// The running tasks of a replica.
pub struct ReplicaTasks {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ReplicaTasks {
    pub fn start(shared: SharedParts, observer: &Arc<ImdsPoller>, hooks: &Arc<HookExecutor>, startup: Startup) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let (left_over_sender, left_over) = watch::channel(None);
        let SharedParts {
            inputs,
            journal,
            isolated_requests,
            metrics,
            watchdog,
            roles,
            checks: latest_checks,
            unknown_roles,
            unready,
        } = shared;
        let (cluster, readiness) = (&inputs.cluster, Arc::new(LatestReadiness::default()));
        let latest_readiness = (readiness.clone(), unready);
        let pulse = PulseFile::in_folder(journal.folder(), journal.environment());
        let Startup { workloads, groups, questions, reports } = startup;
        let latest_roles = (roles, unknown_roles);
        let Questions { surroundings, roles, ready, checks } = questions;
        tasks.spawn(downtime::watch(cluster.clone(), pulse, watchdog.clone(), stop.clone()));
        tasks.spawn(decommission::run(inputs.clone(), stop.clone()));
        tasks.spawn(role_poller::run(cluster.clone(), latest_roles, surroundings.clone(), roles, stop.clone()));
        tasks.spawn(check_poller::run(cluster.clone(), latest_checks, surroundings.clone(), checks, stop.clone()));
        tasks.spawn(readiness_poller::run(cluster.clone(), latest_readiness, surroundings, ready, stop.clone()));
        tasks.spawn(session_sync::sync_sessions(cluster.clone(), hooks.clone(), stop.clone()));
        for reports in reports {
            tasks.spawn(stop.clone().run_until_cancelled_owned(hooks.clone().listen(reports)));
        }
        tasks.spawn(observer.clone().poll(inputs.clone(), watchdog.clone(), stop.clone()));
        tasks.spawn(leader_loop::run_leader_loop(inputs.clone(), metrics.clone(), watchdog.clone(), stop.clone()));
        let host = ReplicaHost {
            cluster: cluster.clone(),
            inputs,
            journal,
            isolated_requests,
            metrics,
            watchdog,
            readiness,
            hooks: hooks.clone(),
            observer: observer.clone(),
            approvals: TaskTracker::new(),
            left_over,
            stop: stop.clone(),
        };
        tasks.spawn(executor::run(host.clone(), left_over_sender));
        tasks.spawn(isolation::run(host.clone()));
        tasks.spawn(journal_sync::run(host.clone()));
        tasks.spawn(reporter::run(host, workloads, groups));
        tasks.close();
        Self { tasks, stop }
    }

    /// Starts nothing new and waits for work under way: at most a post and the record of the post.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}
