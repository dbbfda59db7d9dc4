//! Everything that may happen next in the abstract cluster.

use crate::alone;
use crate::cluster::Cluster;
use crate::effect::may_be_suspected;
use crate::rule::Rule;
use crate::world::{Hook, Log, Shown, Silence, World};

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Action {
    /// It appears in the document of that replica; in all of them where documents agree.
    Announce(usize, usize),
    /// It appears in all documents that do not list it yet.
    Spread(usize),
    Ripen(usize),
    /// The time for its preparation is over.
    Pass(usize),
    /// The event leaves the documents: started by its notice and done, cancelled, or done after our approval.
    Leave(usize),
    /// A report of the whole document: its events are known together.
    TakeUp(usize),
    TakeUpOnly(usize),
    Begin(usize),
    Settle(usize),
    Hold(usize),
    /// What was touched is put back, if anything was.
    Close(usize),
    Claim(usize, usize),
    TakeBack(usize),
    /// A leader that nobody hears puts its report and a claim into its own log.
    Append(usize),
    /// They are committed, after all, under the next leader.
    CommitLate,
    /// An approver confirms its claim, reads a fresh document, and posts.
    Post(usize, usize),
    /// A post takes effect, if the event is still Scheduled.
    Arrive(usize),
    Suspect(usize),
    Wait(usize),
    /// A lone secondary settles on an event.
    Choose(usize, usize),
    WriteIntent(usize),
    PostAlone(usize),
    BuildAccount(usize),
    CommitAccount(usize),
    /// It acknowledges what comes, and does not apply it yet.
    Lag(usize),
    Cut(usize),
    Crash(usize),
    Heal(usize),
    Elect(usize),
    Remove(usize),
}

pub(crate) fn possible(cluster: &Cluster, world: &World) -> Vec<Action> {
    let mut found = Vec::new();
    for event in 0..cluster.events.len() {
        in_the_cloud(cluster, world, event, &mut found);
        if world.is_led() {
            in_the_log(cluster, world, event, &mut found);
        }
    }
    reports(cluster, world, &mut found);
    for replica in 0..cluster.replicas {
        of_approver(cluster, world, replica, &mut found);
        of_suspect(cluster, world, replica, &mut found);
        of_lone(cluster, world, replica, &mut found);
        faults(cluster, world, replica, &mut found);
    }
    found.extend(world.wire.iter().map(Action::Arrive));
    if world.appended.is_some() && world.is_led() {
        found.push(Action::CommitLate);
    }
    found
}

fn in_the_cloud(cluster: &Cluster, world: &World, event: usize, found: &mut Vec<Action>) {
    let sight = &world.cloud[event];
    let is_everywhere = sight.seen_by.len() == cluster.replicas;
    match sight.shown {
        Shown::NotYet if cluster.documents_differ => {
            found.extend((0..cluster.replicas).map(|replica| Action::Announce(event, replica)));
        }
        Shown::NotYet => found.push(Action::Announce(event, 0)),
        // The assumption on documents: it stays for longer than they may disagree.
        Shown::Scheduled | Shown::Approved if is_everywhere => found.push(Action::Leave(event)),
        Shown::Scheduled | Shown::Approved => found.push(Action::Spread(event)),
        Shown::Gone | Shown::Done => {}
    }
    let has_spread = |other: usize| !world.spreading().contains(other);
    let is_unripe = sight.shown == Shown::Scheduled && is_everywhere && !sight.is_ripe;
    // The other half of it: what was in one document when this one was in all of them is in all of them by now.
    if is_unripe && sight.spreading.iter().all(has_spread) {
        found.push(Action::Ripen(event));
    }
    if cluster.events[event].has_hook && !sight.is_due && sight.shown == Shown::Scheduled {
        found.push(Action::Pass(event));
    }
}

fn in_the_log(cluster: &Cluster, world: &World, event: usize, found: &mut Vec<Action>) {
    let known = world.log.events[event];
    let has_left = matches!(world.cloud[event].shown, Shown::Gone | Shown::Done);
    if world.log.is_open(event) && has_left {
        found.push(Action::Close(event));
    }
    let may_begin = cluster.events[event].has_hook && known.hook == Hook::None && !world.cloud[event].is_due;
    if may_begin && world.log.is_open(event) && known.approver.is_none() && !has_left {
        found.push(Action::Begin(event));
    }
    if known.hook == Hook::Open && !known.is_closed {
        found.push(Action::Settle(event));
    }
    if world.faults.holds < cluster.bounds.holds && world.log.is_open(event) && !known.is_held {
        found.push(Action::Hold(event));
    }
    let is_scheduled = world.sees(world.leader, event) && world.cloud[event].shown == Shown::Scheduled;
    if is_scheduled && !world.may_run(&world.log, event) && may_be_claimed(cluster, &world.log, event, world.leader) {
        let able = (0..cluster.replicas).filter(|replica| world.has_contact(*replica) && world.sees(*replica, event));
        let is_lost = |approver: u8| !world.has_contact(usize::from(approver));
        if known.approver.is_none_or(is_lost) {
            found.extend(able.map(|able| Action::Claim(event, able)));
        }
    }
    if !cluster.keeps(Rule::ClaimsStand) && known.approver.is_some() {
        found.push(Action::TakeBack(event));
    }
}

/// The guard of a claim: the budget, and who may speak. A claim that stands already only gets another approver.
pub(crate) fn may_be_claimed(cluster: &Cluster, log: &Log, event: usize, leader: usize) -> bool {
    let known = log.events[event];
    if !log.is_open(event) || known.is_held {
        return false;
    }
    if log.suspects.contains(leader) && cluster.keeps(Rule::SuspectLeadersClaimNothing) {
        return false;
    }
    let counts_users = !log.suspects.is_empty() && cluster.keeps(Rule::SuspicionTakesUserEvents);
    known.approver.is_some()
        || cluster.others(event).all(|other| {
            let is = log.events[other];
            let is_taken = is.approver.is_some() || is.is_journaled || (counts_users && cluster.events[other].is_users);
            !log.is_open(other) || !is_taken
        })
}

fn reports(cluster: &Cluster, world: &World, found: &mut Vec<Action>) {
    let leader = world.leader;
    let is_news = |event: usize| !world.log.events[event].taken_up;
    if world.is_led() {
        let reporters = if cluster.documents_differ { cluster.replicas } else { 1 };
        let reporters = (0..reporters).map(|step| (leader + step) % cluster.replicas);
        let able = reporters.filter(|it| world.has_contact(*it) && world.document(*it).iter().any(is_news));
        found.extend(able.map(Action::TakeUp));
        if !cluster.keeps(Rule::ReportsAreWhole) {
            found.extend(world.document(leader).iter().filter(|event| is_news(*event)).map(Action::TakeUpOnly));
        }
        return;
    }
    let is_heard = world.nodes[leader].silence < Silence::Half && !world.nodes[leader].is_fresh;
    let may_claim = is_heard || !cluster.keeps(Rule::LeadersClaimInContact);
    let may_append = world.nodes[leader].is_up && world.appended.is_none() && may_claim;
    if may_append && world.faults.appends < cluster.bounds.appends {
        let listed = world.document(leader).iter();
        found.extend(listed.filter(|event| world.cloud[*event].shown == Shown::Scheduled).map(Action::Append));
    }
}

fn of_approver(cluster: &Cluster, world: &World, replica: usize, found: &mut Vec<Action>) {
    let node = &world.nodes[replica];
    if !node.is_up || (!world.has_contact(replica) && cluster.keeps(Rule::ReadBeforePost)) {
        return;
    }
    let view = world.view(replica);
    let mine = (0..cluster.events.len()).filter(|event| view.events[*event].approver.map(usize::from) == Some(replica));
    let scheduled = mine.filter(|event| world.cloud[*event].shown == Shown::Scheduled && world.sees(replica, *event));
    found.extend(scheduled.filter(|event| !world.wire.contains(*event)).map(|event| Action::Post(replica, event)));
}

fn of_suspect(cluster: &Cluster, world: &World, replica: usize, found: &mut Vec<Action>) {
    let node = &world.nodes[replica];
    let contact = world.has_contact(replica);
    let is_suspect = world.log.suspects.contains(replica);
    if is_overlooked(cluster, world, replica) {
        found.push(Action::Suspect(replica));
    }
    if contact && is_suspect && node.account.is_none_or(|account| !account.is_current) {
        found.push(Action::BuildAccount(replica));
    }
    if node.account.is_some() && world.is_led() {
        found.push(Action::CommitAccount(replica));
    }
}

fn of_lone(cluster: &Cluster, world: &World, replica: usize, found: &mut Vec<Action>) {
    let node = &world.nodes[replica];
    if !node.is_up {
        return;
    }
    if !world.has_contact(replica) {
        if may_wait(cluster, world, replica) {
            found.push(Action::Wait(replica));
        }
        let able = (0..cluster.events.len()).filter(|event| alone::may_choose(cluster, world, replica, *event));
        found.extend(able.map(|event| Action::Choose(replica, event)));
    }
    let may_write = !world.has_contact(replica) || !cluster.keeps(Rule::IntentsExcludeAccounts);
    if node.chosen.is_some() && may_write {
        found.push(Action::WriteIntent(replica));
    }
    if node.intent.is_some() {
        found.push(Action::PostAlone(replica));
    }
}

/// The assumptions on clocks stand here. A leader that counts a voter's silence has put it under suspicion when the
/// voter has waited for half of the time; a leader notices that it lost its quorum before anybody acts alone; and what
/// was in one document at the half is in all of them at the whole.
fn may_wait(cluster: &Cluster, world: &World, replica: usize) -> bool {
    let node = &world.nodes[replica];
    let leader = &world.nodes[world.leader];
    match node.silence {
        Silence::Short => !is_overlooked(cluster, world, replica),
        Silence::Half => {
            let leads_still = replica != world.leader && leader.is_up && leader.silence == Silence::Short;
            let is_early = (leads_still && !world.is_led()) || is_overlooked(cluster, world, replica);
            let has_spread = |event: usize| !world.spreading().contains(event);
            !is_early && node.spreading.iter().all(has_spread)
        }
        Silence::Whole => false,
    }
}

/// The leader counts its silence, and has yet to put it under a new suspicion.
fn is_overlooked(cluster: &Cluster, world: &World, replica: usize) -> bool {
    let node = &world.nodes[replica];
    let is_lost = world.is_led() && world.log.voters.contains(replica) && !world.is_connected(replica);
    is_lost
        && (node.is_watched && !node.is_noticed)
        && cluster.keeps(Rule::SilenceIsSuspect)
        && may_be_suspected(cluster, world, replica)
}

fn faults(cluster: &Cluster, world: &World, replica: usize, found: &mut Vec<Action>) {
    let node = &world.nodes[replica];
    let (had, most) = (world.faults, cluster.bounds);
    let is_voter = world.log.voters.contains(replica);
    if !cluster.keeps(Rule::TheTailCounts) && node.stale.is_none() && replica != world.leader {
        found.push(Action::Lag(replica));
    }
    if had.cuts < most.cuts && world.is_connected(replica) {
        found.push(Action::Cut(replica));
    }
    if had.crashes < most.crashes && node.is_up {
        found.push(Action::Crash(replica));
    }
    if is_voter && !world.is_connected(replica) {
        found.push(Action::Heal(replica));
    }
    if had.removals < most.removals && is_voter && world.is_led() && !world.has_contact(replica) {
        found.push(Action::Remove(replica));
    }
    let may_lead = world.is_connected(replica) && world.has_quorum() && replica != world.leader;
    if may_lead && (!world.is_connected(world.leader) || had.elections < most.elections) {
        found.push(Action::Elect(replica));
    }
}
