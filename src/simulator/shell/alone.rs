//! Watches for the time when this replica is alone and approves what the machine says it may then, as
//! `replica::alone`.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::Here;
use crate::machine::alone::{Alone, Peer};
use crate::machine::claim::PostOutcome;
use crate::machine::document::{Document, Status};
use crate::machine::id::{EventId, VmName};
use crate::machine::situation::Situation;
use crate::machine::takeover::{Journaled, Takeover};
use crate::machine::time::Timestamp;
use crate::simulator::agreement::Chain;
use crate::simulator::endpoint::Why;
use crate::simulator::mistake::Mistake;

const TICK: Duration = Duration::from_millis(250);
const PAUSED_AFTER: Duration = Duration::from_secs(2);
const FRESH_FOR: Duration = Duration::from_secs(2);
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How long it has been alone, and what it has seen meanwhile; all on the steady clock.
struct Watch {
    awake_since: Timestamp,
    last_tick: Timestamp,
    told_of_leader: Option<Timestamp>,
    seen_since: BTreeMap<EventId, Timestamp>,
}

pub(super) async fn watch(here: Here) {
    let mut watch = Watch::new(here.steady());
    let mut not_before = watch.last_tick;
    loop {
        here.sleep(TICK).await;
        let alone = watch.look(&here);
        let is_alone = alone.is_some();
        here.process.alone.replace(alone);
        let situation = is_alone.then(|| here.situation());
        let due = situation.filter(|situation| {
            here.steady() >= not_before && here.world.mistake.takeover(&here.state(), situation).is_some()
        });
        if let Some(situation) = due {
            act(&here, situation).await;
            not_before = here.steady().plus(AGAIN_AFTER);
            watch.last_tick = here.steady();
        }
    }
}

impl Watch {
    fn new(now: Timestamp) -> Self {
        Self { awake_since: now, last_tick: now, told_of_leader: None, seen_since: BTreeMap::new() }
    }

    /// `None` while a leader is heard.
    fn look(&mut self, here: &Here) -> Option<Alone> {
        let now = here.steady();
        if now.since(self.last_tick) > PAUSED_AFTER && here.world.mistake != Mistake::PauseCounts {
            self.awake_since = now;
            self.seen_since.clear();
        }
        self.last_tick = now;
        self.see(here.believed().as_ref(), now);
        if here.standing().quorum {
            return None;
        }
        let heard = here.world.last_contact(here.me);
        let voters = if here.takes_part() { here.voters() } else { Vec::new() };
        let reached = reached(here, &voters, now);
        if reached.values().any(|peer| peer.leader.is_some()) {
            self.told_of_leader = Some(now);
        }
        let since = [heard, self.told_of_leader].into_iter().flatten().fold(self.awake_since, Timestamp::max);
        let tail = {
            let node = &here.world.nodes[here.me];
            Chain::tail(node.kept.borrow().behind(node.agreement.borrow().applied))
        };
        Some(Alone {
            since: here.at(since),
            voters,
            reached,
            document: here.believed(),
            seen_since: self.seen_since.iter().map(|(id, at)| (id.clone(), here.at(*at))).collect(),
            log_time: here.process.time.borrow().of_the_log(here.clocks()),
            tail,
            journal: here.world.nodes[here.me].journal.borrow().clone(),
        })
    }

    fn see(&mut self, document: Option<&Document>, now: Timestamp) {
        self.seen_since.retain(|id, _| document.is_some_and(|document| document.get(id).is_some()));
        for event in document.iter().flat_map(|document| &document.events) {
            self.seen_since.entry(event.id.clone()).or_insert(now);
        }
    }
}

fn reached(here: &Here, voters: &[VmName], now: Timestamp) -> BTreeMap<VmName, Peer> {
    let mut peers = here.process.contacts.borrow().peers(now);
    peers.retain(|name, _| voters.contains(name));
    peers
}

async fn act(here: &Here, mut situation: Situation) {
    let mistake = here.world.mistake;
    let Ok(document) = here.look().await else { return };
    let looked_at = here.steady();
    if let Some(alone) = &mut situation.alone {
        alone.document = here.believed();
    }
    situation.now = here.time();
    let due = mistake.takeover(&here.state(), &situation);
    let announced = due.and_then(|id| document.get(&id).cloned());
    let Some(announced) = announced.filter(|announced| announced.status == Status::Scheduled) else { return };
    if !here.world.fence(here.me) {
        return std::future::pending().await;
    }
    here.sleep(here.world.disk_time(here.me)).await;
    let takeover = begun(&situation);
    let entry = Journaled { announcement: announced.clone(), takeover: takeover.clone() };
    while here.process.has_turn.get() {
        here.sleep(Duration::from_millis(5)).await;
    }
    let is_fresh = here.steady().since(looked_at) < FRESH_FOR;
    if !is_silent(here) || !is_fresh {
        return;
    }
    if mistake != Mistake::JournalSkipped {
        write(here, |journal| journal.push(entry)).await;
    }
    here.world.judge_alone(here.me, &announced, &situation);
    let outcome = if here.steady().since(looked_at) < here.world.scenario.timing.claim_lease {
        here.post_approval(&announced.id, Why::Takeover(takeover.at)).await
    } else {
        PostOutcome::NotSent("this replica was paused before it could post".into())
    };
    let end = Some((outcome, here.time()));
    write(here, |journal| {
        for entry in journal.iter_mut().filter(|entry| entry.takeover == takeover) {
            entry.takeover.outcome.clone_from(&end);
        }
    })
    .await;
}

/// On disk when it returns. A process whose disk fails does not come back from here.
async fn write(here: &Here, change: impl FnOnce(&mut Vec<Journaled>)) {
    let process = Rc::clone(&here.process);
    process.has_turn.set(true);
    here.sleep(here.world.disk_time(here.me)).await;
    let node = &here.world.nodes[here.me];
    let fails = node.body.borrow_mut().fails.take();
    if fails != Some(false) {
        change(&mut node.journal.borrow_mut());
    }
    if fails.is_some() {
        here.world.doom(here.me);
        std::future::pending::<()>().await;
    }
    process.has_turn.set(false);
    process.signals.journaled.tell(&here.world.tasks);
}

fn begun(situation: &Situation) -> Takeover {
    let alone = situation.alone.clone().unwrap_or_default();
    let last = alone.journal.iter().map(|entry| entry.takeover.at).max();
    Takeover {
        approver: situation.me.clone(),
        at: last.map_or(situation.now, |last| situation.now.max(last.plus(Duration::from_millis(1)))),
        alone_since: alone.since,
        out_of_reach: alone.out_of_reach(&situation.me),
        requested_by: None,
        outcome: None,
        recorded: None,
    }
}

/// No leader was heard for as long as it takes.
fn is_silent(here: &Here) -> bool {
    let takeover_after = here.world.scenario.timing.takeover_after;
    let heard = here.world.last_contact(here.me);
    !here.standing().quorum && heard.is_none_or(|heard| here.steady().since(heard) >= takeover_after)
}
