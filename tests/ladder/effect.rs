//! What an action does to the world, and where the properties are judged.

use crate::action::{Action, may_be_claimed};
use crate::cluster::Cluster;
use crate::rule::Rule;
use crate::set::Set;
use crate::world::{Account, Appended, Breach, Hook, Shown, Silence, World};

pub(crate) fn take(cluster: &Cluster, world: &World, action: Action) -> World {
    let mut next = world.clone();
    match action {
        Action::Announce(..) | Action::Spread(_) | Action::Ripen(_) | Action::Pass(_) | Action::Leave(_) => {
            show(cluster, &mut next, action);
        }
        Action::TakeUp(replica) => take_up(&mut next, world.document(replica)),
        Action::TakeUpOnly(event) => next.log.events[event].taken_up = true,
        Action::Begin(event) => next.log.events[event].hook = Hook::Open,
        Action::Settle(event) => next.log.events[event].hook = Hook::Settled,
        Action::Hold(event) => {
            next.faults.holds += 1;
            next.log.events[event].is_held = true;
        }
        Action::Close(event) => next.log.events[event].is_closed = true,
        Action::Claim(event, approver) => next.log.events[event].approver = u8::try_from(approver).ok(),
        Action::TakeBack(event) => next.log.events[event].approver = None,
        Action::Append(event) => {
            next.faults.appends += 1;
            let by = world.leader;
            next.appended = Some(Appended { report: world.document(by), claim: event, by });
        }
        Action::CommitLate => commit_appended(cluster, &mut next),
        Action::Post(replica, event) => {
            if next.log.events[event].approver.map(usize::from) != Some(replica) {
                next.broke(Breach::S2);
            }
            next.wire.insert(event);
        }
        Action::Arrive(event) => arrive(cluster, &mut next, event),
        Action::Suspect(replica) => suspect(&mut next, replica),
        Action::Wait(_) | Action::Choose(..) | Action::WriteIntent(_) | Action::PostAlone(_) => {
            act_alone(cluster, &mut next, action);
        }
        Action::BuildAccount(replica) => {
            let journal = next.nodes[replica].journal;
            next.nodes[replica].account = Some(Account { is_current: true, journal });
        }
        Action::CommitAccount(replica) => commit_account(cluster, &mut next, replica),
        Action::Lag(replica) => next.nodes[replica].stale = Some(world.log),
        Action::Cut(_) | Action::Crash(_) | Action::Heal(_) | Action::Elect(_) | Action::Remove(_) => {
            fail(cluster, &mut next, action);
        }
    }
    settle_contact(cluster, world, &mut next);
    next
}

fn show(cluster: &Cluster, next: &mut World, action: Action) {
    let all = Set::first(cluster.replicas);
    match action {
        Action::Announce(event, replica) => {
            let sight = &mut next.cloud[event];
            sight.shown = Shown::Scheduled;
            sight.is_ripe = !cluster.documents_differ;
            sight.seen_by = if cluster.documents_differ { Set::first(0) } else { all };
            sight.seen_by.insert(replica);
        }
        Action::Spread(event) => {
            next.cloud[event].seen_by = all;
            next.cloud[event].spreading = next.spreading();
        }
        Action::Ripen(event) => {
            next.cloud[event].is_ripe = true;
            next.cloud[event].spreading = Set::default();
        }
        Action::Pass(event) => next.cloud[event].is_due = true,
        Action::Leave(event) => {
            let sight = &mut next.cloud[event];
            sight.shown = if sight.shown == Shown::Approved { Shown::Done } else { Shown::Gone };
            (sight.seen_by, sight.is_ripe, sight.spreading) = (Set::default(), false, Set::default());
        }
        _ => {}
    }
}

fn take_up(next: &mut World, report: Set) {
    for event in report.iter() {
        next.log.events[event].taken_up = true;
    }
}

/// S4, at the moment when a post takes effect.
fn arrive(cluster: &Cluster, next: &mut World, event: usize) {
    next.wire.remove(event);
    if next.cloud[event].shown == Shown::Scheduled {
        next.cloud[event].shown = Shown::Approved;
        if cluster.others(event).any(|other| next.takes_its_member(other)) {
            next.broke(Breach::S4);
        }
    }
}

/// A new number.
fn suspect(next: &mut World, replica: usize) {
    next.log.suspects.insert(replica);
    next.nodes[replica].is_noticed = !next.has_contact(replica);
    if let Some(account) = &mut next.nodes[replica].account {
        account.is_current = false;
    }
}

fn act_alone(cluster: &Cluster, next: &mut World, action: Action) {
    match action {
        Action::Wait(replica) => {
            let spreading = next.spreading();
            let node = &mut next.nodes[replica];
            if node.silence == Silence::Short {
                (node.silence, node.spreading) = (Silence::Half, spreading);
            } else {
                (node.silence, node.spreading) = (Silence::Whole, Set::default());
            }
        }
        Action::Choose(replica, event) => next.nodes[replica].chosen = u8::try_from(event).ok(),
        Action::WriteIntent(replica) => write_intent(cluster, next, replica),
        Action::PostAlone(replica) => {
            let Some(event) = next.nodes[replica].intent.take().map(usize::from) else { return };
            if !next.nodes[replica].sent.insert(event) {
                next.broke(Breach::S2);
            }
            next.wire.insert(event);
        }
        _ => {}
    }
}

/// S5, when the lone secondary decides on an event that is still there. What one of a pair has not acknowledged is not
/// committed.
fn write_intent(cluster: &Cluster, next: &mut World, replica: usize) {
    let Some(event) = next.nodes[replica].chosen.take() else { return };
    let acknowledged = if next.log.voters.len() < 3 { next.log } else { *next.view(replica) };
    let node = &mut next.nodes[replica];
    node.intent = Some(event);
    node.journal.insert(usize::from(event));
    let event = usize::from(event);
    let runs = next.may_run(&next.log, event);
    let is_wrong = !cluster.events[event].is_users || runs || acknowledged.events[event].is_held;
    if is_wrong && next.cloud[event].shown == Shown::Scheduled {
        next.broke(Breach::S5);
    }
}

fn commit_account(cluster: &Cluster, next: &mut World, replica: usize) {
    let Some(account) = next.nodes[replica].account.take() else { return };
    for event in account.journal.iter() {
        let known = &mut next.log.events[event];
        if known.taken_up || cluster.keeps(Rule::AccountsNameUnknownEvents) {
            known.taken_up = true;
            known.is_journaled = true;
        }
    }
    if account.is_current || !cluster.keeps(Rule::OldAccountsClearNothing) {
        next.log.suspects.remove(replica);
    }
}

/// The report and the claim of a leader that was not heard; the guard of the claim is asked now.
fn commit_appended(cluster: &Cluster, next: &mut World) {
    let Some(Appended { report, claim, by }) = next.appended.take() else { return };
    take_up(next, report);
    if may_be_claimed(cluster, &next.log, claim, by) {
        next.log.events[claim].approver = u8::try_from(by).ok();
    }
}

fn fail(cluster: &Cluster, next: &mut World, action: Action) {
    match action {
        Action::Cut(replica) => {
            next.faults.cuts += 1;
            next.nodes[replica].is_cut = true;
        }
        Action::Crash(replica) => {
            next.faults.crashes += 1;
            let node = &mut next.nodes[replica];
            (node.is_up, node.is_fresh) = (false, true);
            (node.chosen, node.intent) = (None, None);
            (node.silence, node.spreading) = (Silence::Short, Set::default());
            if !cluster.keeps(Rule::JournalOutlivesCrashes) {
                node.journal = Set::default();
            }
        }
        Action::Heal(replica) => {
            let node = &mut next.nodes[replica];
            if node.is_up {
                node.is_cut = false;
            }
            node.is_up = true;
            if !cluster.keeps(Rule::ReachabilityClearsNothing) {
                next.log.suspects.remove(replica);
            }
        }
        Action::Elect(leader) => elect(cluster, next, leader),
        Action::Remove(replica) => {
            next.faults.removals += 1;
            next.log.voters.remove(replica);
            if !cluster.keeps(Rule::RemovalClearsNothing) {
                next.log.suspects.remove(replica);
            } else if cluster.keeps(Rule::WhoIsRemovedIsSuspect) {
                suspect(next, replica);
            }
        }
        _ => {}
    }
}

fn elect(cluster: &Cluster, next: &mut World, leader: usize) {
    if next.is_connected(next.leader) {
        next.faults.elections += 1;
    }
    next.leader = leader;
    for node in &mut next.nodes {
        node.is_watched = false;
    }
    if cluster.keeps(Rule::OnlyTheLeaderClaims) {
        next.appended = None;
    }
    if cluster.keeps(Rule::NewLeadersSuspect) {
        lead(cluster, next);
    }
    if !cluster.keeps(Rule::VotesClearNothing) {
        let granted: Set = next.log.voters.iter().filter(|it| next.is_connected(*it) && *it != leader).collect();
        granted.iter().for_each(|voter| next.log.suspects.remove(voter));
    }
}

/// `Lead`: a new number for every voter, the leader too.
fn lead(cluster: &Cluster, next: &mut World) {
    for voter in next.log.voters.iter() {
        if voter != next.leader || cluster.keeps(Rule::LeadersSuspectThemselves) {
            suspect(next, voter);
        }
    }
}

/// Who has lost or found contact by the step.
fn settle_contact(cluster: &Cluster, before: &World, next: &mut World) {
    let contacts = |world: &World| -> Set { (0..cluster.replicas).filter(|it| world.has_contact(*it)).collect() };
    let (had, has) = (contacts(before), contacts(next));
    for replica in had.iter().filter(|it| !has.contains(*it)) {
        let log = next.log;
        let node = &mut next.nodes[replica];
        node.stale.get_or_insert(log);
        (node.is_noticed, node.is_watched) = (false, true);
    }
    if !before.is_led() && next.is_led() && before.leader == next.leader {
        come_back(cluster, next);
    }
    for replica in has.iter().filter(|it| !had.contains(*it)) {
        let node = &mut next.nodes[replica];
        (node.stale, node.silence, node.spreading) = (None, Silence::Short, Set::default());
        (node.is_fresh, node.is_noticed, node.is_watched) = (false, false, false);
        if cluster.keeps(Rule::IntentsExcludeAccounts) {
            node.chosen = None;
        }
    }
}

/// A leader has found its quorum again. What it appended meanwhile comes first, the suspicion of whoever was silent for
/// it among that; then it leads anew, if it was without a quorum for long, or was restarted.
fn come_back(cluster: &Cluster, next: &mut World) {
    commit_appended(cluster, next);
    let leader = next.nodes[next.leader];
    for silent in next.log.voters.iter().filter(|it| *it != next.leader && !leader.is_fresh).collect::<Set>().iter() {
        let node = next.nodes[silent];
        let is_silent = node.silence >= Silence::Half && node.is_watched && !node.is_noticed;
        if is_silent && cluster.keeps(Rule::SilenceIsSuspect) && may_be_suspected(cluster, next, silent) {
            suspect(next, silent);
        }
    }
    let was_long = leader.silence >= Silence::Half && cluster.keeps(Rule::LeadersComeBackAnew);
    if was_long || (leader.is_fresh && cluster.keeps(Rule::LeadersStartAnew)) {
        lead(cluster, next);
    }
}

/// For one more loss of contact.
pub(crate) fn may_be_suspected(cluster: &Cluster, world: &World, replica: usize) -> bool {
    cluster.keeps(Rule::EachLossIsANewNumber) || !world.log.suspects.contains(replica)
}
