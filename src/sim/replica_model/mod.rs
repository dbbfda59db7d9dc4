//! One replica around the machine, as `replica` is: the same tasks with the same contract, on virtual time. Nothing is
//! decided here.

mod account;
mod alone;
mod contacts;
mod departures;
mod driver;
mod errands;
mod here;
pub(super) mod hooks;
mod observer;
pub(super) mod operators;
mod post;
mod presences;
mod process;

pub(super) use here::ModelContext;
pub(super) use process::ProcessState;

/// Begins all that a replica does.
pub(super) fn start(here: &ModelContext) {
    let tasks = &here.world.tasks;
    tasks.spawn(here.me, observer::poll(here.clone()));
    tasks.spawn(here.me, driver::drive(here.clone()));
    tasks.spawn(here.me, departures::run(here.clone()));
    tasks.spawn(here.me, errands::run(here.clone()));
    tasks.spawn(here.me, alone::watch(here.clone()));
    tasks.spawn(here.me, account::give(here.clone()));
    tasks.spawn(here.me, presences::keep(here.clone()));
    tasks.spawn(here.me, contacts::beat(here.clone()));
}
