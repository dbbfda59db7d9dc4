//! What could happen: worlds on virtual time, made from a seed. Reads no clock, opens no socket, starts no thread.
//!
//! `cloud` is the platform by itself. `generate` makes a scenario from a seed and `run` plays it: replicas with the
//! production machine in a simulated shell over an abstract log, judged at every step. The same scenario gives the same
//! run, step for step.

#[macro_use]
mod mistake;

pub mod cloud;

mod agenda;
mod agreement;
mod endpoint;
mod faults;
mod generate;
mod happenings;
mod judge;
mod network;
mod node;
mod platform;
mod program;
pub mod random;
mod scenario;
mod shell;
mod tasks;
mod verdict;
mod world;

pub use generate::generate;
pub use mistake::Mistake;
pub use program::Habits;
pub use scenario::{Change, Fault, FaultKind, Happening, Moment, Scenario, Trouble, What, Wish};
pub use verdict::{Breach, Property, Run, Verdict};

/// Plays one scenario to its end.
pub fn run(scenario: &Scenario, mistake: Mistake, is_traced: bool) -> Run {
    let world = world::World::new(scenario, mistake, is_traced);
    world.run();
    world.result()
}
