//! Making it happen: one replica's tasks around the pure core. Nothing is decided here.
//!
//! [`ReplicaTasks::start`] begins polling, reporting, driving and running assignments, and [`ReplicaTasks::stop`] ends them.

mod approve;
pub mod clock;
pub mod clock_skew;
pub mod context;
mod decommission;
mod downtime;
mod executor;
mod former_hooks;
mod hook_calls;
pub mod hook_executor;
mod host;
pub mod isolated_requests;
mod isolation;
pub mod journal;
pub mod late_outcomes;
mod leader_loop;
pub mod metrics;
pub mod peer_tracker;
pub mod policies;
pub mod poller;
pub mod readiness_poller;
pub mod role_poller;
mod session_sync;
pub mod state_machine;
pub mod trace;
pub mod view;
pub mod watchdog;

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::context::Context;
use self::hook_executor::HookExecutor;
use self::host::ReplicaHost;
use self::poller::Observer;
use self::readiness_poller::ReadinessProbe;
use self::role_poller::PolledRole;
use crate::hooks::{HookEnvironment, HookReport};
use allclear_core::model::workload::{Group, Workload};
use allclear_core::procedure::reconciliation::reconcile_journal;

/// What the configured workloads of this VM are asked, whatever goes on.
pub struct Questions {
    /// What the programs that are asked see of this replica's environment.
    pub surroundings: HookEnvironment,
    pub roles: Vec<PolledRole>,
    pub ready: Vec<ReadinessProbe>,
}

/// What the configuration registers and asks.
pub struct Startup {
    pub workloads: Vec<Workload>,
    pub groups: Vec<Group>,
    pub questions: Questions,
    /// The reports of command hooks and of session hooks.
    pub reports: [Receiver<HookReport>; 2],
}

/// The running tasks of one replica.
pub struct ReplicaTasks {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ReplicaTasks {
    pub fn start(here: &Arc<Context>, observer: &Arc<Observer>, hooks: &Arc<HookExecutor>, startup: Startup) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let (left_over_sender, left_over) = watch::channel(None);
        let host = ReplicaHost {
            context: here.clone(),
            hooks: hooks.clone(),
            observer: observer.clone(),
            approvals: TaskTracker::new(),
            left_over,
            stop: stop.clone(),
        };
        let Startup { workloads, groups, questions, reports } = startup;
        tasks.spawn(leader_loop::run_leader_loop(here.clone(), stop.clone()));
        tasks.spawn(downtime::watch(here.clone(), stop.clone()));
        tasks.spawn(decommission::run(here.clone(), stop.clone()));
        tasks.spawn(executor::run(host.clone(), left_over_sender));
        tasks.spawn(isolation::run(host.clone()));
        let reconciler = host.clone();
        tasks.spawn(stop.clone().run_until_cancelled_owned(async move { reconcile_journal(&reconciler).await }));
        let Questions { surroundings, roles, ready } = questions;
        tasks.spawn(role_poller::run(here.clone(), surroundings.clone(), roles, stop.clone()));
        tasks.spawn(readiness_poller::run(here.clone(), surroundings, ready, stop.clone()));
        tasks.spawn(session_sync::sync_sessions(here.clone(), hooks.clone(), stop.clone()));
        for reports in reports {
            tasks.spawn(stop.clone().run_until_cancelled_owned(hooks.clone().listen(here.clone(), reports)));
        }
        tasks.spawn(observer.clone().poll(here.clone(), stop.clone()));
        tasks.spawn(poller::report(host, workloads, groups));
        tasks.close();
        Self { tasks, stop }
    }

    /// Begins nothing new and waits for what is under way: at most a post and its record.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}
