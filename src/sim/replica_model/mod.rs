//! One simulated replica around the core: the tasks of the server's `replica`, on virtual time. The README of the crate
//! lists which of the tasks are the program's own code and which are a model.

mod approve;
mod context;
mod decommission;
mod executor;
pub(super) mod hooks;
mod host;
mod isolation;
mod leader_loop;
pub(super) mod operators;
mod poller;
mod process;
mod session_sync;
mod status_reports;

pub(super) use context::ModelContext;
pub(super) use process::ProcessState;

use allclear_core::procedure::reconciliation::reconcile_journal;

/// Starts all tasks of a replica.
pub(super) fn start(here: &ModelContext) {
    let tasks = &here.world.tasks;
    tasks.spawn(here.me, poller::poll(here.clone()));
    tasks.spawn(here.me, leader_loop::drive(here.clone()));
    tasks.spawn(here.me, decommission::run(here.clone()));
    tasks.spawn(here.me, executor::run(here.clone()));
    tasks.spawn(here.me, isolation::run(here.clone()));
    let reconciler = here.clone();
    tasks.spawn(here.me, async move { reconcile_journal(&reconciler).await });
    tasks.spawn(here.me, session_sync::keep(here.clone()));
    tasks.spawn(here.me, status_reports::beat(here.clone()));
}
