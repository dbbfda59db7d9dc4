//! Making it happen: one replica's tasks around the pure core. Nothing is decided here.
//!
//! [`ReplicaTasks::start`] begins polling, reporting, driving and running errands, and [`ReplicaTasks::stop`] ends them.

mod account;
mod alone;
pub mod clock;
pub mod clock_skew;
pub mod context;
mod decommission;
mod downtime;
mod errands;
mod former_hooks;
mod hook_calls;
pub mod hook_executor;
pub mod isolated_requests;
pub mod journal;
pub mod late_outcomes;
mod leader_loop;
pub mod metrics;
pub mod peer_tracker;
pub mod policies;
pub mod poller;
mod post;
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
use self::errands::Executor;
use self::hook_executor::HookExecutor;
use self::poller::Observer;
use self::readiness_poller::ReadinessProbe;
use self::role_poller::PolledRole;
use crate::hooks::{HookEnvironment, HookReport};
use allclear_core::model::workload::{Group, Workload};

/// What the configured workloads of this VM are asked, whatever goes on.
pub struct Questions {
    /// What the programs that are asked see of this replica's environment.
    pub surroundings: HookEnvironment,
    pub roles: Vec<PolledRole>,
    pub ready: Vec<ReadinessProbe>,
}

/// The running tasks of one replica.
pub struct ReplicaTasks {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl ReplicaTasks {
    pub fn start(
        here: &Arc<Context>,
        observer: &Arc<Observer>,
        hooks: &Arc<HookExecutor>,
        workloads: Vec<Workload>,
        groups: Vec<Group>,
        questions: Questions,
        reports: [Receiver<HookReport>; 2],
    ) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let hands = Arc::new(Executor { here: here.clone(), hooks: hooks.clone(), observer: observer.clone() });
        tasks.spawn(leader_loop::run_leader_loop(here.clone(), stop.clone()));
        tasks.spawn(downtime::watch(here.clone(), stop.clone()));
        tasks.spawn(decommission::run(here.clone(), stop.clone()));
        let (inherits, inherited) = watch::channel(None);
        tasks.spawn(errands::run(hands.clone(), inherits, stop.clone()));
        tasks.spawn(alone::watch(hands, stop.clone()));
        tasks.spawn(account::give(here.clone(), observer.clone(), inherited.clone(), stop.clone()));
        let Questions { surroundings, roles, ready } = questions;
        tasks.spawn(role_poller::run(here.clone(), surroundings.clone(), roles, stop.clone()));
        tasks.spawn(readiness_poller::run(here.clone(), surroundings, ready, stop.clone()));
        tasks.spawn(session_sync::sync_sessions(here.clone(), hooks.clone(), stop.clone()));
        for reports in reports {
            tasks.spawn(stop.clone().run_until_cancelled_owned(hooks.clone().listen(here.clone(), reports)));
        }
        tasks.spawn(observer.clone().poll(here.clone(), stop.clone()));
        tasks.spawn(observer.clone().report(here.clone(), workloads, groups, inherited, stop.clone()));
        tasks.close();
        Self { tasks, stop }
    }

    /// Begins nothing new and waits for what is under way: at most a post and its record.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}
