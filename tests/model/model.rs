//! Every reachable state of a bounded cluster keeps the safety properties (`SPEC.md` 18).
//!
//! The model calls the production `apply`, `plan`, `assignments` and `Observation`. Bounds: one event, or two of
//! one group or of one VM, which appear once and are gone permanently, unless `clusters::returning` lets them come
//! back; two or three replicas; one workload on the affected VM; time moves between the moments in `world`; the
//! faults are limited per cluster. Assumptions: the log itself (consensus; an isolated replica knows nothing newer
//! and commits nothing), and hooks end at their deadline. Metadata channels do not stall and documents are read
//! well: `observation` and the scripts cover both. Endpoints are read, and assignments are carried out, in one
//! order; only a fault changes that order. A closed event is followed no further, late proposals excepted.
//!
//! A fault is a crash, an isolation, an election, a lost reply, a proposal which arrives once more and late, or time
//! passing while an action was pending. Without a fault, time moves on only when no action is pending.

extern crate allclear_proof as allclear;

mod action;
mod clusters;
mod effect;
mod explore;
mod larger;
mod mutant;
mod rogues;
mod runs;
mod world;

use allclear::core::model::attempt::{Attempt, Outcome};
use allclear::core::model::claim::Reason;
use allclear::core::model::event::{Ending, Event};
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::workload::{Intent, Phase, Role, Workload};
use allclear::core::start_cause::StartCause;
use stateright::{Model, Property};

use action::Action;
use world::{Breach, Cluster, World};

const S1: &str = "S1 nothing is claimed before it is prepared";
const S2: &str = "S2 one post without faults, and every post repeats a committed claim";
const S10: &str = "S10 nothing is posted for what was not decided";
const S3: &str = "S3 nothing is posted or approved that is not the claim in force";
const S4: &str = "S4 nobody is taken out beyond what the group may lose";
const S11: &str = "S11 one failover of a group at a time, and before a primary is taken away";
const S12: &str = "S12 nobody is in service again who was not restored";
const S14: &str = "S14 a claim counts hooks of the present stint alone";
const L5: &str = "L5 no cycle of waiting, and nobody is left standing";
const L7: &str = "L7 an event gives back at most twice";
const S7: &str = "S7 no attempt is run twice";
const L2: &str = "L2 what is settled, or hung when it was asked about, is not asked about";
const S8: &str = "S8 what was touched is put back, and nothing else, when the event is over";
const WISH: &str = "nothing is claimed against an operator's wish, nor approved by one who has not seen it";
const LIFE: &str = "nothing goes back, nothing recorded changes";
const DRILL: &str = "a drill is never approved, and gives way to what is real";
const L1: &str = "L1 when nothing is left to happen, the event is closed or waits for a VM or a workload that is away";

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
        [promises(), reached()].concat()
    }
}

fn promises() -> Vec<Property<Cluster>> {
    fn keeps(world: &World, breach: Breach) -> bool {
        world.breach != Some(breach)
    }
    vec![
        Property::always(S1, |_, world| keeps(world, Breach::Unprepared)),
        Property::always(S2, |_, world| keeps(world, Breach::PostedTwice)),
        Property::always(S10, |_, world| keeps(world, Breach::Undecided)),
        Property::always(S3, |_, world| keeps(world, Breach::Uncommitted)),
        Property::always(S4, |_, world| keeps(world, Breach::BudgetExceeded)),
        Property::always(S11, |_, world| keeps(world, Breach::FailoverOutOfTurn)),
        Property::always(S12, |_, world| keeps(world, Breach::NotRestored)),
        Property::always(S14, |_, world| keeps(world, Breach::StintMixed)),
        Property::always(L7, |_, world| keeps(world, Breach::GivenBackTooOften)),
        Property::always(L5, |cluster: &Cluster, world: &World| {
            world.breach.is_some() || !action::is_deadlocked(cluster, world)
        }),
        Property::always(S7, |_, world| keeps(world, Breach::RunTwice)),
        Property::always(L2, |_, world| keeps(world, Breach::AskedWrongly)),
        Property::always(S8, |cluster: &Cluster, world: &World| {
            let put_back = |event: &Event| is_put_back(cluster, event);
            keeps(world, Breach::RestoredWrongly) && world.log.closed_events().all(put_back)
        }),
        Property::always(WISH, |_, world| keeps(world, Breach::AgainstWish)),
        Property::always(LIFE, |_, world| keeps(world, Breach::Lifecycle)),
        Property::always(DRILL, |_, world| keeps(world, Breach::Drill)),
        Property::always(L1, |cluster: &Cluster, world: &World| {
            let waits = world.log.open_events().all(|event| is_waiting_for_a_vm(world, event));
            waits || world.breach.is_some() || !action::is_quiet(cluster, world)
        }),
    ]
}

/// States which the model must reach to prove anything.
fn reached() -> Vec<Property<Cluster>> {
    vec![
        Property::sometimes("approved and started", |_, world| closed(world, Ending::Completed, StartCause::Approved)),
        Property::sometimes("started because its notice ended", |cluster: &Cluster, world| {
            cluster.workload.is_none() || closed(world, Ending::Completed, StartCause::NoticeExpired)
        }),
        Property::sometimes("cancelled", |_, world: &World| {
            world.log.closed_events().any(|event| event.ending == Some(Ending::Cancelled))
        }),
        Property::sometimes("put back", |cluster: &Cluster, world: &World| {
            let restored = |event: &Event| event.attempts.iter().any(|attempt| attempt.hook.phase == Phase::Restore);
            !is_restorable(cluster) || world.log.closed_events().any(restored)
        }),
        Property::sometimes("taken back", |cluster: &Cluster, world: &World| {
            let can = |workload: &Workload| workload.hooks.iter().any(|hook| hook.can_undo);
            let undone = |event: &Event| event.attempts.iter().any(|attempt| attempt.intent == Intent::Undo);
            !cluster.workload.as_ref().is_some_and(can) || world.log.closed_events().any(undone)
        }),
        Property::sometimes("held by another event", |cluster: &Cluster, world: &World| {
            let stages: Vec<Stage> = world.log.open_events().map(Event::stage).collect();
            cluster.events.len() == 1
                || cluster.events[0] == cluster.events[1]
                || (stages.contains(&Stage::Approved) && action::is_held(world))
        }),
        Property::sometimes("both approved", |cluster: &Cluster, world: &World| {
            let approved = |event: &&Event| event.is_accepted();
            let events = world.log.events();
            events.filter(approved).count() == cluster.events.len()
        }),
        Property::sometimes("held and then claimed", |cluster: &Cluster, world: &World| {
            let held = |event: &Event| !event.operator_records.is_empty() && event.claims.len() == 1;
            cluster.wishes == 0 || world.log.open_events().any(held)
        }),
        Property::sometimes("approved by an operator", |cluster: &Cluster, world: &World| {
            let overruled = |event: &Event| event.claims.iter().any(|claim| claim.reason == Reason::Operator);
            cluster.wishes == 0 || world.log.open_events().any(overruled)
        }),
        Property::sometimes("a failover of who is known as primary", |cluster: &Cluster, world: &World| {
            let is_moved = |event: &Event| {
                let mut moves = event.attempts.iter().filter(|attempt| attempt.hook.phase == Phase::Failover);
                moves.any(|attempt| world.log.role(&attempt.member) == Role::Primary)
            };
            !has_failover(cluster) || cluster.changes == 0 || world.log.open_events().any(is_moved)
        }),
        Property::sometimes("approved while its workload is away", |cluster: &Cluster, world: &World| {
            let is_away = world.log.replicas.values().any(|replica| !replica.disconnected.is_empty());
            !is_dialled(cluster) || (is_away && world.log.open_events().any(Event::is_accepted))
        }),
        Property::sometimes("claimed again", |cluster: &Cluster, world: &World| {
            let claims = |event: &Event| event.claims.len() > 1;
            cluster.faults == 0 || world.log.open_events().any(claims)
        }),
    ]
}

/// A workload taken out of service on a VM remains to be restored until the VM is back, however long the VM is away.
fn is_waiting_for_a_vm(world: &World, event: &Event) -> bool {
    let mut slots = world.log.slots.iter().filter(|(_, slot)| slot.by == event.announcement.id);
    let is_away = |replica: usize| !world.connected(replica) || !world.conditions[replica].connected;
    event.stage() == Stage::Restoring && slots.any(|(member, _)| is_away(world.place(&member.vm)))
}

fn closed(world: &World, ending: Ending, cause: StartCause) -> bool {
    world.log.closed_events().any(|event| event.ending == Some(ending) && event.start_cause() == Some(cause))
}

fn has_failover(cluster: &Cluster) -> bool {
    cluster.workload.as_ref().is_some_and(|workload| workload.hooks_of(Phase::Failover).next().is_some())
}

fn is_dialled(cluster: &Cluster) -> bool {
    cluster.workload.as_ref().is_some_and(Workload::is_session)
}

fn is_restorable(cluster: &Cluster) -> bool {
    cluster.workload.as_ref().is_some_and(|workload| workload.hooks_of(Phase::Restore).next().is_some())
}

/// A closed event leaves no failed attempt whose hook could be undone. The restore of the members is S12.
fn is_put_back(cluster: &Cluster, event: &Event) -> bool {
    let is_left = |attempt: &Attempt| {
        let failed =
            matches!(attempt.outcome, Some((Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Cancelled, _)));
        let mut others = event.attempts.iter().filter(|other| other.hook == attempt.hook);
        // A later successful attempt, which was restored, leaves as little as an undone attempt.
        let is_done = |other: &Attempt| other.id > attempt.id && matches!(other.outcome, Some((Outcome::Done, _)));
        failed && attempt.intent == Intent::Run && !others.any(|it| it.intent == Intent::Undo || is_done(it))
    };
    let can_undo = |attempt: &&Attempt| {
        let hook = cluster.workload.as_ref().and_then(|workload| workload.hook(attempt.hook));
        hook.is_some_and(|hook| hook.can_undo)
    };
    !event.attempts.iter().filter(can_undo).any(is_left)
}
