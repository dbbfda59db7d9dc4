//! The lone secondary and the quorum that makes room for it (`behaviour.md` 7), by the code that decides: the model
//! calls the production `apply`, `plan`, `errands`, `takeover` and `Observation`.
mod action;
mod effect;
mod essence;
mod mutant;
mod view;
mod world;

use std::time::Duration;

use allclear::machine::claim::{PostOutcome, Reason};
use allclear::machine::document::Source;
use allclear::machine::event::Event;
use stateright::{Checker, HasDiscoveries, Model, Property};

use action::Action;
use mutant::Mutant;
use world::{Breach, Cluster, Faults, Shown, World};

const S2: &str = "S2 a quorum posts the claim in force, a lone secondary what its journal says, each once";
const S4: &str = "S4 never two events of the group approved at once, nor claimed";
const S5: &str = "S5 alone, only what a user asked for, and nothing while a hook may run";
const OWN: &str = "a leader claims nothing before its own account";
const LIFE: &str = "nothing goes back, nothing recorded changes";
const TAKEN: &str = "what a leader plans on the current state is never refused";
const L1: &str = "L1 when nothing is left to happen, all is closed, told and cleared";

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
        Some(effect::take(self, world, action)).filter(|next| next != world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(S2, |_, world: &World| world.breach != Some(Breach::S2)),
            Property::always(S4, |_, world: &World| world.breach != Some(Breach::S4)),
            Property::always(S5, |_, world: &World| world.breach != Some(Breach::S5)),
            Property::always(OWN, |_, world: &World| world.breach != Some(Breach::Unaccounted)),
            Property::always(LIFE, |_, world: &World| world.breach != Some(Breach::Lifecycle)),
            Property::always(TAKEN, |_, world: &World| world.breach != Some(Breach::Stuck)),
            Property::always(L1, |cluster: &Cluster, world: &World| {
                world.breach.is_some() || is_settled(world) || !action::is_quiet(cluster, world)
            }),
            Property::sometimes("approved by a lone secondary", |_, world: &World| {
                world.clouds.iter().any(|cloud| cloud.approved) && !events(world).any(|event| !event.claims.is_empty())
            }),
            Property::sometimes("its journal is in the log and everybody is cleared", |_, world: &World| {
                is_merged(world)
            }),
            Property::sometimes("a quorum claims another event after that", |cluster: &Cluster, world: &World| {
                let claimed = |event: &Event| event.takeovers.is_empty() && !event.claims.is_empty();
                cluster.events.len() == 1 || (is_merged(world) && events(world).any(claimed))
            }),
            Property::sometimes("a quorum repeats what was decided alone", |_, world: &World| {
                events(world).flat_map(|event| &event.claims).any(|claim| claim.reason == Reason::Takeover)
            }),
            Property::sometimes("a second takeover", |_, world: &World| {
                world.replicas.iter().any(|local| local.journal.len() > 1)
            }),
        ]
    }
}

fn events(world: &World) -> impl Iterator<Item = &Event> {
    world.log.open.values().chain(&world.log.history)
}

fn is_merged(world: &World) -> bool {
    let accepted = |event: &Event| event.takeovers.iter().any(|it| it.outcome_is(&PostOutcome::Accepted));
    events(world).any(accepted) && world.suspects().is_empty()
}

fn is_settled(world: &World) -> bool {
    let told = world.replicas.iter().all(|local| local.journal.is_empty());
    world.log.open.is_empty() && world.suspects().is_empty() && told
}

const USER_AND_PLATFORM: [Source; 2] = [Source::User, Source::Platform];
const USERS: [Source; 2] = [Source::User, Source::User];

fn pair(events: &[Source], moments: u8, faults: Faults) -> Cluster {
    Cluster {
        replicas: 2,
        events: events.to_vec(),
        has_hook: false,
        budget: Duration::ZERO,
        moments,
        faults,
        mutant: Mutant::None,
    }
}

const CUT: Faults = Faults { cuts: 1, crashes: 0, elections: 0, losses: 0, delays: 0, cancels: 0 };

fn check(cluster: Cluster) {
    let begun = std::time::Instant::now();
    let checker = cluster.checker().threads(2).timeout(Duration::from_secs(90)).spawn_bfs().join();
    println!("{} states, depth {}, {:?}", checker.unique_state_count(), checker.max_depth(), begun.elapsed());
    checker.assert_properties();
}

#[test]
fn a_pair_keeps_its_promises() {
    check(pair(&USER_AND_PLATFORM, 4, Faults { delays: 1, ..CUT }));
}
