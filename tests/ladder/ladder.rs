//! The lone secondary and the quorum that makes room for it (`behaviour.md` 7), on an abstract core: a committed log,
//! replicas with journals, isolations, crashes, elections, removals, holds, `Lead`, suspicion and its numbers.
//!
//! With all rules S2, S4 and S5 hold in every reachable state of the bounded clusters below. Each rule that is left
//! out brings a counterexample: `rule.rs` lists them as data, with the property that breaks, and says of two rules why
//! they have none.
//!
//! What is assumed: consensus (one log; only a leader with a quorum appends to it, but a leader that nobody hears may
//! append a claim that is committed later), and what `action::may_wait` and `action::in_the_cloud` say of clocks and
//! documents. What is left out: the order of candidates (here each waits as long as the first, which allows more),
//! approvers that fail, voters that are added, links that work in one direction. Who is cut off is cut off from
//! everybody.

extern crate allclear_proof as allclear;

mod action;
mod alone;
mod cluster;
mod effect;
mod property;
mod rule;
mod set;
mod symmetry;
mod world;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use stateright::{Checker, HasDiscoveries, Model, Property};

use action::Action;
use cluster::{Bounds, Cluster, NONE, PLATFORM, PLATFORM_WITH_HOOK, USER, USER_WITH_HOOK};
use property::{AFTERWARDS, ALONE, KEPT, MISSED, QUORUM, TWICE};
use rule::{Needed, SPARE};
use world::World;

impl Model for Cluster {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut world = World::new(self);
        for action in self.after {
            assert!(
                action::possible(self, &world).contains(action),
                "{action:?} is not possible after what was before"
            );
            world = effect::take(self, &world, *action);
        }
        vec![world]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.breach.is_none() {
            actions.extend(action::possible(self, world));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let next = effect::take(self, world, action);
        let next = if self.is_symmetric { symmetry::representative(&next) } else { next };
        (next != *world).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        property::all()
    }
}

/// Every reachable state, or as far as the time goes.
fn search(cluster: Cluster, limit: Duration) {
    let begun = Instant::now();
    let checker = cluster.checker().threads(2).timeout(limit).spawn_bfs().join();
    let took = begun.elapsed();
    let is_whole = if took < limit { "all" } else { "the first" };
    let (states, depth) = (checker.unique_state_count(), checker.max_depth());
    println!("{is_whole} {states} states, depth {depth}, {took:?}: {cluster:?}");
    assert!(states > 100, "an empty model keeps every promise");
    for property in KEPT {
        checker.assert_no_discovery(property);
    }
}

const FOR_LONG: Duration = Duration::from_hours(1);

const fn cuts(cuts: u8) -> Bounds {
    Bounds { cuts, ..NONE }
}

#[test]
fn a_pair_keeps_its_promises() {
    let appends = Bounds { appends: 1, ..cuts(1) };
    search(Cluster::new(2, &[USER, PLATFORM], appends).symmetric(), FOR_LONG);
    search(Cluster::new(2, &[USER, PLATFORM], cuts(1)).with_differing_documents().symmetric(), FOR_LONG);
    search(Cluster::new(2, &[USER, USER], cuts(1)).symmetric(), FOR_LONG);
    search(Cluster::new(2, &[USER, PLATFORM_WITH_HOOK], cuts(1)).symmetric(), FOR_LONG);
    search(Cluster::new(2, &[USER_WITH_HOOK], Bounds { holds: 1, ..cuts(1) }).symmetric(), FOR_LONG);
}

#[test]
fn three_keep_their_promises() {
    search(Cluster::new(3, &[USER_WITH_HOOK], Bounds { holds: 1, ..cuts(1) }).symmetric(), FOR_LONG);
}

/// More than a suite has time for: only with `ALLCLEAR_LADDER=large`, better with `--release`.
#[test]
fn larger_clusters_keep_their_promises() {
    if std::env::var("ALLCLEAR_LADDER").as_deref() != Ok("large") {
        return;
    }
    let limit = Duration::from_mins(5);
    let pairs = [
        Cluster::new(2, &[USER, USER], Bounds { elections: 1, ..cuts(1) }),
        Cluster::new(2, &[USER_WITH_HOOK], Bounds { holds: 1, crashes: 1, ..cuts(1) }),
        Cluster::new(2, &[USER, PLATFORM], Bounds { elections: 1, ..cuts(2) }),
        Cluster::new(2, &[USER, PLATFORM], cuts(2)).with_differing_documents(),
        Cluster::new(2, &[USER, PLATFORM], Bounds { crashes: 1, ..cuts(1) }),
        Cluster::new(2, &[USER_WITH_HOOK, PLATFORM_WITH_HOOK], Bounds { holds: 1, ..cuts(1) }),
        Cluster::new(2, &[USER, USER, PLATFORM], cuts(1)),
    ];
    let threes = [
        Cluster::new(3, &[USER, PLATFORM], cuts(1)),
        Cluster::new(3, &[USER, PLATFORM], Bounds { removals: 1, ..cuts(1) }),
        Cluster::new(3, &[USER, PLATFORM], Bounds { appends: 1, ..cuts(1) }),
        Cluster::new(3, &[USER, PLATFORM_WITH_HOOK], cuts(1)),
        Cluster::new(3, &[USER, PLATFORM], Bounds { elections: 1, ..cuts(1) }),
        Cluster::new(3, &[USER, PLATFORM], cuts(1)).with_differing_documents(),
        Cluster::new(3, &[USER, PLATFORM], cuts(2)),
    ];
    let late = Bounds { appends: 1, elections: 1, ..cuts(1) };
    let spare = SPARE.into_iter().map(|rule| Cluster::new(2, &[USER, PLATFORM], late).left_out(rule));
    for cluster in spare.chain(pairs).chain(threes) {
        search(cluster.symmetric(), limit);
    }
}

#[test]
fn every_rule_is_needed() {
    for Needed { rule, breach, cluster } in rule::all_needed() {
        let begun = Instant::now();
        let property = property::name(breach);
        let only = HasDiscoveries::AnyOf(BTreeSet::from([property]));
        let checker = cluster.checker().threads(2).timeout(FOR_LONG).finish_when(only).spawn_dfs().join();
        let states = checker.unique_state_count();
        let found = checker.discovery(property);
        let steps = found.unwrap_or_else(|| panic!("{rule:?}: no counterexample in {states} states")).into_actions();
        let (count, took) = (cluster.after.len() + steps.len(), begun.elapsed());
        println!("without {rule:?} {breach:?} breaks in {count} steps, {states} states, {took:?}: {steps:?}");
    }
}

fn reaches(cluster: Cluster, properties: &[&'static str]) {
    let all = HasDiscoveries::AllOf(properties.iter().copied().collect());
    let checker = cluster.symmetric().checker().threads(2).finish_when(all).spawn_bfs().join();
    for property in properties {
        checker.assert_any_discovery(property);
    }
}

#[test]
fn what_was_done_alone_is_taken_in_and_the_quorum_goes_on() {
    reaches(Cluster::new(2, &[USER, PLATFORM], cuts(1)), &[ALONE, QUORUM, TWICE, AFTERWARDS]);
}

#[test]
fn one_of_three_acts_when_the_time_of_the_quorum_is_over() {
    reaches(Cluster::new(3, &[USER_WITH_HOOK], cuts(1)), &[ALONE]);
}

/// That it is kept where all have acknowledged it is part of S5, and of the searches above.
#[test]
fn a_hold_that_a_voter_has_not_acknowledged_may_be_missed() {
    reaches(Cluster::new(3, &[USER], Bounds { holds: 1, ..cuts(1) }), &[MISSED]);
}
