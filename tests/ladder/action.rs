//! Everything that may happen next in the abstract cluster, and what it does.

use crate::rule::Rule;
use crate::world::{Breach, Cluster, Report, Shown, Silence, Source, World};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    Announce(usize),
    /// The event leaves the documents: started by its notice and done, cancelled, or done after our approval.
    Leave(usize),
    /// A report of the whole document: its events are known together.
    TakeUp,
    Close(usize),
    Claim(usize, usize),
    TakeBack(usize),
    /// An approver confirms its claim, reads a fresh document, and posts.
    Post(usize, usize),
    /// A post takes effect, if the event is still Scheduled.
    Arrive(usize, usize),
    Suspect(usize),
    Wait(usize),
    /// A lone secondary settles on an event.
    Choose(usize, usize),
    WriteIntent(usize),
    PostAlone(usize),
    BuildReport(usize),
    CommitReport(usize),
    Cut(usize),
    Crash(usize),
    Heal(usize),
    Elect(usize),
}

pub(crate) fn possible(cluster: &Cluster, world: &World) -> Vec<Action> {
    let mut found = Vec::new();
    for event in 0..cluster.events.len() {
        of_event(cluster, world, event, &mut found);
    }
    let is_news = |event: usize| world.is_listed(event) && !world.log.events[event].taken_up;
    if world.is_led() && (0..cluster.events.len()).any(is_news) {
        found.push(Action::TakeUp);
    }
    for replica in 0..cluster.replicas {
        of_replica(cluster, world, replica, &mut found);
    }
    found.extend(world.wire.iter().map(|(replica, event)| Action::Arrive(*replica, *event)));
    found
}

fn of_event(cluster: &Cluster, world: &World, event: usize, found: &mut Vec<Action>) {
    let known = world.log.events[event];
    match world.cloud[event] {
        Shown::NotYet => found.push(Action::Announce(event)),
        Shown::Scheduled | Shown::Approved => found.push(Action::Leave(event)),
        Shown::Gone => {}
    }
    if !world.is_led() {
        return;
    }
    if world.cloud[event] == Shown::Gone && known.taken_up && !known.is_closed {
        found.push(Action::Close(event));
    }
    if may_be_claimed(cluster, world, event) {
        let able = (0..cluster.replicas).filter(|replica| world.has_contact(*replica));
        found.extend(able.filter(|able| known.approver != Some(*able)).map(|able| Action::Claim(event, able)));
    }
    if !cluster.keeps(Rule::ClaimsStand) && known.approver.is_some() {
        found.push(Action::TakeBack(event));
    }
}

/// The guard of a claim: the budget, and who may speak.
fn may_be_claimed(cluster: &Cluster, world: &World, event: usize) -> bool {
    let known = world.log.events[event];
    if !known.taken_up || known.is_closed || world.cloud[event] != Shown::Scheduled {
        return false;
    }
    if world.nodes[world.leader].owes_report && cluster.keeps(Rule::OwnReportComesFirst) {
        return false;
    }
    let is_suspicious = world.log.suspicions.iter().any(|suspicion| suspicion.stands);
    let counts_users = is_suspicious && cluster.keeps(Rule::SuspicionTakesUserEvents);
    known.approver.is_some()
        || (0..cluster.events.len()).filter(|other| *other != event).all(|other| {
            let is = world.log.events[other];
            let is_taken = is.approver.is_some() || is.is_journaled || (counts_users && cluster.is_users(other));
            !is.taken_up || is.is_closed || !is_taken
        })
}

fn of_replica(cluster: &Cluster, world: &World, replica: usize, found: &mut Vec<Action>) {
    let node = &world.nodes[replica];
    let contact = world.has_contact(replica);
    let view = world.view(replica);
    let mine = (0..cluster.events.len()).filter(|event| view.events[*event].approver == Some(replica));
    if node.is_up && (contact || !cluster.keeps(Rule::ReadBeforePost)) {
        let scheduled = mine.filter(|event| world.cloud[*event] == Shown::Scheduled);
        let once = scheduled.filter(|event| !world.wire.contains(&(replica, *event)));
        found.extend(once.map(|event| Action::Post(replica, event)));
    }
    let is_lost = world.is_led() && !contact;
    if is_lost && world.log.suspicions[replica].number == node.lost_at && cluster.keeps(Rule::SilenceIsSuspect) {
        found.push(Action::Suspect(replica));
    }
    if node.is_up && !contact {
        let is_noticed = !is_lost || world.log.suspicions[replica].number > node.lost_at;
        match node.silence {
            Silence::Short => found.push(Action::Wait(replica)),
            // The assumption on clocks: a leader suspects it before it acts.
            Silence::Half if is_noticed || !cluster.keeps(Rule::SilenceIsSuspect) => found.push(Action::Wait(replica)),
            Silence::Half => {}
            Silence::Whole => {
                let able = (0..cluster.events.len()).filter(|event| may_choose(cluster, world, replica, *event));
                found.extend(able.map(|event| Action::Choose(replica, event)));
            }
        }
    }
    if node.is_up && node.chosen.is_some() && (!contact || !cluster.keeps(Rule::IntentsExcludeReports)) {
        found.push(Action::WriteIntent(replica));
    }
    if node.is_up && node.intent.is_some() {
        found.push(Action::PostAlone(replica));
    }
    let is_owed = world.log.suspicions[replica].stands || node.owes_report;
    if contact && is_owed && node.report.as_ref().is_none_or(|it| it.number != world.log.suspicions[replica].number) {
        found.push(Action::BuildReport(replica));
    }
    if node.report.is_some() && world.is_led() {
        found.push(Action::CommitReport(replica));
    }
    let (had, most) = (world.faults, cluster.faults);
    if had.cuts < most.cuts && world.is_connected(replica) {
        found.push(Action::Cut(replica));
    }
    if had.crashes < most.crashes && node.is_up {
        found.push(Action::Crash(replica));
    }
    if !world.is_connected(replica) {
        found.push(Action::Heal(replica));
    }
    let may_lead = world.is_connected(replica) && world.has_quorum() && replica != world.leader;
    if may_lead && (!world.is_connected(world.leader) || had.elections < most.elections) {
        found.push(Action::Elect(replica));
    }
}

fn may_choose(cluster: &Cluster, world: &World, replica: usize, event: usize) -> bool {
    let node = &world.nodes[replica];
    let others = || (0..cluster.events.len()).filter(|other| *other != event);
    let is_only = others().all(|other| !world.is_listed(other)) || !cluster.keeps(Rule::AloneOnlyTheOnlyEvent);
    let has_hook = cluster.events[event] == Source::UserWithHook && cluster.keeps(Rule::AloneOnlyWithoutHooks);
    world.cloud[event] == Shown::Scheduled
        && (cluster.is_users(event) || !cluster.keeps(Rule::AloneOnlyForUsers))
        && !has_hook
        && is_only
        && node.chosen.is_none()
        && !node.journal.contains(&event)
        && others().all(|other| !node.journal.contains(&other) || !world.is_listed(other))
}

pub(crate) fn take(cluster: &Cluster, world: &World, action: Action) -> World {
    let mut next = world.clone();
    match action {
        Action::Announce(event) => next.cloud[event] = Shown::Scheduled,
        Action::Leave(event) => next.cloud[event] = Shown::Gone,
        Action::TakeUp => {
            for event in 0..cluster.events.len() {
                next.log.events[event].taken_up |= world.is_listed(event);
            }
        }
        Action::Close(event) => next.log.events[event].is_closed = true,
        Action::Claim(event, approver) => next.log.events[event].approver = Some(approver),
        Action::TakeBack(event) => next.log.events[event].approver = None,
        Action::Post(replica, event) => {
            if next.log.events[event].approver != Some(replica) {
                next.broke(Breach::S2);
            }
            next.wire.insert((replica, event));
        }
        Action::Arrive(replica, event) => arrive(&mut next, replica, event),
        Action::Suspect(replica) => suspect(&mut next, replica),
        Action::Wait(replica) => wait(&mut next, replica),
        Action::Choose(replica, event) => next.nodes[replica].chosen = Some(event),
        Action::WriteIntent(replica) => {
            let node = &mut next.nodes[replica];
            node.intent = node.chosen.take();
            node.journal.extend(node.intent);
        }
        Action::PostAlone(replica) => post_alone(cluster, &mut next, replica),
        Action::BuildReport(replica) => {
            let (number, journal) = (next.log.suspicions[replica].number, next.nodes[replica].journal.clone());
            next.nodes[replica].report = Some(Report { number, journal });
        }
        Action::CommitReport(replica) => commit_report(cluster, &mut next, replica),
        Action::Cut(replica) => {
            next.faults.cuts += 1;
            next.nodes[replica].is_cut = true;
        }
        Action::Crash(replica) => crash(cluster, &mut next, replica),
        Action::Heal(replica) => {
            let node = &mut next.nodes[replica];
            node.owes_report |= !node.is_up;
            (node.is_up, node.is_cut) = (true, false);
            if !cluster.keeps(Rule::ReachabilityClearsNothing) {
                next.log.suspicions[replica].stands = false;
            }
        }
        Action::Elect(leader) => elect(cluster, &mut next, leader),
    }
    settle_contact(cluster, world, &mut next);
    next
}

/// S4, at the moment when a post takes effect.
fn arrive(next: &mut World, replica: usize, event: usize) {
    next.wire.remove(&(replica, event));
    if next.cloud[event] == Shown::Scheduled {
        next.cloud[event] = Shown::Approved;
        if next.cloud.iter().filter(|shown| **shown == Shown::Approved).count() > 1 {
            next.broke(Breach::S4);
        }
    }
}

fn suspect(next: &mut World, replica: usize) {
    let suspicion = &mut next.log.suspicions[replica];
    suspicion.number += 1;
    suspicion.stands = true;
}

fn wait(next: &mut World, replica: usize) {
    let node = &mut next.nodes[replica];
    node.silence = if node.silence == Silence::Short { Silence::Half } else { Silence::Whole };
    node.owes_report |= node.silence == Silence::Whole;
}

fn post_alone(cluster: &Cluster, next: &mut World, replica: usize) {
    let Some(event) = next.nodes[replica].intent.take() else { return };
    if cluster.events[event] != Source::User {
        next.broke(Breach::S5);
    }
    if !next.nodes[replica].sent.insert(event) {
        next.broke(Breach::S2);
    }
    next.wire.insert((replica, event));
}

fn commit_report(cluster: &Cluster, next: &mut World, replica: usize) {
    let Some(report) = next.nodes[replica].report.take() else { return };
    for event in report.journal {
        let known = &mut next.log.events[event];
        if known.taken_up || cluster.keeps(Rule::ReportsNameUnknownEvents) {
            known.taken_up = true;
            known.is_journaled = true;
        }
    }
    let is_current = report.number == next.log.suspicions[replica].number;
    if is_current || !cluster.keeps(Rule::OldReportsClearNothing) {
        next.log.suspicions[replica].stands = false;
    }
    if is_current && next.has_contact(replica) {
        next.nodes[replica].owes_report = false;
    }
}

fn crash(cluster: &Cluster, next: &mut World, replica: usize) {
    next.faults.crashes += 1;
    let node = &mut next.nodes[replica];
    (node.is_up, node.is_cut, node.chosen, node.intent) = (false, false, None, None);
    if !cluster.keeps(Rule::JournalOutlivesCrashes) {
        node.journal.clear();
    }
}

fn elect(cluster: &Cluster, next: &mut World, leader: usize) {
    if next.is_connected(next.leader) {
        next.faults.elections += 1;
    }
    next.leader = leader;
    for other in (0..cluster.replicas).filter(|other| *other != leader) {
        if cluster.keeps(Rule::NewLeadersSuspect) {
            suspect(next, other);
        }
        if !cluster.keeps(Rule::VotesClearNothing) && next.is_connected(other) {
            next.log.suspicions[other].stands = false;
        }
    }
}

/// Who has lost or found contact by the step. A leader that has found it again
/// suspects whoever was silent for it, and itself: a report of its own that was built before says nothing of the time
/// since.
fn settle_contact(cluster: &Cluster, before: &World, next: &mut World) {
    let is_leader_back = next.nodes[next.leader].silence >= Silence::Half;
    for replica in 0..cluster.replicas {
        match (before.has_contact(replica), next.has_contact(replica)) {
            (true, false) => {
                next.nodes[replica].stale = Some(next.log.clone());
                next.nodes[replica].lost_at = next.log.suspicions[replica].number;
            }
            (false, true) => {
                let was_silent = next.nodes[replica].silence >= Silence::Half || is_leader_back;
                let is_noticed = next.log.suspicions[replica].number > next.nodes[replica].lost_at;
                if was_silent
                    && !is_noticed
                    && cluster.keeps(Rule::SilenceIsSuspect)
                    && cluster.keeps(Rule::ReachabilityClearsNothing)
                {
                    suspect(next, replica);
                }
                let node = &mut next.nodes[replica];
                (node.stale, node.silence) = (None, Silence::Short);
                if cluster.keeps(Rule::IntentsExcludeReports) {
                    node.chosen = None;
                }
            }
            (true, true) | (false, false) => {}
        }
    }
}
