//! The lone secondary and the quorum that makes room for it (`behaviour.md` 7), on an abstract core, before it is
//! built: a committed log, replicas with journals, isolations, crashes, elections, suspicion and its numbers.
//!
//! With all rules S2, S4 and S5 hold in every reachable state of the bounded clusters below. Each rule that is left
//! out brings a counterexample: `rule.rs` lists them as data, with the property that breaks.
//!
//! What is assumed: consensus (one log; only a leader with a quorum appends), documents that agree, and that a leader
//! suspects a silent voter before that voter acts. What is left out: the second waiting time (here a secondary never
//! waits longer than `takeover_after`, which allows more), restoring (an event that is gone takes nothing), holds,
//! approvers that fail, and the removal of voters. Who is cut off is cut off from everybody.

mod action;
mod rule;
mod world;

use stateright::{Checker, HasDiscoveries, Model, Property};

use action::Action;
use rule::NEEDED;
use world::{Breach, Cluster, Faults, Shown, Source, World};

const S2: &str = "S2 a quorum posts what it claimed, a lone secondary each event once";
const S4: &str = "S4 never two events of the group approved at once";
const S5: &str = "S5 alone, only user-initiated events without a hook that may run";

impl Model for Cluster {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.breach.is_none() {
            actions.extend(action::possible(self, world));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        Some(action::take(self, world, action)).filter(|next| next != world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(S2, |_, world: &World| world.breach != Some(Breach::S2)),
            Property::always(S4, |_, world: &World| world.breach != Some(Breach::S4)),
            Property::always(S5, |_, world: &World| world.breach != Some(Breach::S5)),
            Property::sometimes("approved by a lone secondary", |_, world: &World| {
                world.wire.is_empty() && world.cloud.contains(&Shown::Approved) && is_alone(world)
            }),
            Property::sometimes("approved by a quorum", |_, world: &World| {
                world.cloud.contains(&Shown::Approved) && world.nodes.iter().all(|node| node.sent.is_empty())
            }),
            Property::sometimes("a secondary's post is in the log and everybody is cleared", |_, world: &World| {
                world.log.events.iter().any(|known| known.is_journaled)
                    && world.log.suspicions.iter().all(|suspicion| !suspicion.stands)
            }),
        ]
    }
}

fn is_alone(world: &World) -> bool {
    world.log.events.iter().all(|known| known.approver.is_none())
        && world.nodes.iter().any(|node| !node.sent.is_empty())
}

fn name(breach: Breach) -> &'static str {
    match breach {
        Breach::S2 => S2,
        Breach::S4 => S4,
        Breach::S5 => S5,
    }
}

fn check(replicas: usize, events: &[Source], faults: Faults) {
    let cluster = Cluster { replicas, events: events.to_vec(), faults, without: None };
    let begun = std::time::Instant::now();
    let checker = cluster.checker().threads(2).spawn_bfs().join();
    println!("{} states, depth {}, {:?}", checker.unique_state_count(), checker.max_depth(), begun.elapsed());
    checker.assert_properties();
}

#[test]
fn a_pair_keeps_its_promises() {
    check(2, &[Source::User, Source::Platform], Faults { cuts: 1, crashes: 0, elections: 0 });
}

#[test]
fn every_rule_is_needed() {
    for (rule, breach, replicas, events, faults) in NEEDED {
        let cluster = Cluster { replicas, events: events.to_vec(), faults, without: Some(rule) };
        let begun = std::time::Instant::now();
        let checker = cluster
            .checker()
            .threads(2)
            .timeout(std::time::Duration::from_secs(20))
            .finish_when(HasDiscoveries::AnyFailures)
            .spawn_dfs()
            .join();
        let found = checker.discoveries();
        let states = checker.unique_state_count();
        let path = found.get(name(breach)).unwrap_or_else(|| panic!("{rule:?}: no counterexample in {states} states"));
        let steps = path.clone().into_actions();
        println!(
            "{rule:?} breaks {breach:?} in {} steps, {states} states, {:?}: {steps:?}",
            steps.len(),
            begun.elapsed()
        );
    }
}
