//! One simulated replica around the core: the tasks of the server's `replica`, on virtual time. The README of the crate says what
//! of them is the program's own code and what is a model.

mod approve;
mod contacts;
mod departures;
mod driver;
mod executor;
mod here;
pub(super) mod hooks;
mod host;
mod isolation;
mod observer;
pub(super) mod operators;
mod presences;
mod process;

pub(super) use here::ModelContext;
pub(super) use process::ProcessState;

use allclear_core::procedure::reconciliation::reconcile_journal;

/// Begins all that a replica does.
pub(super) fn start(here: &ModelContext) {
    let tasks = &here.world.tasks;
    tasks.spawn(here.me, observer::poll(here.clone()));
    tasks.spawn(here.me, driver::drive(here.clone()));
    tasks.spawn(here.me, departures::run(here.clone()));
    tasks.spawn(here.me, executor::run(here.clone()));
    tasks.spawn(here.me, isolation::run(here.clone()));
    let reconciler = here.clone();
    tasks.spawn(here.me, async move { reconcile_journal(&reconciler).await });
    tasks.spawn(here.me, presences::keep(here.clone()));
    tasks.spawn(here.me, contacts::beat(here.clone()));
}
