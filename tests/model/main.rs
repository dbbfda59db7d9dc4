//! Every reachable state of a bounded cluster keeps the safety properties (`behaviour.md` 13).
//!
//! The model calls the production `apply`, `plan`, `errands` and `Observation`. What is bounded: one event, or two of
//! one group, that appear once and are gone for good; two or three replicas; one workload on the affected VM; time moves between the
//! moments in `world`; as many faults as each cluster says. What is assumed: the log itself (consensus; an isolated
//! replica knows nothing newer and commits nothing), and that hooks end at their deadline. Metadata channels do not
//! stall and documents are read well: that belongs to `observe` and the scripts. Endpoints are read in one order,
//! and so are errands; only a fault changes that. A closed event is followed no further, late proposals excepted.
//!
//! A fault is a crash, an isolation, an election, a lost reply, a proposal that arrives once more and late, or that
//! time passes while somebody had something to do. Without one, time moves on only when all have done what they can.

mod action;
mod effect;
mod mutant;
mod world;

use std::time::Duration;

use allclear::machine::attempt::{Attempt, Outcome};
use allclear::machine::claim::Reason;
use allclear::machine::document::Source;
use allclear::machine::event::{Ending, Event, StartCause};
use allclear::machine::id::{GroupName, WorkloadName};
use allclear::machine::lifecycle::Stage;
use allclear::machine::workload::{Hook, Intent, OnAbsent, OnFailure, Origin, Phase, RunsOn, Workload};
use stateright::{Checker, HasDiscoveries, Model, Property};

use action::Action;
use mutant::Mutant;
use world::{Breach, Cluster, Trouble, World};

const S1: &str = "S1 nothing is claimed before it is prepared";
const S2: &str = "S2 one post without faults, and every post repeats a committed claim";
const S3: &str = "S3 nothing is posted or approved that is not the claim in force";
const S4: &str = "S4 no group loses more than its disruption budget allows";
const S7: &str = "S7 no attempt is run twice";
const S8: &str = "S8 what was touched is put back, and nothing else, when the event is over";
const WISH: &str = "nothing is claimed against an operator's wish, nor approved by one who has not seen it";
const LIFE: &str = "nothing goes back, nothing recorded changes";
const DRILL: &str = "a drill is never approved, and gives way to what is real";
const L1: &str = "L1 when nothing is left to happen, the event is closed";

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
        fn keeps(world: &World, breach: Breach) -> bool {
            world.breach != Some(breach)
        }
        vec![
            Property::always(S1, |_, world| keeps(world, Breach::Unprepared)),
            Property::always(S2, |_, world| keeps(world, Breach::PostedTwice)),
            Property::always(S3, |_, world| keeps(world, Breach::Uncommitted)),
            Property::always(S4, |_, world| keeps(world, Breach::BudgetExceeded)),
            Property::always(S7, |_, world| keeps(world, Breach::RunTwice)),
            Property::always(S8, |cluster: &Cluster, world: &World| {
                let put_back = |event: &Event| is_put_back(cluster, event);
                keeps(world, Breach::RestoredWrongly) && world.log.history.iter().all(put_back)
            }),
            Property::always(WISH, |_, world| keeps(world, Breach::AgainstWish)),
            Property::always(LIFE, |_, world| keeps(world, Breach::Lifecycle)),
            Property::always(DRILL, |_, world| keeps(world, Breach::Drill)),
            Property::always(L1, |cluster: &Cluster, world: &World| {
                world.log.open.is_empty() || world.breach.is_some() || !action::is_quiet(cluster, world)
            }),
            Property::sometimes("approved and started", |_, world| {
                closed(world, Ending::Completed, StartCause::Approved)
            }),
            Property::sometimes("started because its notice ended", |cluster: &Cluster, world| {
                cluster.workload.is_none() || closed(world, Ending::Completed, StartCause::NoticeExpired)
            }),
            Property::sometimes("cancelled", |_, world: &World| {
                world.log.history.iter().any(|event| event.ending == Some(Ending::Cancelled))
            }),
            Property::sometimes("put back", |cluster: &Cluster, world: &World| {
                let restored =
                    |event: &Event| event.attempts.iter().any(|attempt| attempt.hook.phase == Phase::Restore);
                !is_restorable(cluster) || world.log.history.iter().any(restored)
            }),
            Property::sometimes("taken back", |cluster: &Cluster, world: &World| {
                let can = |workload: &Workload| workload.hooks.iter().any(|hook| hook.can_undo);
                let undone = |event: &Event| event.attempts.iter().any(|attempt| attempt.intent == Intent::Undo);
                !cluster.workload.as_ref().is_some_and(can) || world.log.history.iter().any(undone)
            }),
            Property::sometimes("held by another event", |cluster: &Cluster, world: &World| {
                let stages: Vec<Stage> = world.log.open.values().map(Event::stage).collect();
                cluster.events == 1 || (stages.contains(&Stage::Approved) && action::is_held(world))
            }),
            Property::sometimes("both approved", |cluster: &Cluster, world: &World| {
                let approved = |event: &&Event| event.is_accepted();
                let events = world.log.open.values().chain(&world.log.history);
                events.filter(approved).count() == cluster.events
            }),
            Property::sometimes("held and then claimed", |cluster: &Cluster, world: &World| {
                let held = |event: &Event| !event.wishes.is_empty() && event.claims.len() == 1;
                cluster.wishes == 0 || world.log.open.values().any(held)
            }),
            Property::sometimes("approved by an operator", |cluster: &Cluster, world: &World| {
                let overruled = |event: &Event| event.claims.iter().any(|claim| claim.reason == Reason::Operator);
                cluster.wishes == 0 || world.log.open.values().any(overruled)
            }),
            Property::sometimes("claimed again", |cluster: &Cluster, world: &World| {
                let claims = |event: &Event| event.claims.len() > 1;
                cluster.faults == 0 || world.log.open.values().any(claims)
            }),
        ]
    }
}

fn closed(world: &World, ending: Ending, cause: StartCause) -> bool {
    world.log.history.iter().any(|event| event.ending == Some(ending) && event.start_cause() == Some(cause))
}

fn is_restorable(cluster: &Cluster) -> bool {
    cluster.workload.as_ref().is_some_and(|workload| workload.hooks_of(Phase::Restore).next().is_some())
}

/// A closed event leaves no workload behind that it touched, nor anything that failed and could be taken back, unless
/// its time was up.
fn is_put_back(cluster: &Cluster, event: &Event) -> bool {
    let touched = event.attempts.iter().any(|attempt| attempt.hook.phase < Phase::Restore);
    let restored = event.attempts.iter().any(|attempt| attempt.hook.phase == Phase::Restore);
    let took = event.entered_at(Stage::Closed).zip(event.over_at()).map(|(closed, over)| closed.since(over));
    let given_up = took.is_some_and(|took| took >= Duration::from_mins(10));
    let is_left = |attempt: &Attempt| {
        let failed =
            matches!(attempt.outcome, Some((Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Cancelled, _)));
        let mut others = event.attempts.iter().filter(|other| other.hook == attempt.hook);
        failed && attempt.intent == Intent::Run && !others.any(|other| other.intent == Intent::Undo)
    };
    let can_undo = |attempt: &&Attempt| {
        let hook = cluster.workload.as_ref().and_then(|workload| workload.hook(attempt.hook));
        hook.is_some_and(|hook| hook.can_undo)
    };
    let is_left = event.attempts.iter().filter(can_undo).any(is_left);
    !is_restorable(cluster) || (touched == restored && !is_left) || (touched && given_up)
}

fn hook(phase: Phase, on_failure: OnFailure) -> Hook {
    Hook {
        phase,
        timeout: Duration::from_mins(1),
        attempts: 1,
        on_failure,
        runs_on: RunsOn::Affected,
        can_confirm: false,
        can_undo: false,
        can_dry_run: false,
        min_freeze: None,
        fresh_for: None,
        optional_if_short: false,
        worst: None,
        exclusive: false,
        kinds: Vec::new(),
    }
}

fn workload(hooks: Vec<Hook>) -> Workload {
    Workload {
        name: WorkloadName("w".into()),
        group: None,
        after: Vec::new(),
        hooks,
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    }
}

/// A drain that must succeed, a shutdown that need not, and a restore.
fn two_steps() -> Workload {
    workload(vec![
        hook(Phase::Drain, OnFailure::Hold),
        hook(Phase::Shutdown, OnFailure::Continue),
        hook(Phase::Restore, OnFailure::Hold),
    ])
}

/// A failover on a peer that can be asked whether it is done.
fn failover() -> Workload {
    let failover = Hook { can_confirm: true, runs_on: RunsOn::Any, ..hook(Phase::Failover, OnFailure::Hold) };
    let group = Some(GroupName("g".into()));
    Workload { group, ..workload(vec![failover, hook(Phase::Restore, OnFailure::Hold)]) }
}

/// One step that must succeed.
fn one_step() -> Workload {
    workload(vec![hook(Phase::Drain, OnFailure::Hold), hook(Phase::Restore, OnFailure::Hold)])
}

/// A failover and a drain that can be taken back.
fn reversible() -> Workload {
    let reversible = |phase| Hook { can_undo: true, ..hook(phase, OnFailure::Hold) };
    workload(vec![reversible(Phase::Failover), reversible(Phase::Drain), hook(Phase::Restore, OnFailure::Hold)])
}

/// One step of which at most one runs in the cluster.
fn one_at_a_time() -> Workload {
    workload(vec![Hook { exclusive: true, ..hook(Phase::Drain, OnFailure::Hold) }])
}

fn cluster(replicas: usize, source: Source, workload: Option<Workload>) -> Cluster {
    let (trouble, mutant) = (Trouble::Losses, Mutant::None);
    Cluster { replicas, events: 1, source, workload, wishes: 0, faults: 0, trouble, drill: false, mutant }
}

/// A second event, for another member of the same group.
fn two_events(cluster: Cluster) -> Cluster {
    let group = Some(GroupName("g".into()));
    let workload = cluster.workload.unwrap_or_else(|| workload(Vec::new()));
    Cluster { events: 2, workload: Some(Workload { group, ..workload }), ..cluster }
}

/// With a drill for the VM of the first event.
fn drilling(cluster: Cluster) -> Cluster {
    Cluster { drill: true, ..cluster }
}

fn with(faults: u8, trouble: Trouble, cluster: Cluster) -> Cluster {
    Cluster { faults, trouble, ..cluster }
}

fn check(cluster: Cluster) {
    let begun = std::time::Instant::now();
    let checker = cluster.checker().threads(2).spawn_bfs().join();
    println!("{} states, depth {}, {:?}", checker.unique_state_count(), checker.max_depth(), begun.elapsed());
    checker.assert_properties();
}

fn expect(mutant: Mutant, property: &'static str, cluster: Cluster) {
    let checker = Cluster { mutant, ..cluster }.checker().threads(2).finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    let found = checker.discoveries();
    assert!(found.contains_key(property), "{mutant:?} did not break '{property}' but {:?}", found.keys());
}

#[test]
fn a_user_initiated_event_is_safe_without_faults() {
    check(cluster(3, Source::User, Some(two_steps())));
}

#[test]
fn an_event_of_the_platform_is_safe_without_faults() {
    check(cluster(3, Source::Platform, Some(two_steps())));
}

#[test]
fn a_replica_is_lost_while_a_hook_runs() {
    check(with(1, Trouble::Losses, cluster(2, Source::User, Some(one_step()))));
}

#[test]
fn a_replica_is_lost_while_a_failover_runs_that_can_be_asked() {
    check(with(1, Trouble::Losses, cluster(2, Source::Platform, Some(failover()))));
}

#[test]
fn a_replica_is_lost_while_an_approval_is_posted() {
    check(with(1, Trouble::Losses, cluster(3, Source::User, None)));
}

#[test]
fn twice_something_is_lost_while_an_approval_is_posted() {
    check(with(2, Trouble::Losses, cluster(2, Source::User, None)));
}

#[test]
fn a_replica_of_three_is_lost_while_two_hooks_run() {
    check(with(1, Trouble::Losses, cluster(3, Source::User, Some(two_steps()))));
}

#[test]
fn a_replica_of_three_is_lost_while_a_failover_runs_that_can_be_asked() {
    check(with(1, Trouble::Losses, cluster(3, Source::User, Some(failover()))));
}

#[test]
fn a_proposal_arrives_once_more_and_late() {
    check(with(1, Trouble::Delays, cluster(2, Source::Platform, Some(one_step()))));
    check(with(1, Trouble::Delays, cluster(3, Source::User, None)));
}

#[test]
fn a_leader_proposes_anything_at_all() {
    for source in [Source::Platform, Source::User] {
        check(with(1, Trouble::Rogues, cluster(2, source, Some(one_step()))));
    }
}

#[test]
fn a_leader_proposes_anything_at_all_twice() {
    check(with(2, Trouble::Rogues, cluster(2, Source::User, Some(failover()))));
}

#[test]
fn a_proposal_for_a_failover_arrives_once_more_and_late() {
    check(with(1, Trouble::Delays, cluster(3, Source::User, Some(failover()))));
}

#[test]
fn what_failed_is_taken_back_though_a_replica_is_lost() {
    check(with(1, Trouble::Losses, cluster(2, Source::Platform, Some(reversible()))));
}

#[test]
fn a_leader_proposes_to_take_back_anything_at_all() {
    check(with(1, Trouble::Rogues, cluster(2, Source::User, Some(reversible()))));
}

#[test]
fn two_events_of_a_group_come_one_after_the_other() {
    check(two_events(cluster(3, Source::Platform, None)));
}

#[test]
fn a_leader_proposes_anything_at_all_for_two_events_of_a_group() {
    check(with(1, Trouble::Rogues, two_events(cluster(2, Source::User, None))));
}

/// Operators ask for something this often, at any moment.
fn asked(wishes: u8, cluster: Cluster) -> Cluster {
    Cluster { wishes, ..cluster }
}

#[test]
fn operators_ask_for_anything_at_all() {
    check(asked(2, cluster(2, Source::User, Some(one_step()))));
    check(asked(1, two_events(cluster(2, Source::Platform, None))));
}

#[test]
#[ignore = "takes minutes"]
fn operators_ask_for_anything_at_all_beside_two_hooks_two_events_or_a_leader_gone_mad() {
    check(asked(2, cluster(2, Source::User, Some(two_steps()))));
    check(asked(2, two_events(cluster(2, Source::Platform, None))));
    check(asked(1, with(1, Trouble::Rogues, cluster(2, Source::User, Some(one_step())))));
}

#[test]
fn an_event_comes_while_a_drill_is_under_way() {
    check(drilling(cluster(2, Source::User, Some(one_step()))));
}

#[test]
#[ignore = "large"]
fn an_event_of_the_platform_comes_while_a_drill_is_under_way() {
    check(drilling(cluster(2, Source::Platform, Some(one_step()))));
}

#[test]
#[ignore = "large"]
fn a_replica_is_lost_while_an_event_comes_upon_a_drill() {
    check(with(1, Trouble::Losses, drilling(cluster(2, Source::User, Some(one_step())))));
}

#[test]
fn every_mutant_is_seen() {
    let calm = || cluster(2, Source::User, Some(one_step()));
    let lossy = |source, workload| with(1, Trouble::Losses, cluster(2, source, workload));
    let rogue = || with(1, Trouble::Rogues, cluster(2, Source::User, Some(one_step())));
    expect(Mutant::ClaimUnguarded, S1, rogue());
    expect(Mutant::ClaimTwice, S2, rogue());
    expect(Mutant::PostUnconfirmed, S3, lossy(Source::User, None));
    expect(Mutant::ApproveRefused, S3, lossy(Source::User, None));
    expect(Mutant::Rewrite, LIFE, lossy(Source::User, Some(one_step())));
    expect(Mutant::ClaimBeyondBudget, S4, with(1, Trouble::Rogues, two_events(cluster(2, Source::User, None))));
    expect(Mutant::RunAgain, S7, lossy(Source::User, Some(one_step())));
    let exclusive = || two_events(cluster(2, Source::User, Some(one_at_a_time())));
    expect(Mutant::RunBeside, S7, with(1, Trouble::Rogues, exclusive()));
    expect(Mutant::RestoreEarly, S8, rogue());
    expect(Mutant::UndoDone, S8, with(1, Trouble::Rogues, cluster(2, Source::User, Some(reversible()))));
    expect(Mutant::ClaimAgainstWish, WISH, asked(1, rogue()));
    expect(Mutant::ApproveUnseen, WISH, asked(1, calm()));
    expect(Mutant::ForgetRestoring, S8, calm());
    expect(Mutant::GoBack, LIFE, calm());
    expect(Mutant::ClaimDrill, S1, drilling(calm()));
    expect(Mutant::StartDrill, DRILL, drilling(calm()));
    expect(Mutant::DrillOn, DRILL, drilling(calm()));
    expect(Mutant::NeverDiscount, L1, lossy(Source::User, Some(one_step())));
}
