//! Effects of actions on the world; the properties of posts are checked here.

use std::sync::Arc;
use std::time::Duration;

use allclear::core::assignments::{Assignment, assignments};
use allclear::core::isolation::reconciliation::unrecorded;
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::command::{ApplyResult, Command, RecordPost, RequestAction};
use allclear::core::model::document::Source;
use allclear::core::model::event::Event;
use allclear::core::model::id::{AttemptId, EventId};
use allclear::core::model::isolated_approval::JournalEntry;
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::operator::{OperatorAction, OperatorRequest};
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;

use crate::action::{Action, Fault, account, number_of};
use crate::mutant::Mutant;
use crate::world::{Alone, Behind, Breach, Cloud, Cluster, Post, Sent, Shown, Why, World, name};

/// After all other waiting times of an isolated replica.
const HELD_UNTIL: Duration = Duration::from_secs(25);

pub(crate) fn take(cluster: &Cluster, world: &World, action: Action) -> World {
    let mut next = world.clone();
    match action {
        Action::Announce(event) => announce(&mut next, event),
        Action::Show(event) => next.clouds[event].is_late = false,
        Action::Leave(event) => leave(&mut next, event),
        Action::Look(replica) => next.replicas[replica].sees = next.clouds.iter().map(|cloud| cloud.shows).collect(),
        Action::Commit(by, command) => commit(cluster, &mut next, by, command),
        Action::Decide(command) => {
            let leader = next.leader.unwrap_or_default();
            if next.commit(cluster, leader, command) != ApplyResult::Applied {
                next.broke(Breach::Stuck);
            }
        }
        Action::Post(replica, event, claim) => {
            let sent = post(&mut next, replica, &event, claim);
            arrive(&mut next, sent);
        }
        Action::Account(replica) => {
            if let Some(account) = account(&next, replica) {
                next.commit(cluster, replica, account);
            }
        }
        Action::TakeOver(replica) => {
            begin(cluster, &mut next, replica);
            let sent = send_alone(&mut next, replica);
            arrive(&mut next, sent);
        }
        Action::Arrive(sent) => arrive(&mut next, Some(sent)),
        Action::Send(replica) => {
            let sent = send_alone(&mut next, replica);
            arrive(&mut next, sent);
        }
        Action::ArriveAccount(replica) => {
            if let Some(account) = next.replicas[replica].account.take() {
                next.commit(cluster, replica, account);
            }
        }
        Action::ArriveLate => {
            if let Some((by, claim)) = next.late.take() {
                next.commit(cluster, by, claim);
            }
        }
        Action::Choose(replica) => next.replicas[replica].chosen = next.takeover(cluster, replica),
        Action::Begin(replica) => begin(cluster, &mut next, replica),
        Action::Wait => next.moment += 1,
        Action::Heal(replica) => next.replicas[replica].cut = false,
        Action::Restart(replica) => restart(&mut next, replica),
        Action::Elect(replica) => elect(&mut next, replica),
        Action::Hold(event) => {
            let what = OperatorRequest::Hold { event, until: Timestamp(0).plus(HELD_UNTIL), no_hooks: false };
            let leader = next.leader.unwrap_or_default();
            next.commit(
                cluster,
                leader,
                Command::RequestAction(RequestAction { what, who: "somebody".into(), reason: String::new() }),
            );
        }
        Action::Fault(fault) => fail(cluster, &mut next, fault),
    }
    settle_contact(cluster, world, &mut next);
    next
}

fn commit(cluster: &Cluster, next: &mut World, by: usize, command: Command) {
    if let Command::RecordPost(RecordPost { attempt, .. }) = &command {
        next.replicas[by].post.take_if(|(claim, _)| claim == attempt);
    }
    next.commit(cluster, by, command);
}

/// S2: a quorum posts only the claim in force of an event which is not approved yet.
fn post(next: &mut World, replica: usize, id: &EventId, claim: AttemptId) -> Option<Sent> {
    let event = number_of(id);
    if next.replicas[replica].sees[event] != Shown::Scheduled {
        next.replicas[replica].post = Some((claim, Post::Answered(PostOutcome::Withdrawn)));
        return None;
    }
    let in_force = |event: &Event| {
        let last = event.claims.last().is_some_and(|last| last.attempt == claim && last.approver == name(replica));
        last && event.stage() == Stage::Claimed && !event.is_accepted()
    };
    if !next.log.open_event(id).is_some_and(in_force) {
        next.broke(Breach::S2);
    }
    next.replicas[replica].post = Some((claim, Post::Sent));
    Some(Sent { by: replica, event, why: Why::Claim(claim) })
}

fn announce(next: &mut World, event: usize) {
    next.clouds[event].since = next.now();
    next.clouds[event].shows = Shown::Scheduled;
}

fn leave(next: &mut World, event: usize) {
    next.clouds[event] = Cloud { shows: Shown::Gone, since: Timestamp(0), approved: false, is_late: false };
}

/// S4, at the moment when a post takes effect.
fn arrive(next: &mut World, sent: Option<Sent>) {
    let Some(sent) = sent else { return };
    next.wire.remove(&sent);
    let takes_effect = next.clouds[sent.event].shows == Shown::Scheduled;
    if takes_effect {
        next.clouds[sent.event].approved = true;
        let unavailable = next.clouds.iter().filter(|cloud| cloud.approved && cloud.shows == Shown::Scheduled);
        if unavailable.count() > 1 {
            next.broke(Breach::S4);
        }
    }
    let outcome = if takes_effect { PostOutcome::Accepted } else { PostOutcome::Refused(404) };
    let local = &mut next.replicas[sent.by];
    match &sent.why {
        Why::Claim(claim) if local.post == Some((*claim, Post::Sent)) => {
            local.post = Some((*claim, Post::Answered(outcome)));
        }
        Why::Takeover(at) if local.alone == Some((*at, Alone::Sent)) => end_alone(next, sent.by, &outcome),
        Why::Claim(_) | Why::Takeover(_) => {}
    }
}

/// S5: the replica is one of a pair, a user requested the event, for the other replica's VM alone, no hold is known to
/// this replica, and no hook known to this replica may still run.
fn begin(cluster: &Cluster, next: &mut World, replica: usize) {
    let chosen = next.replicas[replica].chosen.take();
    let Some(entry) = chosen.or_else(|| next.takeover(cluster, replica)) else { return };
    let id = &entry.announcement.id;
    let may_run = |state: &State, since: Timestamp| {
        let attempts = state.open_event(id).into_iter().flat_map(|event| &event.attempts);
        attempts.filter(|it| it.outcome.is_none() && it.begun_at < since).any(|it| next.now() < it.deadline)
    };
    let is_running = may_run(next.known(replica), next.now()) || may_run(&next.log, entry.approval.alone_since);
    let is_held = next.known(replica).open.get(id).is_some_and(|event| {
        let last = event.operator_records.last().map(|wish| &wish.what);
        matches!(last, Some(OperatorAction::Hold { until, .. }) if next.now() < *until)
    });
    let is_minority = cluster.replicas > 2;
    let takes_itself = entry.announcement.resources.contains(&name(replica));
    if is_minority || takes_itself || entry.announcement.source != Source::User || is_running || is_held {
        next.broke(Breach::S5);
    }
    let local = &mut next.replicas[replica];
    local.alone = Some((entry.approval.at, Alone::Begun));
    local.journal.push(entry);
}

/// S2: an isolated approval is in the journal when posted, and was not accepted before.
fn send_alone(next: &mut World, replica: usize) -> Option<Sent> {
    let local = &mut next.replicas[replica];
    let (at, step) = local.alone.as_mut()?;
    *step = Alone::Sent;
    let at = *at;
    let Some(entry) = local.journal.iter().find(|entry| entry.approval.at == at) else {
        next.broke(Breach::S2);
        return None;
    };
    let id = entry.announcement.id.clone();
    let accepted =
        |entry: &JournalEntry| entry.announcement.id == id && entry.approval.outcome_is(&PostOutcome::Accepted);
    if entry.approval.outcome.is_some() || local.journal.iter().any(accepted) {
        next.broke(Breach::S2);
    }
    Some(Sent { by: replica, event: number_of(&id), why: Why::Takeover(at) })
}

fn end_alone(next: &mut World, replica: usize, outcome: &PostOutcome) {
    let now = next.now();
    let local = &mut next.replicas[replica];
    let Some((at, _)) = local.alone.take() else { return };
    for entry in local.journal.iter_mut().filter(|entry| entry.approval.at == at) {
        entry.approval.outcome = Some((outcome.clone(), now));
    }
}

fn prune(next: &mut World, replica: usize) {
    let journal = &next.replicas[replica].journal;
    let unknown = unrecorded(&next.log, journal);
    next.replicas[replica].journal.retain(|entry| entry.approval.outcome.is_none() || unknown.contains(entry));
}

/// Posts which the previous run did not finish have an unknown outcome.
fn restart(next: &mut World, replica: usize) {
    let now = next.now();
    let why = || PostOutcome::Unknown("restarted".into());
    let known = next.known(replica).clone();
    let inherited = assignments(&known, &name(replica)).into_iter().find_map(|errand| match errand {
        Assignment::Post { claim, .. } => Some((claim.attempt, Post::Answered(why()))),
        _ => None,
    });
    let local = &mut next.replicas[replica];
    for entry in local.journal.iter_mut().filter(|entry| entry.approval.outcome.is_none()) {
        entry.approval.outcome = Some((why(), now));
    }
    (local.up, local.post) = (true, inherited);
    local.alone_since = now;
}

fn elect(next: &mut World, replica: usize) {
    next.leader = Some(replica);
    next.term += 1;
    begin_turn(next, 1);
}

fn begin_turn(next: &mut World, turn: u64) {
    next.turn = turn;
    // All entries committed in this moment come after the beginning of the leadership.
    next.leading_since = Timestamp(next.now().0 - 1);
}

fn fail(cluster: &Cluster, next: &mut World, fault: Fault) {
    let unknown = || PostOutcome::Unknown("no reply".into());
    match fault {
        Fault::Cut(replica) => {
            next.faults.cuts += 1;
            next.replicas[replica].cut = true;
        }
        Fault::CutBefore(by, command) => {
            let before = next.log.clone();
            cut_while(cluster, next, by, command);
            let after = next.log.clone();
            let leader = next.leader.unwrap_or_default();
            for (replica, local) in next.replicas.iter_mut().enumerate() {
                let state = if replica == leader { after.clone() } else { before.clone() };
                local.behind = Some(Behind { state, applied: None });
            }
        }
        Fault::CutBehind(by, command) => {
            let before = next.log.clone();
            cut_while(cluster, next, by, command);
            let behind = Behind { state: next.log.clone(), applied: Some(before) };
            next.replicas.iter_mut().for_each(|local| local.behind = Some(behind.clone()));
        }
        Fault::Crash(replica) => crash(cluster, next, replica),
        Fault::Elect(replica) => {
            next.faults.elections += 1;
            elect(next, replica);
        }
        Fault::Cancel(event) => {
            next.faults.cancels += 1;
            leave(next, event);
        }
        Fault::LoseReply(replica) => {
            next.faults.losses += 1;
            let local = &mut next.replicas[replica];
            local.post = local.post.take().map(|(claim, _)| (claim, Post::Answered(unknown())));
        }
        Fault::LoseReplyAlone(replica) => {
            next.faults.losses += 1;
            end_alone(next, replica, &unknown());
        }
        Fault::NotSent(replica) => {
            next.faults.losses += 1;
            end_alone(next, replica, &PostOutcome::NotSent("paused".into()));
        }
        other => delay(cluster, next, other),
    }
}

/// Faults which make an action take time.
fn delay(cluster: &Cluster, next: &mut World, fault: Fault) {
    next.faults.delays += u8::from(!matches!(fault, Fault::AnnounceLate(_)));
    match fault {
        Fault::DelayPost(replica, event, claim) => {
            let sent = post(next, replica, &event, claim);
            next.wire.extend(sent);
        }
        Fault::DelaySend(replica) => {
            begin(cluster, next, replica);
        }
        Fault::DelayTakeover(replica) => {
            begin(cluster, next, replica);
            let sent = send_alone(next, replica);
            next.wire.extend(sent);
        }
        Fault::DelayAccount(replica) => {
            next.replicas[replica].account = account(next, replica);
        }
        Fault::DelayClaim(claim) => {
            next.late = next.leader.map(|leader| (leader, claim));
        }
        Fault::AnnounceLate(event) => {
            next.faults.lates += 1;
            announce(next, event);
            next.clouds[event].is_late = true;
        }
        _ => {}
    }
}

/// A replica which gets no reply to its proposal proposes again.
fn cut_while(cluster: &Cluster, next: &mut World, by: usize, command: Command) {
    next.faults.cuts += 1;
    next.replicas[0].cut = true;
    next.commit(cluster, by, command);
}

fn crash(cluster: &Cluster, next: &mut World, replica: usize) {
    next.faults.crashes += 1;
    next.leader.take_if(|leader| *leader == replica);
    let local = &mut next.replicas[replica];
    (local.up, local.post, local.alone, local.chosen) = (false, None, None, None);
    if cluster.mutant == Mutant::JournalLost {
        local.journal.clear();
    }
}

/// Records replicas which lost or regained contact in the step, and whether a leader begins a new quorum epoch.
fn settle_contact(cluster: &Cluster, before: &World, next: &mut World) {
    if before.led_by().is_none() && next.led_by().is_some() && before.term == next.term {
        begin_turn(next, before.turn + 1);
    }
    let now = next.now();
    for replica in 0..cluster.replicas {
        let has = next.has_contact(replica);
        if has {
            prune(next, replica);
        }
        let known = before.log.reconcile_states.get(&name(replica));
        let shows = |(cloud, seen): (&Cloud, &Shown)| if cloud.is_late { *seen } else { cloud.shows };
        let sees = next.clouds.iter().zip(&next.replicas[replica].sees).map(shows).collect();
        let local = &mut next.replicas[replica];
        if has {
            // Replicas in contact read their endpoints at once; the other replicas have until the end of the moment.
            local.sees = sees;
            (local.behind, local.acknowledged, local.alone_since) = (None, None, Timestamp(0));
        } else if before.has_contact(replica) {
            local.alone_since = now;
            // Entries committed in this moment from here on come after the acknowledgement.
            let is_older = known.is_some_and(|known| known.since == now);
            local.acknowledged = Some((before.term, if is_older { now } else { Timestamp(now.0 - 1) }));
            local.behind.get_or_insert_with(|| Behind { state: before.log.clone(), applied: None });
        }
        if has
            && cluster.mutant == Mutant::ReachabilityClears
            && Some(replica) != next.leader
            && let Some(suspicion) = Arc::make_mut(&mut next.log).reconcile_states.get_mut(&name(replica))
        {
            suspicion.is_reconciled = true;
        }
    }
}
