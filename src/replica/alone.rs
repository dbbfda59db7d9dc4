//! Watches for the time when this replica is alone (`behaviour.md` 7, rung 4), and approves what the machine says it
//! may then. Every condition is looked at again, with a fresh document, right before the journal is written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::errands::Hands;
use super::here::Here;
use super::post;
use super::{clock, contacts};
use crate::consensus::Standing;
use crate::machine::apply::apply;
use crate::machine::claim::PostOutcome;
use crate::machine::document::{Announcement, Document, Status};
use crate::machine::id::{EventId, VmName};
use crate::machine::situation::{Channel, Situation};
use crate::machine::state::State;
use crate::machine::takeover::{Alone, Journaled, Peer, Takeover, out_of_reach, takeover};
use crate::machine::time::Timestamp;
use crate::wire::log;

const TICK: Duration = Duration::from_millis(250);
/// A tick that comes later than this was held up: the machine was paused, and what it waited for may have changed.
const PAUSED_AFTER: Duration = Duration::from_secs(2);
/// A document is fresh for this long.
const FRESH_FOR: Duration = Duration::from_secs(2);

/// How long this replica has been alone, and what it has seen meanwhile; all on the steady clock.
struct Watch {
    /// Time before this does not count: it began, or woke, at this moment.
    awake_since: Timestamp,
    last_tick: Timestamp,
    seen_since: BTreeMap<EventId, Timestamp>,
}

pub(super) async fn watch(hands: Arc<Hands>, stop: CancellationToken) {
    let now = clock::steady();
    let mut watch = Watch { awake_since: now, last_tick: now, seen_since: BTreeMap::new() };
    loop {
        tokio::select! {
            () = tokio::time::sleep(TICK) => {}
            () = stop.cancelled() => return,
        }
        let alone = watch.look(&hands);
        let is_alone = alone.is_some();
        hands.here.alone.send_replace(alone);
        let situation = is_alone.then(|| hands.here.situation());
        if let Some(situation) = situation.filter(|situation| takeover(&hands.here.state(), situation).is_some()) {
            // To its end, also when the replica stops: what was posted is to be written down.
            act(&hands, situation).await;
        }
    }
}

impl Watch {
    /// `None` while a leader is heard.
    fn look(&mut self, hands: &Hands) -> Option<Alone> {
        let here = &hands.here;
        let now = clock::steady();
        if now.since(self.last_tick) > PAUSED_AFTER {
            *self = Self { awake_since: now, last_tick: now, seen_since: BTreeMap::new() };
        }
        self.last_tick = now;
        let document = hands.observer.believed().unwrap_or_default();
        self.seen_since.retain(|id, _| document.get(id).is_some());
        for event in &document.events {
            self.seen_since.entry(event.id.clone()).or_insert(now);
        }
        if here.consensus.standing().borrow().quorum {
            return None;
        }
        let heard = here.consensus.last_contact().map(clock::steadily);
        let voters = voters(here);
        let answers = here.contacts.peers().into_iter().filter(|(name, _)| voters.contains(name));
        let peer = |told: contacts::Peer| Peer { leader: told.leader, is_healthy: told.channel == Channel::Healthy };
        let reached = answers.map(|(name, told)| (name, peer(told))).collect();
        Some(Alone {
            since: here.at(heard.map_or(self.awake_since, |heard| heard.max(self.awake_since))),
            voters,
            reached,
            document,
            seen_since: self.seen_since.iter().map(|(id, at)| (id.clone(), here.at(*at))).collect(),
            journal: here.journal.entries().as_ref().clone(),
        })
    }
}

/// In the order of the configuration; those that it does not name come last.
fn voters(here: &Here) -> Vec<VmName> {
    let voters: Vec<VmName> = here.consensus.members().voters.iter().map(|name| VmName::new(name)).collect();
    let configured = here.configured.iter().filter(|name| voters.contains(name));
    let others = voters.iter().filter(|name| !here.configured.contains(name));
    configured.chain(others).cloned().collect()
}

async fn act(hands: &Hands, mut situation: Situation) {
    let here = &hands.here;
    let Ok(document) = post::look(hands).await else { return };
    let looked_at = clock::steady();
    let Some(state) = with_tail(here).await else { return };
    let Some(alone) = &mut situation.alone else { return };
    alone.document = hands.observer.believed().unwrap_or_default();
    situation.now = here.time.now();
    let Some(announced) = takeover(&state, &situation).and_then(|found| scheduled(&document, &found.id)) else {
        return;
    };
    let begun = begun(&situation);
    let entry = Journaled { announcement: announced.clone(), takeover: begun.clone() };
    let may_still = || is_silent(here) && clock::steady().since(looked_at) < FRESH_FOR;
    match here.journal.begin(entry, may_still).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            tracing::error!(%error, event = %announced.id, "not approved alone: the journal cannot be written");
            return;
        }
    }
    tracing::warn!(event = %announced.id, "no leader is heard: this replica approves the event alone");
    let outcome = if clock::steady().since(looked_at) < here.timing.claim_lease {
        post::outcome(hands.observer.approve(&announced.id).await)
    } else {
        PostOutcome::NotSent("this replica was paused before it could post".into())
    };
    tracing::warn!(event = %announced.id, outcome = outcome.as_word(), "what became of the approval given alone");
    if let Err(error) = here.journal.end(&begun, outcome).await {
        tracing::error!(%error, event = %announced.id, "how the approval ended cannot be written to the journal");
    }
}

fn scheduled<'a>(document: &'a Document, id: &EventId) -> Option<&'a Announcement> {
    document.get(id).filter(|announced| announced.status == Status::Scheduled)
}

fn begun(situation: &Situation) -> Takeover {
    let alone = situation.alone.clone().unwrap_or_default();
    let last = alone.journal.iter().map(|entry| entry.takeover.at).max();
    Takeover {
        approver: situation.me.clone(),
        at: last.map_or(situation.now, |last| situation.now.max(last.plus(Duration::from_millis(1)))),
        alone_since: alone.since,
        out_of_reach: out_of_reach(situation, &alone),
        outcome: None,
        recorded: None,
    }
}

/// No leader was heard for as long as it takes, as consensus tells it at this moment.
fn is_silent(here: &Here) -> bool {
    let hears = |standing: &Standing| standing.quorum;
    let long_ago = |heard: Instant| heard.elapsed() >= here.timing.takeover_after;
    !hears(&here.consensus.standing().borrow()) && here.consensus.last_contact().is_none_or(long_ago)
}

/// The state as it would be if everything in this replica's log were committed; the others may know that it is.
async fn with_tail(here: &Here) -> Option<State> {
    let mut state = here.state().as_ref().clone();
    let tail = match here.consensus.tail().await {
        Ok(tail) => tail,
        Err(error) => {
            tracing::warn!(%error, "not approved alone: the end of the log cannot be read");
            return None;
        }
    };
    for entry in tail {
        match log::decode_entry(&entry) {
            Ok(entry) => drop(apply(&mut state, &entry)),
            Err(error) => {
                tracing::warn!(%error, "not approved alone: the end of the log cannot be understood");
                return None;
            }
        }
    }
    Some(state)
}
