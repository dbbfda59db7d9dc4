//! Simulation: worlds on virtual time, made from a seed. Reads no clock, opens no socket, starts no thread.
//!
//! `cloud` is the platform by itself. `generate` makes a scenario from a seed and `run` executes the scenario: replicas
//! with the production core in a simulated shell over an abstract log, judged at every step. Equal scenarios give equal
//! runs, step for step.

#[macro_use]
mod mutation;

mod endpoint;
mod event_queue;
mod fault_execution;
mod faults;
mod generate;
mod network;
mod node_state;
mod oracle;
mod platform;
mod program;
mod raft_model;
mod replica_model;
mod scenario;
mod tasks;
mod verdict;
mod world;

pub use allclear_cloud as cloud;
pub use allclear_cloud::random;
pub use generate::generate;
pub use mutation::Mutation;
pub use program::Habits;
pub use scenario::{
    ConfigChange, Fault, FaultClass, FaultKind, Scenario, ScenarioAction, ScenarioRequest, ScenarioStep, TriggerPoint,
};
pub use verdict::{Breach, Property, RunVerdict, SimulationRun};

/// Runs one scenario to its end.
pub fn run(scenario: &Scenario, mutation: Mutation, is_traced: bool) -> SimulationRun {
    let world = world::World::new(scenario, mutation, is_traced);
    world.run();
    world.result()
}
