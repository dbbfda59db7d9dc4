//! Making it happen: one replica's tasks around the pure core. Nothing is decided here.
//!
//! [`Replica::start`] begins polling, reporting, driving and running errands, and [`Replica::stop`] ends them.

mod account;
mod alone;
mod calls;
pub mod clock;
pub mod contacts;
pub mod deeds;
mod departures;
pub mod differences;
mod driver;
mod errands;
pub mod folded;
mod former;
pub mod here;
pub mod hooks;
mod impact;
pub mod isolated_requests;
pub mod journal;
pub mod late;
pub mod observer;
pub mod policies;
mod post;
mod presences;
pub mod readiness;
pub mod roles;
pub mod rounds;
pub mod trace;
pub mod view;

use std::sync::Arc;

use tokio::sync::mpsc::Receiver;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::errands::Hands;
use self::here::Here;
use self::hooks::Hooks;
use self::observer::Observer;
use self::readiness::Asked;
use self::roles::Told;
use crate::hooks::{Report, Surroundings};
use allclear_core::model::workload::{Group, Workload};

/// What the configured workloads of this VM are asked, whatever goes on.
pub struct Questions {
    /// What the programs that are asked see of this replica's environment.
    pub surroundings: Surroundings,
    pub roles: Vec<Told>,
    pub ready: Vec<Asked>,
}

/// The running tasks of one replica.
pub struct Replica {
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Replica {
    pub fn start(
        here: &Arc<Here>,
        observer: &Arc<Observer>,
        hooks: &Arc<Hooks>,
        workloads: Vec<Workload>,
        groups: Vec<Group>,
        questions: Questions,
        reports: [Receiver<Report>; 2],
    ) -> Self {
        let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
        let hands = Arc::new(Hands { here: here.clone(), hooks: hooks.clone(), observer: observer.clone() });
        tasks.spawn(driver::drive(here.clone(), stop.clone()));
        tasks.spawn(impact::watch(here.clone(), stop.clone()));
        tasks.spawn(departures::run(here.clone(), stop.clone()));
        let (inherits, inherited) = watch::channel(None);
        tasks.spawn(errands::run(hands.clone(), inherits, stop.clone()));
        tasks.spawn(alone::watch(hands, stop.clone()));
        tasks.spawn(account::give(here.clone(), observer.clone(), inherited.clone(), stop.clone()));
        let Questions { surroundings, roles, ready } = questions;
        tasks.spawn(roles::run(here.clone(), surroundings.clone(), roles, stop.clone()));
        tasks.spawn(readiness::run(here.clone(), surroundings, ready, stop.clone()));
        tasks.spawn(presences::keep(here.clone(), hooks.clone(), stop.clone()));
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
