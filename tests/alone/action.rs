//! Actions which may happen next.

use std::time::Duration;

use allclear::core::assignments::{Assignment, assignments};
use allclear::core::isolation::reconciliation::unrecorded;
use allclear::core::model::attempt::Outcome;
use allclear::core::model::command::{Command, FinishAttempt, ReconcileJournal, RecordPost};
use allclear::core::model::id::{AttemptId, EventId};
use allclear::core::observation::{Observation, Patience, Poll, PollTime};

use crate::mutant::Mutant;
use crate::world::{Alone, Cluster, Post, Sent, Shown, World, event_id, name};

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    Announce(usize),
    /// The replicas in contact see the event too.
    Show(usize),
    /// The event leaves the documents: started and done, or cancelled.
    Leave(usize),
    /// A replica reads its endpoint.
    Look(usize),
    Commit(usize, Command),
    /// The leader's plan is committed.
    Decide(Command),
    /// The claim is confirmed by a linearizable read, a fresh document shows the event as Scheduled, and the approval
    /// is posted.
    Post(usize, EventId, AttemptId),
    /// A reconciliation is built and committed.
    Account(usize),
    /// The isolated approval is written into the journal, and posted.
    TakeOver(usize),
    /// A delayed message arrives.
    Arrive(Sent),
    Send(usize),
    ArriveAccount(usize),
    ArriveLate,
    /// Only where a mutant lets time pass before the isolated approval begins.
    Choose(usize),
    Begin(usize),
    /// Time advances to the next moment.
    Wait,
    Heal(usize),
    Restart(usize),
    /// Only without a leader.
    Elect(usize),
    /// An operator sends a hold to the current leader.
    Hold(EventId),
    Fault(Fault),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Fault {
    Cut(usize),
    /// The link of a pair is cut while the leader appends an entry, which the other replica never gets.
    CutBefore(usize, Command),
    /// The link of a pair is cut while the leader appends an entry; both have the entry, but neither knows of the
    /// commit.
    CutBehind(usize, Command),
    Crash(usize),
    Elect(usize),
    DelayPost(usize, EventId, AttemptId),
    /// A delay between the journal and the post.
    DelaySend(usize),
    /// A delay on the wire.
    DelayTakeover(usize),
    DelayAccount(usize),
    DelayClaim(Command),
    /// The event is shown to the replicas in contact only later in the moment.
    AnnounceLate(usize),
    LoseReply(usize),
    LoseReplyAlone(usize),
    /// The replica was paused, or the endpoint did not accept the connection.
    NotSent(usize),
    /// The event leaves the documents without an approval.
    Cancel(usize),
}

pub(crate) fn possible(cluster: &Cluster, world: &World) -> Vec<Action> {
    let chores = chores(cluster, world);
    let mut found: Vec<Action> = chores.clone();
    found.extend(world.wire.iter().cloned().map(Action::Arrive));
    found.extend(recoveries(cluster, world));
    found.extend(in_flight(world));
    for replica in (0..cluster.replicas).filter(|replica| world.replicas[*replica].up) {
        found.extend(steps_alone(cluster, world, replica));
    }
    // Nothing can go wrong any more when all is over.
    if world.is_gone() && world.wire.is_empty() {
        return found;
    }
    let is_last = world.moment + 1 == cluster.moments;
    let is_late = world.clouds.iter().any(|cloud| cloud.is_late);
    if chores.is_empty() && !is_last && !is_late && !world.is_gone() {
        found.push(Action::Wait);
    }
    // An event announced while the log is written could have been announced before.
    let is_idle = world.led_by().is_none() || chores.is_empty();
    let announced = world.clouds.iter().enumerate().filter(|_| is_idle);
    found.extend(announced.filter_map(|(event, cloud)| match cloud.shows {
        Shown::NotYet => Some(Action::Announce(event)),
        Shown::Scheduled => cloud.approved.then_some(Action::Leave(event)),
        Shown::Gone => None,
    }));
    let late = (0..cluster.events.len()).filter(|event| world.clouds[*event].is_late);
    found.extend(late.map(Action::Show));
    if world.log.operator_seq < cluster.holds.into() && world.led_by().is_some() {
        found.extend(world.log.open.keys().cloned().map(Action::Hold));
    }
    found.extend(finishes(world));
    found.extend(faults(cluster, world, &chores).into_iter().map(Action::Fault));
    found
}

/// Actions of the replicas before time goes on: all read their endpoints; where there is a leader, the replicas report,
/// act on claims, and reconcile, and the leader's plan is committed.
fn chores(cluster: &Cluster, world: &World) -> Vec<Action> {
    let is_news = |replica: &usize| {
        let local = &world.replicas[*replica];
        local.up
            && !world.has_contact(*replica)
            && local.sees.iter().zip(&world.clouds).any(|(seen, cloud)| *seen != cloud.shows)
    };
    let mut found: Vec<Action> = (0..cluster.replicas).filter(is_news).map(Action::Look).collect();
    let Some(leader) = world.led_by() else {
        return found;
    };
    let connected = || (0..cluster.replicas).filter(|replica| world.connected(*replica));
    let input = world.situation_of_leader(cluster, leader);
    let next = connected().find_map(|replica| report(cluster, world, replica));
    let next = next.or_else(|| connected().find_map(|replica| errand(world, replica)));
    let due = cluster.mutant.plan(&world.log, &input).into_iter().next();
    // A leadership begins before or after other messages in flight; decisions follow from the known state.
    let is_first = next.is_none() || matches!(due, Some(Command::BeginLeadership(_)));
    found.extend(due.filter(|_| is_first).map(Action::Decide));
    found.extend(next);
    found.extend(connected().filter(|replica| account(world, *replica).is_some()).map(Action::Account));
    found
}

/// Polls are made as needed, all at the same time.
const POLLS: usize = 5;
const AT_ONCE: Patience =
    Patience { poll_interval: Duration::ZERO, gone_after: Duration::ZERO, stale_after: Duration::ZERO };

fn report(cluster: &Cluster, world: &World, replica: usize) -> Option<Action> {
    let me = name(replica);
    let mut observation = Observation::default();
    observation.adopt_state(&world.log, &me);
    for _ in 0..POLLS {
        observation.record_poll(
            Poll {
                document: &world.document(cluster, replica),
                time: PollTime::at_once(world.now()),
                patience: AT_ONCE,
            },
            &world.log,
            |_| true,
        );
    }
    observation.report(&world.log, &me).map(|report| Action::Commit(replica, report))
}

/// The next action for the log of a replica in contact.
fn errand(world: &World, replica: usize) -> Option<Action> {
    let local = &world.replicas[replica];
    if let Some((claim, Post::Answered(outcome))) = &local.post {
        let event = world.event_of(*claim)?;
        return Some(Action::Commit(
            replica,
            Command::RecordPost(RecordPost { event, attempt: *claim, outcome: outcome.clone() }),
        ));
    }
    assignments(&world.log, &name(replica)).into_iter().find_map(|errand| match errand {
        Assignment::Run { event, attempt, .. } => (attempt.deadline <= world.now())
            .then(|| Action::Commit(replica, settled(event, attempt.id, Outcome::TimedOut("it".into())))),
        Assignment::Cancel { event, attempt } => {
            Some(Action::Commit(replica, settled(event, attempt.id, Outcome::Cancelled)))
        }
        Assignment::Post { event, claim } => {
            local.post.is_none().then(|| Action::Post(replica, event.announcement.id.clone(), claim.attempt))
        }
    })
}

fn settled(event: &allclear::core::model::event::Event, attempt: AttemptId, outcome: Outcome) -> Command {
    Command::FinishAttempt(FinishAttempt { event: event.announcement.id.clone(), attempt, outcome })
}

/// A hook ends before its deadline.
fn finishes(world: &World) -> Vec<Action> {
    let attempts = world.log.open_events().flat_map(|event| event.attempts.iter().map(move |each| (event, each)));
    let running = attempts.filter(|(_, attempt)| attempt.outcome.is_none() && world.now() < attempt.deadline);
    let of =
        |host: &allclear::core::model::id::VmName| (0..world.replicas.len()).find(|replica| name(*replica) == *host);
    let ended = running.filter_map(|(event, attempt)| {
        let host = of(&attempt.on).filter(|host| world.has_contact(*host))?;
        Some(Action::Commit(host, settled(event, attempt.id, Outcome::Done)))
    });
    ended.collect()
}

/// Current proposal of `core::procedure::reconciliation`.
pub(crate) fn account(world: &World, replica: usize) -> Option<Command> {
    let suspicion = world.log.reconcile_states.get(&name(replica));
    let journal = unrecorded(&world.log, &world.replicas[replica].journal);
    let is_owed = suspicion.is_some_and(|suspicion| !suspicion.is_reconciled) || !journal.is_empty();
    is_owed.then(|| {
        Command::ReconcileJournal(ReconcileJournal {
            number: suspicion.map_or(0, |suspicion| suspicion.number),
            journal,
        })
    })
}

/// Sent messages arrive even if the sender has lost contact.
fn in_flight(world: &World) -> Vec<Action> {
    let sent = |replica: &usize| world.replicas[*replica].account.is_some();
    let replicas = (0..world.replicas.len()).filter(|_| world.led_by().is_some());
    let late = world.late.iter().filter(|_| world.led_by().is_some()).map(|_| Action::ArriveLate);
    replicas.filter(sent).map(Action::ArriveAccount).chain(late).collect()
}

fn steps_alone(cluster: &Cluster, world: &World, replica: usize) -> Option<Action> {
    let local = &world.replicas[replica];
    if let Some((_, Alone::Begun)) = local.alone {
        return Some(Action::Send(replica));
    }
    if cluster.mutant == Mutant::BegunInContact {
        if local.chosen.is_some() {
            return Some(Action::Begin(replica));
        }
        return world.takeover(cluster, replica).map(|_| Action::Choose(replica));
    }
    world.takeover(cluster, replica).map(|_| Action::TakeOver(replica))
}

fn recoveries(cluster: &Cluster, world: &World) -> Vec<Action> {
    let mut found = Vec::new();
    for (replica, local) in world.replicas.iter().enumerate() {
        if !local.up {
            found.push(Action::Restart(replica));
        } else if local.cut {
            found.push(Action::Heal(replica));
        }
    }
    if world.led_by().is_none() && world.has_quorum() {
        found.extend((0..cluster.replicas).filter(|replica| may_lead(world, *replica)).map(Action::Elect));
    }
    found
}

/// The replica has all decided entries.
fn may_lead(world: &World, replica: usize) -> bool {
    world.connected(replica) && world.has_quorum() && *world.known(replica) == world.log
}

fn faults(cluster: &Cluster, world: &World, chores: &[Action]) -> Vec<Fault> {
    let (had, most) = (world.faults, cluster.faults);
    let mut found = Vec::new();
    for (replica, local) in world.replicas.iter().enumerate() {
        // Cutting the link at either end of a pair is enough.
        if had.cuts < most.cuts && !local.cut && (cluster.replicas > 2 || replica == 0) {
            found.push(Fault::Cut(replica));
        }
        if had.crashes < most.crashes && local.up {
            found.push(Fault::Crash(replica));
        }
        if had.elections < most.elections
            && world.led_by().is_some_and(|leader| leader != replica)
            && may_lead(world, replica)
        {
            found.push(Fault::Elect(replica));
        }
        if had.losses < most.losses {
            found.extend(matches!(local.post, Some((_, Post::Sent))).then_some(Fault::LoseReply(replica)));
            match local.alone {
                Some((_, Alone::Begun)) => found.push(Fault::NotSent(replica)),
                Some((_, Alone::Sent)) => found.push(Fault::LoseReplyAlone(replica)),
                None => {}
            }
        }
        if had.delays < most.delays && local.up && world.takeover(cluster, replica).is_some() {
            found.extend([Fault::DelaySend(replica), Fault::DelayTakeover(replica)]);
        }
    }
    if had.delays < most.delays {
        found.extend(chores.iter().filter_map(|chore| match chore {
            Action::Post(replica, event, claim) => Some(Fault::DelayPost(*replica, event.clone(), *claim)),
            Action::Account(replica) if world.replicas[*replica].account.is_none() => {
                Some(Fault::DelayAccount(*replica))
            }
            Action::Decide(claim @ Command::ClaimApproval(_)) if world.late.is_none() => {
                Some(Fault::DelayClaim(claim.clone()))
            }
            _ => None,
        }));
    }
    if had.lates < most.lates && world.led_by().is_some() && (0..cluster.replicas).any(|it| !world.connected(it)) {
        let unknown = |event: &usize| world.clouds[*event].shows == Shown::NotYet;
        found.extend((0..cluster.events.len()).filter(unknown).map(Fault::AnnounceLate));
    }
    if had.cancels < most.cancels {
        let unapproved = |event: &usize| {
            let cloud = &world.clouds[*event];
            cloud.shows == Shown::Scheduled && !cloud.approved
        };
        found.extend((0..cluster.events.len()).filter(unapproved).map(Fault::Cancel));
    }
    if had.cuts < most.cuts && cluster.replicas == 2 && world.led_by().is_some() {
        for chore in chores {
            let (by, command) = match chore {
                Action::Commit(by, command) => (*by, command.clone()),
                Action::Decide(command) => (world.leader.unwrap_or_default(), command.clone()),
                _ => continue,
            };
            let is_mutant = cluster.mutant == Mutant::TailIgnored;
            found.push(if is_mutant { Fault::CutBehind(by, command) } else { Fault::CutBefore(by, command) });
        }
    }
    found
}

/// No pending actions are left.
pub(crate) fn is_quiet(cluster: &Cluster, world: &World) -> bool {
    let is_idle = |replica: usize| world.has_contact(replica) && world.replicas[replica].alone.is_none();
    world.is_gone()
        && world.wire.is_empty()
        && (0..cluster.replicas).all(is_idle)
        && finishes(world).is_empty()
        && chores(cluster, world).is_empty()
}

impl World {
    /// Event to which a claim belongs.
    pub(crate) fn event_of(&self, claim: AttemptId) -> Option<EventId> {
        let mut events = self.log.events();
        let found = events.find(|event| event.claims.iter().any(|each| each.attempt == claim));
        found.map(|event| event.announcement.id.clone())
    }
}

pub(crate) fn number_of(event: &EventId) -> usize {
    (0..3).find(|number| event_id(*number) == *event).unwrap_or_default()
}
