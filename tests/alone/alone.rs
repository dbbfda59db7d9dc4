//! The isolated replica, and the quorum which yields to the isolated replica (`SPEC.md` 7), by the deciding code:
//! the model calls the production `apply`, `plan`, `assignments`, `event_to_approve`, `unrecorded` and `Observation`,
//! and acts around these functions as `src/core/procedure/{approval,isolated_approval,reconciliation}.rs` and
//! `src/server/replica/journal.rs` do.
//!
//! Bounds: one or two events, each for another member of a group which may lose one member; two or three replicas;
//! moments of half `takeover_after`; faults of each kind. Assumptions: consensus (one log; only a leader with a quorum
//! appends; a replica which is cut off has contact with no other replica); a leader's plan runs in every moment, so a
//! silent voter is suspect before the voter acts; documents agree by the end of a moment; all clocks run alike.
//!
//! Replicas in contact act at once, in one order: reports, assignments, the plan; the beginning of a leadership and
//! reconciliations come anywhere between. Posts, reconciliations and claims which take longer are faults (`delays`),
//! and so is an entry appended while the link of a pair is cut. Left out: restoring, lost entries of a leader of three,
//! stalled channels, membership changes, and peers which reach each other without following a leader for other reasons
//! than a pending election.

#![allow(clippy::panic, reason = "a test fails by panicking")]

extern crate allclear_proof as allclear;

mod action;
mod effect;
mod essence;
mod mutant;
mod view;
mod world;

use std::time::Duration;

use allclear::core::model::claim::{PostOutcome, Reason};
use allclear::core::model::document::Source;
use allclear::core::model::event::Event;
use stateright::{Checker, Expectation, HasDiscoveries, Model, Property};

use action::Action;
use mutant::Mutant;
use world::{Breach, Cluster, Faults, World};

const S2: &str = "S2 a quorum posts the claim in force, a lone secondary what its journal says, each once";
const S4: &str = "S4 never two events of the group approved at once, nor claimed";
const S5: &str =
    "S5 alone, only what a user asked for of the lost VM, and nothing that is held or while a hook may run";
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
            Property::sometimes("approved by a lone secondary", |cluster: &Cluster, world: &World| {
                cluster.replicas > 2
                    || world.clouds.iter().any(|cloud| cloud.approved)
                        && !events(world).any(|event| !event.claims.is_empty())
            }),
            Property::sometimes(
                "its journal is in the log and everybody is cleared",
                |cluster: &Cluster, world: &World| cluster.replicas > 2 || is_merged(world),
            ),
            Property::sometimes("a quorum claims another event after that", |cluster: &Cluster, world: &World| {
                let claimed = |event: &Event| event.isolated_approvals.is_empty() && !event.claims.is_empty();
                cluster.replicas > 2 || cluster.events.len() == 1 || (is_merged(world) && events(world).any(claimed))
            }),
            Property::sometimes("a quorum repeats what was decided alone", |cluster: &Cluster, world: &World| {
                // The quorum waits for a moment before the repeated approval.
                (cluster.faults.delays == 0 || cluster.moments < 4)
                    || events(world)
                        .flat_map(|event| &event.claims)
                        .any(|claim| claim.reason == Reason::IsolatedApproval)
            }),
            Property::sometimes("a second takeover", |cluster: &Cluster, world: &World| {
                cluster.faults.losses == 0 || world.replicas.iter().any(|local| local.journal.len() > 1)
            }),
        ]
    }
}

fn events(world: &World) -> impl Iterator<Item = &Event> {
    world.log.events()
}

fn is_merged(world: &World) -> bool {
    let accepted = |event: &Event| event.isolated_approvals.iter().any(|it| it.outcome_is(&PostOutcome::Accepted));
    events(world).any(accepted) && world.suspects().is_empty()
}

fn is_settled(world: &World) -> bool {
    let told = world.replicas.iter().all(|local| local.journal.is_empty());
    world.log.open.is_empty() && world.suspects().is_empty() && told
}

const PLATFORM_AND_USER: [Source; 2] = [Source::Platform, Source::User];
/// The user's event is for the VM of the first leader.
const USER_AND_PLATFORM: [Source; 2] = [Source::User, Source::Platform];

fn pair(events: &[Source], moments: u8, faults: Faults) -> Cluster {
    Cluster {
        replicas: 2,
        events: events.to_vec(),
        has_hook: false,
        budget: Duration::ZERO,
        holds: 0,
        moments,
        faults,
        mutant: Mutant::None,
    }
}

const CUT: Faults = Faults { cuts: 1, crashes: 0, elections: 0, losses: 0, delays: 0, lates: 0, cancels: 0 };

/// Far beyond the duration of any of these explorations.
const LIMIT: Duration = Duration::from_mins(5);

fn check(cluster: &Cluster) {
    check_within(LIMIT, cluster);
}

fn check_within(limit: Duration, cluster: &Cluster) {
    let begun = std::time::Instant::now();
    let checker = cluster.clone().checker().threads(2).timeout(limit).spawn_bfs().join();
    println!("{} states, depth {}, {:?}", checker.unique_state_count(), checker.max_depth(), begun.elapsed());
    let is_whole = begun.elapsed() < limit;
    for (name, path) in checker.discoveries() {
        if cluster.properties().iter().any(|it| it.name == name && it.expectation == Expectation::Always) {
            let last = path.last_state().clone();
            path.into_actions().iter().for_each(|action| println!("  {action:?}"));
            panic!("{name}: {last:#?}");
        }
    }
    assert!(is_whole, "not finished");
    checker.assert_properties();
}

fn expect(mutant: Mutant, property: &'static str, cluster: Cluster) {
    let begun = std::time::Instant::now();
    let checker = Cluster { mutant, ..cluster }.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.timeout(LIMIT).spawn_dfs().join();
    let (found, states) = (checker.discoveries(), checker.unique_state_count());
    println!("{mutant:?}: {states} states, {:?}", begun.elapsed());
    assert!(found.contains_key(property), "{mutant:?} did not break '{property}' but {:?}", found.keys());
}

#[test]
fn every_mutant_is_seen() {
    let cut = |moments| pair(&PLATFORM_AND_USER, moments, Faults { delays: 1, ..CUT });
    let led_by_both = |moments| pair(&PLATFORM_AND_USER, moments, Faults { elections: 1, delays: 1, ..CUT });
    let with_hook = Cluster { has_hook: true, budget: Duration::from_secs(15), ..pair(&[Source::User], 4, CUT) };
    let three = |faults| Cluster { replicas: 3, ..pair(&PLATFORM_AND_USER, 3, faults) };
    let table = [
        (Mutant::LeadSparesLeader, S4, cut(3)),
        (Mutant::ReachabilityClears, S4, led_by_both(4)),
        (Mutant::SuspectsTakeNothing, S4, led_by_both(4)),
        (Mutant::AccountsSkipUnknown, S4, cut(3)),
        (Mutant::SuspectClaims, OWN, cut(3)),
        (Mutant::OthersIgnored, S4, cut(3)),
        (Mutant::AnySource, S5, cut(3)),
        (Mutant::TakesItself, S5, cut(3)),
        (Mutant::TailIgnored, S5, with_hook),
        (Mutant::JournalLost, S4, pair(&PLATFORM_AND_USER, 3, Faults { delays: 1, crashes: 1, ..CUT })),
        (Mutant::BegunInContact, S4, cut(3)),
        (Mutant::OldAccountsClear, S4, pair(&PLATFORM_AND_USER, 3, Faults { delays: 2, ..CUT })),
        (Mutant::MinorityActs, S5, three(CUT)),
        (Mutant::HoldIgnored, S5, held()),
    ];
    for (mutant, property, cluster) in table {
        expect(mutant, property, cluster);
    }
}

/// `ALLCLEAR_ALONE="replicas=3 moments=5 cuts=2 …"` explores a cluster other than the clusters above.
#[test]
#[ignore = "explores for as long as it takes"]
fn whatever_is_asked_for() {
    let asked = std::env::var("ALLCLEAR_ALONE").unwrap_or_default();
    let number = |key: &str, or: u8| {
        let found = asked.split_whitespace().filter_map(|word| word.split_once('=')).find(|(name, _)| *name == key);
        found.map_or(or, |(_, number)| number.parse().unwrap_or_default())
    };
    let faults = Faults {
        cuts: number("cuts", 1),
        crashes: number("crashes", 0),
        elections: number("elections", 0),
        losses: number("losses", 0),
        delays: number("delays", 0),
        lates: number("lates", 0),
        cancels: number("cancels", 0),
    };
    let users = (0..number("users", 1)).map(|_| Source::User);
    let platforms = (0..number("platforms", 1)).map(|_| Source::Platform);
    let events: Vec<Source> = platforms.chain(users).collect();
    check_within(
        Duration::from_mins(number("minutes", 10).into()),
        &Cluster {
            replicas: number("replicas", 2).into(),
            has_hook: number("hooks", 0) > 0,
            budget: Duration::from_secs(number("budget", 0).into()),
            holds: number("holds", 0),
            ..pair(&events, number("moments", 4), faults)
        },
    );
}

#[test]
fn a_pair_whose_link_is_cut_keeps_its_promises() {
    check(&pair(&USER_AND_PLATFORM, 3, Faults { delays: 1, ..CUT }));
    check(&pair(&PLATFORM_AND_USER, 3, Faults { delays: 1, ..CUT }));
}

#[test]
fn a_pair_whose_leader_changes_keeps_its_promises() {
    check(&pair(&PLATFORM_AND_USER, 3, Faults { elections: 1, ..CUT }));
}

#[test]
fn a_pair_of_which_one_crashes_keeps_its_promises() {
    check(&pair(&PLATFORM_AND_USER, 3, Faults { cuts: 0, crashes: 1, ..CUT }));
}

#[test]
fn a_post_alone_that_fails_is_made_again() {
    check(&pair(&[Source::User], 4, Faults { delays: 1, losses: 1, ..CUT }));
}

#[test]
fn a_lone_secondary_waits_for_hooks_that_may_run() {
    let budget = Duration::from_secs(15);
    check(&Cluster { has_hook: true, budget, ..pair(&[Source::User], 6, CUT) });
}

/// The event is held before a quorum claims the event: a hook has to run first.
fn held() -> Cluster {
    let budget = Duration::from_secs(15);
    Cluster { has_hook: true, budget, holds: 1, ..pair(&[Source::User], 6, CUT) }
}

#[test]
fn a_lone_secondary_waits_for_the_end_of_a_hold_that_it_knows() {
    check(&held());
}

#[test]
fn a_minority_of_three_approves_nothing() {
    check(&Cluster { replicas: 3, ..pair(&PLATFORM_AND_USER, 3, CUT) });
}
