//! Effects of actions on the world; the properties of posts and attempts are checked here.

use allclear::core::assignments::{Assignment, assignments, predates_disk};
use allclear::core::model::attempt::{Attempt, Outcome};
use allclear::core::model::claim::{Claim, PostOutcome, Reason};
use allclear::core::model::command::{ApplyResult, Command, FinishAttempt, RecordPost, RequestAction};
use allclear::core::model::event::Event;
use allclear::core::model::id::{AttemptId, VmName};
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Condition, Intent, Phase, Readiness};
use allclear::core::schedule::claims;

use crate::action::{Action, Fault};
use crate::mutant::Mutant;
use crate::world::{Breach, Cluster, Local, Post, Run, Shown, World, name};

pub(crate) fn take(cluster: &Cluster, world: &World, action: Action) -> World {
    let mut next = world.clone();
    match action {
        Action::Commit(by, command) => commit(cluster, &mut next, by, command),
        Action::Start(replica, attempt) => start(cluster, &mut next, replica, attempt),
        Action::Finish(replica, attempt, outcome) => {
            let known = next.log.open_events().find_map(|event| event.attempt(attempt)).cloned();
            if let Some(known) = known.as_ref().filter(|known| outcome == Outcome::Done && known.intent == Intent::Run)
            {
                let whose = next.place(&known.member.vm);
                match known.hook.phase {
                    Phase::Restore => drop(next.stopped.remove(&whose)),
                    Phase::Drain => drop(next.stopped.insert(whose, true)),
                    // The workload reports `Ready` itself.
                    Phase::Ready if next.conditions[whose].readiness == Readiness::NotReady => {
                        next.conditions[whose].readiness = Readiness::Ready;
                    }
                    _ => {}
                }
            }
            let is_owed = known.is_some_and(|known| known.hook.phase >= Phase::Restore);
            let failed = if is_owed { &mut next.unrestored } else { &mut next.failed };
            *failed += u8::from(matches!(outcome, Outcome::Failed(_)));
            next.replicas[replica].hooks.insert(attempt, Run::Ended(outcome));
        }
        Action::Grow(event) => next.clouds[event].grown = true,
        Action::Sicken(replica, condition) => {
            next.sickened += 1;
            next.conditions[replica] = condition;
        }
        Action::Confirm(replica, claim) => confirm(cluster, &mut next, replica, claim),
        Action::Post(replica) => post(&mut next, replica),
        Action::Cloud(event, shows) => next.clouds[event].shows = shows,
        Action::Return(event) => {
            next.returned += 1;
            next.clouds[event].shows = Shown::Scheduled;
        }
        Action::Wait => wait(&mut next),
        Action::Restart(replica) => restart(cluster, &mut next, replica),
        Action::Heal(replica) => {
            let since = next.now();
            (next.replicas[replica].cut, next.replicas[replica].since) = (false, since);
        }
        Action::Arrive => {
            if let Some((by, command)) = next.late.take() {
                next.commit(cluster, &by, command);
            }
        }
        Action::Ask(what) => {
            next.asked += 1;
            let (by, who) = (name(next.leader), "somebody".into());
            next.commit(cluster, &by, Command::RequestAction(RequestAction { what, who, reason: String::new() }));
        }
        Action::Change(replica, condition) => change(cluster, &mut next, replica, condition),
        Action::Fault(fault) => fail(cluster, &mut next, fault),
    }
    next
}

fn commit(cluster: &Cluster, next: &mut World, by: usize, command: Command) {
    let told = match &command {
        Command::FinishAttempt(FinishAttempt { attempt, .. }) | Command::RecordPost(RecordPost { attempt, .. }) => {
            Some(*attempt)
        }
        _ => None,
    };
    let _: ApplyResult = next.commit(cluster, &name(by), command);
    if let Some(told) = told {
        next.replicas[by].hooks.remove(&told);
        next.replicas[by].post.take_if(|(claim, _)| *claim == told);
    }
}

fn start(cluster: &Cluster, next: &mut World, replica: usize, attempt: AttemptId) {
    let running = next.log.open_events().find_map(|event| event.attempt(attempt)).cloned();
    if running.as_ref().is_some_and(|running| running.hook.phase < Phase::Restore) && !next.begun.insert(attempt) {
        next.broke(Breach::RunTwice);
    }
    if let Some(running) = running {
        take_away(cluster, next, &running);
    }
    next.replicas[replica].hooks.insert(attempt, Run::Running);
}

/// S4, by effects on members: a member is out from its first disruptive hook until its restore has ended well.
fn take_away(cluster: &Cluster, next: &mut World, attempt: &Attempt) {
    let Some(workload) = cluster.workload.as_ref().filter(|_| attempt.intent == Intent::Run) else { return };
    let whose = next.place(&attempt.member.vm);
    if !attempt.hook.phase.is_disruptive() || workload.hooks_of(Phase::Restore).next().is_none() {
        return;
    }
    next.stopped.entry(whose).or_insert(false);
    let Some(event) = next.log.open_events().find(|event| event.attempt(attempt.id).is_some()) else { return };
    let named = |replica: &usize| event.affects(&name(*replica));
    let (own, others): (Vec<usize>, Vec<usize>) = next.stopped.keys().partition(|replica| named(replica));
    // Members which are out anyway are being repaired.
    let is_sick = |replica: usize| {
        let restore_failed = next.log.slots.get(&workload.on(&name(replica))).is_some_and(|slot| slot.restore_failed);
        !next.connected(replica) || restore_failed || next.conditions[replica].readiness == Readiness::NotReady
    };
    let is_repair = event.is_user_initiated() && (0..cluster.replicas).filter(named).all(is_sick);
    // The platform takes the members regardless: they came too late for a decision or are about to be taken.
    let is_hurried = event.last_call_since.is_some() || event.is_reopened();
    let is_excused = workload.group.is_none() || is_hurried || event.is_drill() || is_repair;
    if !is_excused && !others.is_empty() && own.len() + others.len() > 1 {
        next.broke(Breach::BudgetExceeded);
    }
}

/// A hook of a session workload is lost with the session; restore hooks are run again.
fn change(cluster: &Cluster, next: &mut World, replica: usize, condition: Condition) {
    next.changed += 1;
    let is_lost = next.conditions[replica].connected && !condition.connected && next.is_dialled(cluster, replica);
    next.conditions[replica] = condition;
    if !is_lost {
        return;
    }
    let phase_of = |attempt| next.log.open_events().find_map(|event| event.attempt(attempt)).map(|it| it.hook.phase);
    let again: Vec<AttemptId> =
        next.replicas[replica].hooks.keys().copied().filter(|id| phase_of(*id) >= Some(Phase::Restore)).collect();
    for (attempt, run) in next.replicas[replica].hooks.iter_mut().filter(|(_, run)| **run == Run::Running) {
        if !again.contains(attempt) {
            *run = Run::Ended(Outcome::Unknown("lost".into()));
        }
    }
    next.replicas[replica].hooks.retain(|attempt, run| *run != Run::Running || !again.contains(attempt));
}

/// S3: only the claim in force of an event which is neither approved nor under way leads to a post.
fn confirm(cluster: &Cluster, next: &mut World, replica: usize, claim: AttemptId) {
    let in_force = |event: &Event| {
        let last = event.claims.last().is_some_and(|last| last.attempt == claim && last.approver == name(replica));
        // An approval is repeated when the event was approved some time before the claim.
        let repeats = |at: Timestamp| event.claims.last().is_some_and(|last| last.at >= at.plus(cluster.repost_after));
        last && (event.stage() == Stage::Claimed || event.entered_at(Stage::Approved).is_some_and(repeats))
    };
    let id = next.id_of(claim);
    let document = next.document(cluster);
    let withdrawn = id.and_then(|id| claims::outcome_without_post(&next.log, &name(replica), &id, claim, &document));
    let is_other = withdrawn == Some(PostOutcome::Differs);
    let step = if withdrawn.is_none() || (is_other && cluster.mutant == Mutant::PostUndecided) {
        // S10: the event names only VMs for which the approval was decided.
        let named = next.log.open_events().find(|event| event.claims.iter().any(|it| it.attempt == claim)).cloned();
        let names_more = named.is_some_and(|event| {
            let of_claim = event.claims.iter().find(|it| it.attempt == claim).map(|it| &it.stints);
            let shown = document.get(&event.announcement.id).map(|shown| shown.resources.clone()).unwrap_or_default();
            let known = |vm: &VmName| of_claim.is_some_and(|stints| stints.iter().any(|(member, _)| member.vm == *vm));
            cluster.workload.as_ref().is_some_and(|it| it.group.is_some()) && !shown.iter().all(known)
        });
        if names_more {
            next.broke(Breach::Undecided);
        }
        if !next.log.open_events().any(in_force) {
            next.broke(Breach::Uncommitted);
        }
        // S1, by effects: a member claimed as prepared was taken out of service, and not restored since.
        let is_it = |event: &&Event| event.claims.iter().any(|it| it.attempt == claim && it.reason == Reason::Prepared);
        let drains = cluster.workload.as_ref().is_some_and(|it| it.hooks_of(Phase::Drain).next().is_some());
        let unprepared = |event: &Event| {
            let named = event.announcement.resources.iter().filter(|vm| event.affects(vm));
            // Hooks of a member which was sick when its slot was taken do not hold a repair (R3b).
            let is_sick = |vm: &VmName| {
                let slot = cluster.workload.as_ref().and_then(|workload| next.log.slots.get(&workload.on(vm)));
                event.is_user_initiated() && slot.is_some_and(|slot| !slot.was_fit)
            };
            let is_ready = |vm: &VmName| is_sick(vm) || next.stopped.get(&next.place(vm)) == Some(&true);
            event.waivers.is_empty() && !named.clone().all(is_ready)
        };
        if drains && !cluster.may_fail() && next.log.open_events().find(is_it).is_some_and(unprepared) {
            next.broke(Breach::Unprepared);
        }
        Post::Confirmed
    } else {
        Post::Answered(withdrawn.unwrap_or(PostOutcome::Withdrawn))
    };
    next.replicas[replica].post = Some((claim, step));
}

fn is_scheduled(world: &World, claim: AttemptId) -> bool {
    world.event_of(claim).is_some_and(|event| world.clouds[event].shows == Shown::Scheduled)
}

fn post(next: &mut World, replica: usize) {
    let effect = next.replicas[replica].post.as_ref().is_some_and(|(claim, _)| is_scheduled(next, *claim));
    let outcome = if effect { PostOutcome::Accepted } else { PostOutcome::Refused(400) };
    send(next, replica, effect, outcome);
}

/// S2: a post was claimed by this replica, and posted once unless there was a fault.
fn send(next: &mut World, replica: usize, took_effect: bool, outcome: PostOutcome) {
    let Some((claim, _)) = next.replicas[replica].post.take() else { return };
    let Some(event) = next.event_of(claim) else { return };
    let cloud = &mut next.clouds[event];
    cloud.posts = cloud.posts.saturating_add(1);
    cloud.approved |= took_effect;
    let posts = cloud.posts;
    let is_it = |found: &Claim| found.attempt == claim && found.approver == name(replica);
    let committed = next.log.events().find(|event| event.claims.iter().any(is_it));
    let claims = committed.map_or(0, |event| event.claims.len());
    if committed.is_none() || (next.faults == 0 && usize::from(posts) > claims) {
        next.broke(Breach::PostedTwice);
    }
    next.replicas[replica].post = Some((claim, Post::Answered(outcome)));
}

/// A hook is killed at its deadline, and its replica knows the outcome by then.
fn wait(next: &mut World) {
    let restores = |attempt: &Attempt| attempt.outcome.is_none() && attempt.hook.phase >= Phase::Restore;
    let is_restoring = next.log.open_events().any(|event| event.attempts.iter().any(restores));
    next.unrestored += u8::from(is_restoring);
    next.moment += 1;
    let now = next.now();
    let open: Vec<(AttemptId, Timestamp)> = next.log.open_events().flat_map(deadlines).collect();
    for local in &mut next.replicas {
        for (attempt, run) in &mut local.hooks {
            let is_over = open.iter().find(|(id, _)| id == attempt).is_none_or(|(_, deadline)| *deadline <= now);
            if *run == Run::Running && is_over {
                *run = Run::Ended(Outcome::TimedOut("it".into()));
            }
        }
    }
}

fn deadlines(event: &Event) -> impl Iterator<Item = (AttemptId, Timestamp)> {
    event.attempts.iter().map(|attempt| (attempt.id, attempt.deadline))
}

/// Restart with an empty disk. Attempts assigned before the crash may have run: the replica asks, and restores once
/// more.
fn restart(cluster: &Cluster, next: &mut World, replica: usize) {
    let forgotten = AttemptId(if cluster.mutant == Mutant::RunAgain { 0 } else { next.log.attempts });
    let errands = assignments(&next.log, &name(replica)).into_iter();
    let lost: Vec<AttemptId> = errands
        .filter_map(|errand| match errand {
            Assignment::Run { attempt, .. } | Assignment::Cancel { attempt, .. } => Some(attempt),
            Assignment::Post { .. } => None,
        })
        .filter(|attempt| {
            // A session workload reports such an attempt as unknown.
            let dialled = next.is_dialled(cluster, replica) && attempt.hook.phase < Phase::Restore;
            predates_disk(&next.log, attempt, forgotten) || (dialled && attempt.id <= forgotten)
        })
        .map(|attempt| attempt.id)
        .collect();
    let since = next.now();
    let local = &mut next.replicas[replica];
    (local.up, local.cut, local.since) = (true, false, since);
    local.hooks = lost.into_iter().map(|id| (id, Run::Ended(Outcome::Unknown("lost".into())))).collect();
}

fn fail(cluster: &Cluster, next: &mut World, fault: Fault) {
    let now = next.now();
    // The election after the loss of a leader is part of the loss.
    let is_follow_up = matches!(fault, Fault::Elect(_)) && !next.connected(next.leader);
    next.faults += u8::from(!is_follow_up);
    match fault {
        Fault::Crash(replica) => {
            let since = if next.replicas[replica].cut { next.replicas[replica].since } else { now };
            next.replicas[replica] = Local { up: false, cut: false, since, hooks: [].into(), post: None };
        }
        Fault::Cut(replica) => (next.replicas[replica].cut, next.replicas[replica].since) = (true, now),
        Fault::Elect(replica) => next.leader = replica,
        Fault::LoseReply(replica, took_effect) => {
            send(next, replica, took_effect, PostOutcome::Unknown("lost".into()));
        }
        Fault::Delay(by, command) => next.late = Some((name(by), command)),
        Fault::Dawdle => wait(next),
        Fault::Rogue(command) => {
            let by = name(next.leader);
            next.commit(cluster, &by, command);
        }
    }
}
