//! Actions which may happen next.

use allclear::core::schedule::slots;
use std::collections::BTreeSet;
use std::time::Duration;

use allclear::core::assignments::{Assignment, assignments};
use allclear::core::explain::explain;
use allclear::core::model::attempt::{Attempt, Outcome};
use allclear::core::model::blocker::Blocker;
use allclear::core::model::command::{Command, FinishAttempt, RecordPost, UpdateConditions};
use allclear::core::model::event::Event;
use allclear::core::model::id::AttemptId;
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::operator::OperatorRequest;
use allclear::core::model::slot::SlotState;
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Condition, Intent, Member, OnAbsent, Phase, Readiness, Role};
use allclear::core::observation::{Observation, Patience, Poll, PollTime};
use allclear::core::plan::plan;

use crate::mutant::Mutant;
use crate::rogues::rogues;
use crate::world::{Cluster, GONE_BY, MOMENTS, Post, Run, Shown, Trouble, World, name};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    /// A replica's proposal is committed.
    Commit(usize, Command),
    Start(usize, AttemptId),
    Finish(usize, AttemptId, Outcome),
    /// The claim is confirmed by a linearizable read, and a fresh document is taken.
    Confirm(usize, AttemptId),
    Post(usize),
    Cloud(usize, Shown),
    /// The event is to come again.
    Return(usize),
    /// Time advances to the next entry of `MOMENTS`.
    Wait,
    Restart(usize),
    Heal(usize),
    Fault(Fault),
    Arrive,
    /// The event names one more VM.
    Grow(usize),
    /// An operator makes a request.
    Ask(OperatorRequest),
    /// The condition of a replica's workload changes.
    Change(usize, Condition),
    /// The condition changes because the workload stops serving, or serves again.
    Sicken(usize, Condition),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fault {
    Crash(usize),
    Cut(usize),
    Elect(usize),
    /// The reply to the post is lost, whether the post took effect or not.
    LoseReply(usize, bool),
    /// A copy of a proposal is in flight and arrives at any later time.
    Delay(usize, Command),
    /// Time passes though an action was pending.
    Dawdle,
    /// The leader proposes a command which the planner would never propose.
    Rogue(Command),
}

/// Polls are made as needed, all at the same time.
const POLLS: usize = 5;
const AT_ONCE: Patience =
    Patience { poll_interval: Duration::ZERO, gone_after: Duration::ZERO, stale_after: Duration::ZERO };

/// Proposals of each replica now: the leader's plan, changes of the endpoint, outcomes.
fn proposals(cluster: &Cluster, world: &World) -> Vec<(usize, Command)> {
    let mut found = Vec::new();
    for (replica, local) in world.replicas.iter().enumerate().filter(|(replica, _)| world.connected(*replica)) {
        let me = name(replica);
        let mut observation = Observation::default();
        observation.adopt_state(&world.log, &me);
        for _ in 0..POLLS {
            observation.record_poll(
                Poll { document: &world.document(cluster), time: PollTime::at_once(world.now()), patience: AT_ONCE },
                &world.log,
                |_| true,
            );
        }
        found.extend(observation.report(&world.log, &me).map(|report| (replica, report)));
        found.extend(note(cluster, world, replica).map(|note| (replica, note)));
        for (attempt, run) in &local.hooks {
            if let Run::Ended(outcome) = run {
                let (attempt, outcome) = (*attempt, outcome.clone());
                let event = world.id_of(attempt);
                found.extend(
                    event.map(|event| (replica, Command::FinishAttempt(FinishAttempt { event, attempt, outcome }))),
                );
            }
        }
        if let Some((attempt, Post::Answered(outcome))) = &local.post {
            let (attempt, outcome) = (*attempt, outcome.clone());
            let event = world.id_of(attempt);
            found.extend(event.map(|event| (replica, Command::RecordPost(RecordPost { event, attempt, outcome }))));
        }
        if replica == world.leader {
            let due = plan(&world.log, &world.planning_input());
            found.extend(due.into_iter().filter(|due| cluster.mutant.plans(due)).map(|due| (replica, due)));
        }
    }
    found
}

/// Condition of a replica's workload, where the log does not have the condition yet.
fn note(cluster: &Cluster, world: &World, replica: usize) -> Option<Command> {
    let workload = cluster.workload.as_ref()?.name.clone();
    let known = world.log.replicas.get(&name(replica))?.condition(&workload);
    let condition = world.conditions[replica];
    (known != condition)
        .then(|| Command::UpdateConditions(UpdateConditions { conditions: vec![(workload, condition)] }))
}

/// Pending actions of the replicas: the next action of endpoint polling, of running hooks and posting, and of the
/// leader. The order among the three is free; within each of the three the faults change the order.
fn chores(cluster: &Cluster, world: &World, proposals: &[(usize, Command)]) -> Vec<Action> {
    let mut found: Vec<Action> = Vec::new();
    let mut busy = BTreeSet::new();
    for (by, command) in proposals {
        let actor = match &command {
            Command::ReportDocument(_) | Command::UpdateConditions(_) => Actor::Observer,
            Command::FinishAttempt(_) | Command::RecordPost(_) => Actor::Runner,
            _ => Actor::Leader,
        };
        if busy.insert(actor) {
            found.push(Action::Commit(*by, command.clone()));
        }
    }
    if !busy.contains(&Actor::Runner) {
        let mut up = (0..cluster.replicas).filter(|replica| world.replicas[*replica].up);
        found.extend(up.find_map(|replica| errand(cluster, world, replica)));
    }
    found
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Actor {
    Observer,
    Runner,
    Leader,
}

/// The next pending action of a replica.
fn errand(cluster: &Cluster, world: &World, replica: usize) -> Option<Action> {
    let local = &world.replicas[replica];
    if let Some((_, Post::Confirmed)) = local.post {
        return Some(Action::Post(replica));
    }
    if cluster.mutant == Mutant::PostUnconfirmed && local.post.is_none() {
        // The replica acts on old knowledge: any claim for this replica without an outcome.
        let mut claims = world.log.open_events().flat_map(|event| &event.claims);
        let mine = claims.find(|claim| claim.approver == name(replica) && claim.outcome.is_none());
        return mine.map(|claim| Action::Confirm(replica, claim.attempt));
    }
    assignments(&world.log, &name(replica)).into_iter().find_map(|errand| match errand {
        Assignment::Run { attempt, .. } => {
            let may_start = !local.hooks.contains_key(&attempt.id) && world.now() < attempt.deadline;
            let start = Action::Start(replica, attempt.id);
            may_start.then_some(start).and_then(|start| match absence(cluster, world, replica) {
                None => Some(start),
                Some(OnAbsent::Hold) => None,
                Some(_) => Some(Action::Finish(replica, attempt.id, Outcome::Blocked("away".into()))),
            })
        }
        Assignment::Cancel { attempt, .. } => {
            let is_over = matches!(local.hooks.get(&attempt.id), Some(Run::Ended(_)));
            (!is_over && !local.cut).then_some(Action::Finish(replica, attempt.id, Outcome::Cancelled))
        }
        Assignment::Post { claim, .. } => {
            (local.post.is_none() && !local.cut).then_some(Action::Confirm(replica, claim.attempt))
        }
    })
}

/// The `on_absent` setting, if the session workload of a replica is disconnected.
fn absence(cluster: &Cluster, world: &World, replica: usize) -> Option<OnAbsent> {
    let is_away = !world.conditions[replica].connected && world.is_dialled(cluster, replica);
    cluster.workload.as_ref().filter(|_| is_away).map(|workload| workload.on_absent)
}

/// Another role, or a disconnect and reconnect.
fn changes(cluster: &Cluster, world: &World) -> Vec<Action> {
    let Some(workload) = &cluster.workload else { return Vec::new() };
    let mut found = Vec::new();
    for (replica, condition) in world.conditions.iter().enumerate() {
        let roles = [Role::Unknown, Role::Primary, Role::Replica].into_iter().filter(|role| *role != condition.role);
        found.extend(roles.map(|role| Action::Change(replica, Condition { role, ..*condition })));
        if workload.is_session() {
            found.push(Action::Change(replica, Condition { connected: !condition.connected, ..*condition }));
        }
    }
    found
}

/// A member stops being ready, or is ready again, and reports the change itself.
fn sicknesses(world: &World) -> Vec<Action> {
    let other = |condition: &Condition| match condition.readiness {
        Readiness::NotReady => Readiness::Ready,
        Readiness::Unasked | Readiness::Ready => Readiness::NotReady,
    };
    let all = world.conditions.iter().enumerate();
    all.map(|(replica, it)| Action::Sicken(replica, Condition { readiness: other(it), ..*it })).collect()
}

/// Events without a fault, each in its own time.
fn developments(cluster: &Cluster, world: &World) -> Vec<Action> {
    let mut found = Vec::new();
    for (event, cloud) in world.clouds.iter().enumerate() {
        match cloud.shows {
            Shown::ToCome => found.push(Action::Cloud(event, Shown::Scheduled)),
            Shown::Scheduled => {
                if !cloud.grown && cluster.grows.get(event).copied().flatten().is_some() {
                    found.push(Action::Grow(event));
                }
                if world.may_start(event) {
                    found.push(Action::Cloud(event, Shown::Started));
                }
                if !cloud.approved && cluster.cancels {
                    found.push(Action::Cloud(event, Shown::Gone));
                }
            }
            Shown::Started => found.push(Action::Cloud(event, Shown::Gone)),
            Shown::Gone => {}
        }
        if world.may_return(cluster, event) {
            found.push(Action::Return(event));
        }
    }
    for (replica, local) in world.replicas.iter().enumerate().filter(|(_, local)| local.up) {
        for (attempt, _) in local.hooks.iter().filter(|(_, run)| **run == Run::Running) {
            let known = world.log.open_events().find_map(|event| event.attempt(*attempt));
            let is_asked = known.is_some_and(|known| known.intent == Intent::Confirm);
            let bad = if is_asked { Outcome::NotDone } else { Outcome::Failed("it".into()) };
            found.push(Action::Finish(replica, *attempt, Outcome::Done));
            // Restore hooks are retried until success, which would go on for ever.
            let is_owed = known.is_some_and(|known| known.hook.phase >= Phase::Restore);
            let may_fail = if is_owed {
                may_fail_to_restore(world)
            } else {
                cluster.failures.is_none_or(|most| world.failed < most)
            };
            if may_fail {
                found.push(Action::Finish(replica, *attempt, bad));
            }
        }
    }
    if world.late.is_some() {
        found.push(Action::Arrive);
    }
    found
}

fn recoveries(world: &World) -> Vec<Action> {
    let mut found = Vec::new();
    for (replica, local) in world.replicas.iter().enumerate() {
        if !local.up {
            found.push(Action::Restart(replica));
        } else if local.cut {
            found.push(Action::Heal(replica));
        }
    }
    if !world.connected(world.leader) {
        let able = (0..world.replicas.len()).filter(|replica| world.connected(*replica));
        found.extend(able.map(|replica| Action::Fault(Fault::Elect(replica))));
    }
    found
}

fn faults(cluster: &Cluster, world: &World, proposals: Vec<(usize, Command)>, is_idle: bool) -> Vec<Action> {
    let found: Vec<Fault> = match cluster.trouble {
        Trouble::Losses => losses(world, is_idle),
        Trouble::Delays if world.late.is_some() => Vec::new(),
        Trouble::Delays => proposals.into_iter().map(|(by, command)| Fault::Delay(by, command)).collect(),
        Trouble::Rogues => rogues(cluster, world).into_iter().map(Fault::Rogue).collect(),
    };
    found.into_iter().map(Action::Fault).collect()
}

fn losses(world: &World, is_idle: bool) -> Vec<Fault> {
    let mut found = Vec::new();
    for (replica, local) in world.replicas.iter().enumerate() {
        if local.up {
            found.push(Fault::Crash(replica));
        }
        if world.connected(replica) {
            found.push(Fault::Cut(replica));
        }
        if world.connected(replica) && world.connected(world.leader) && replica != world.leader {
            found.push(Fault::Elect(replica));
        }
        let posted = |claim| world.event_of(claim).is_some_and(|event| world.clouds[event].shows == Shown::Scheduled);
        if local.up && matches!(local.post, Some((claim, Post::Confirmed)) if posted(claim)) {
            found.push(Fault::LoseReply(replica, true));
            found.push(Fault::LoseReply(replica, false));
        }
    }
    // Not into the last moment: actions due then leave something to restore, and no moment would be left for the
    // restore.
    let is_next_last = world.moment + 2 == MOMENTS.len();
    if !is_idle && may_wait(world) && !is_next_last {
        found.push(Fault::Dawdle);
    }
    found
}

/// Operator requests at every moment, including requests which are too late, or based on the state before the last
/// change.
fn asks(cluster: &Cluster, world: &World) -> Vec<Action> {
    let until = Timestamp(500_000.max(world.now().0 + 100_000));
    let mut found = vec![OperatorRequest::Pause { until }, OperatorRequest::Resume];
    for event in world.log.open_events() {
        let id = &event.announcement.id;
        found.push(OperatorRequest::Hold { event: id.clone(), until, no_hooks: false });
        found.push(OperatorRequest::Release { event: id.clone() });
        if event.usual_preparation_start() > event.first_seen() {
            for from in [world.now(), world.now().plus(Duration::from_secs(100))] {
                found.push(OperatorRequest::Prepare { event: id.clone(), from });
            }
        }
        for revision in [event.revision, event.revision - 1] {
            found.push(OperatorRequest::Approve { event: id.clone(), revision, over_budget: false });
        }
        if let Some(workload) = &cluster.workload {
            let member = Member { vm: event.announcement.resources[0].clone(), workload: workload.name.clone() };
            let hooks = workload.hooks_of(Phase::Drain);
            for (hook, _) in hooks {
                let (event, member) = (id.clone(), member.clone());
                found.push(OperatorRequest::Skip { event: event.clone(), member: member.clone(), hook });
                found.push(OperatorRequest::Retry { event, member, hook });
            }
        }
    }
    found.into_iter().map(Action::Ask).collect()
}

pub(crate) fn possible(cluster: &Cluster, world: &World) -> Vec<Action> {
    let proposals = proposals(cluster, world);
    let mut found = chores(cluster, world, &proposals);
    let is_idle = found.is_empty();
    if cluster.is_patient && !is_idle {
        found.truncate(1);
        return found;
    }
    // Once an event is closed and gone only commands still in flight can go wrong.
    let may_return = (0..world.clouds.len()).any(|event| world.may_return(cluster, event));
    if world.is_gone() && world.log.open.is_empty() && !may_return {
        found.extend(world.late.is_some().then_some(Action::Arrive));
        return found;
    }
    // A lost leader is replaced within seconds.
    if is_idle && may_wait(world) && world.connected(world.leader) {
        found.push(Action::Wait);
    }
    if world.asked < cluster.wishes && world.connected(world.leader) {
        found.extend(asks(cluster, world));
    }
    if world.changed < cluster.changes {
        found.extend(changes(cluster, world));
    }
    if world.sickened < cluster.sick {
        found.extend(sicknesses(world));
    }
    found.extend(developments(cluster, world));
    found.extend(recoveries(world));
    if world.faults < cluster.faults {
        found.extend(faults(cluster, world, proposals, is_idle));
    }
    found
}

/// A restore which never succeeds would go on for ever, so a restore fails or hangs once, and not near the end.
pub(crate) fn may_fail_to_restore(world: &World) -> bool {
    world.unrestored == 0 && world.moment + 3 < MOMENTS.len()
}

fn may_wait(world: &World) -> bool {
    let is_last = world.moment + 1 == MOMENTS.len();
    let restores = |attempt: &Attempt| attempt.outcome.is_none() && attempt.hook.phase >= Phase::Restore;
    let is_restoring = world.log.open_events().any(|event| event.attempts.iter().any(restores));
    !is_last && (!is_restoring || may_fail_to_restore(world)) && (world.is_gone() || MOMENTS[world.moment] < GONE_BY)
}

/// No pending actions are left, whether replicas which are down come back or not.
pub(crate) fn is_quiet(cluster: &Cluster, world: &World) -> bool {
    (world.moment + 1 == MOMENTS.len() || world.log.open.is_empty())
        && world.connected(world.leader)
        && chores(cluster, world, &proposals(cluster, world)).is_empty()
        && developments(cluster, world).is_empty()
}

/// The disruption budget blocks the claim of an event.
pub(crate) fn is_held(world: &World) -> bool {
    let input = world.planning_input();
    let mut blockers = world.log.open_events().flat_map(|event| explain(&world.log, event, &input));
    blockers.any(|blocker| matches!(blocker, Blocker::Budget { .. }))
}

/// Nothing moves, and some event which waits only for a slot waits for no member in progress (L5): no event is claimed,
/// approved or started, no hook runs, no member is sick, and no event is about to give back its slots.
pub(crate) fn is_deadlocked(cluster: &Cluster, world: &World) -> bool {
    let (state, now) = (&world.log, world.now());
    if !world.connected(world.leader) || world.late.is_some() || now >= Timestamp(840_000) {
        return false;
    }
    if !chores(cluster, world, &proposals(cluster, world)).is_empty() {
        return false;
    }
    let is_sick =
        |replica: usize| !world.connected(replica) || world.conditions[replica].readiness == Readiness::NotReady;
    let is_moving = state.open_events().any(|event| {
        let is_going = (Stage::Claimed..=Stage::Started).contains(&event.stage());
        let runs = event.attempts.iter().any(|attempt| attempt.outcome.is_none());
        is_going || runs || event.stuck_since.is_some()
    });
    let is_returning = state.slots.values().any(|slot| slot.state == SlotState::Returning);
    let waits = |event: &Event| event.slots_since.is_none() && slots::is_ready_for_slots(state, event, now);
    // An event without progress for `give_back_after` keeps no member out (R6).
    let is_left_standing = state.open_events().any(|event| {
        let keeps_out = state.slots.values().any(|slot| slot.events.contains(&event.announcement.id));
        keeps_out && event.stuck_since.is_some_and(|since| now >= since.plus(event.give_back_after()))
    });
    is_left_standing
        || !is_moving && !is_returning && !(0..cluster.replicas).any(is_sick) && state.open_events().any(waits)
}
