//! Watches for the time when this replica is alone (`behaviour.md` 7, rung 4), and approves what the machine says it
//! may then. Every condition is looked at again, with a fresh document, right before the journal is written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::deeds::Rung;
use super::errands::Hands;
use super::here::Here;
use super::post;
use super::rounds::Loop;
use super::{clock, contacts};
use crate::machine::alone::{Alone, Peer};
use crate::machine::claim::{PostOutcome, Reason};
use crate::machine::command::Entry;
use crate::machine::document::{Announcement, Document, Status};
use crate::machine::id::{EventId, VmName};
use crate::machine::situation::{Channel, Situation};
use crate::machine::takeover::{Journaled, Takeover, takeover};
use crate::machine::time::Timestamp;
use crate::wire::log;

const TICK: Duration = Duration::from_millis(250);
/// While a leader is heard, and all that is committed was read since: only new documents are to be seen.
const IDLE_TICK: Duration = Duration::from_millis(500);
/// One look for what is committed; shorter than a pause.
const CATCH_UP_WITHIN: Duration = Duration::from_millis(500);
/// A tick that comes later than this was held up: the machine was paused, and what it waited for may have changed.
const PAUSED_AFTER: Duration = Duration::from_secs(2);
/// A document is fresh for this long.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// Before what came to nothing is tried again: the metadata service is asked only so often.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// What has left the documents beyond this is not remembered, and then nothing is approved alone by one of many.
const GONE_LIMIT: usize = 1_000;

/// How long this replica has been alone, and what it has seen meanwhile; all on the steady clock.
struct Watch {
    /// Time before this does not count: it began, or woke, at this moment.
    awake_since: Timestamp,
    last_tick: Timestamp,
    /// When somebody whom it reaches last told of a leader.
    told_of_leader: Option<Timestamp>,
    /// It has read all that is committed since it was last in contact.
    has_caught_up: bool,
    /// `gone` tells all that its documents have shown since it last read all that is committed.
    remembers: bool,
    document: Option<Document>,
    seen_since: BTreeMap<EventId, Timestamp>,
    gone: Vec<Announcement>,
}

pub(super) async fn watch(hands: Arc<Hands>, stop: CancellationToken) {
    let mut watch = Watch::new();
    let mut not_before = watch.last_tick;
    let here = &hands.here;
    let (mut standing, mut polls) = (here.consensus.standing(), hands.observer.polls());
    loop {
        let wait = here.rounds.until_turn(if watch.has_caught_up { IDLE_TICK } else { TICK });
        here.rounds.back_within(Loop::Alone, wait);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = polls.changed() => {}
            _ = standing.wait_for(|standing| !standing.quorum), if watch.has_caught_up => {}
            () = stop.cancelled() => return,
        }
        let alone = watch.look(&hands).await;
        let is_alone = alone.is_some();
        here.alone.send_replace(alone);
        let situation = is_alone.then(|| here.situation());
        let due = situation.filter(|situation| takeover(&here.state(), situation).is_some());
        if let Some(situation) = due.filter(|_| clock::steady() >= not_before) {
            // To its end, also when the replica stops: what was posted is to be written down.
            act(&hands, situation).await;
            not_before = clock::steady().plus(AGAIN_AFTER);
            watch.last_tick = clock::steady();
        }
    }
}

impl Watch {
    fn new() -> Self {
        let now = clock::steady();
        Self {
            awake_since: now,
            last_tick: now,
            told_of_leader: None,
            has_caught_up: false,
            remembers: false,
            document: None,
            seen_since: BTreeMap::new(),
            gone: Vec::new(),
        }
    }

    /// `None` while a leader is heard.
    async fn look(&mut self, hands: &Hands) -> Option<Alone> {
        let here = &hands.here;
        let now = clock::steady();
        if now.since(self.last_tick) > PAUSED_AFTER {
            self.awake_since = now;
            self.seen_since.clear();
            (self.has_caught_up, self.remembers) = (false, false);
        }
        self.last_tick = now;
        self.see(hands.observer.believed(), now);
        if here.consensus.standing_now().quorum {
            self.meet(here).await;
            return None;
        }
        self.has_caught_up = false;
        let heard = here.consensus.last_contact().map(clock::steadily);
        let voters = voters(here);
        let answers = here.contacts.peers().into_iter().filter(|(name, _)| voters.contains(name));
        let peer = |told: contacts::Peer| Peer { leader: told.leader, is_healthy: told.channel == Channel::Healthy };
        let reached: BTreeMap<VmName, Peer> = answers.map(|(name, told)| (name, peer(told))).collect();
        if reached.values().any(|peer| peer.leader.is_some()) {
            self.told_of_leader = Some(now);
        }
        let since = [heard, self.told_of_leader].into_iter().flatten().fold(self.awake_since, Timestamp::max);
        // Before the state is read: what is applied meanwhile is in both, and in neither the other way round.
        let tail = tail(here).await?;
        Some(Alone {
            since: here.at(since),
            voters,
            reached,
            document: hands.observer.believed(),
            seen_since: self.seen_since.iter().map(|(id, at)| (id.clone(), here.at(*at))).collect(),
            gone: self.gone.clone(),
            remembers: self.remembers,
            log_time: here.time.of_the_log(),
            tail,
            journal: here.journal.entries().as_ref().clone(),
        })
    }

    fn see(&mut self, document: Option<Document>, now: Timestamp) {
        let Some(document) = document else {
            self.seen_since.clear();
            self.remembers = false;
            return;
        };
        // A thousand events are not looked through again and again: nothing about them is new. What a pause or a poll
        // without information emptied is filled again.
        let is_known = self.document.as_ref().is_some_and(|known| known.events.is(&document.events));
        if is_known && self.seen_since.len() == document.events.len() {
            return;
        }
        let before = self.document.iter().flat_map(|before| &before.events);
        self.gone.extend(before.filter(|event| document.get(&event.id).is_none()).cloned());
        self.gone.retain(|event| document.get(&event.id).is_none());
        if self.gone.len() > GONE_LIMIT {
            self.gone.truncate(GONE_LIMIT);
            self.remembers = false;
        }
        self.seen_since.retain(|id, _| document.get(id).is_some());
        for event in &document.events {
            self.seen_since.entry(event.id.clone()).or_insert(now);
        }
        self.document = Some(document);
    }

    /// What has been committed so far tells what became of the events it saw go.
    async fn meet(&mut self, here: &Here) {
        if !self.has_caught_up {
            let read = tokio::time::timeout(CATCH_UP_WITHIN, here.consensus.confirm()).await;
            self.has_caught_up = matches!(read, Ok(Ok(_)));
        }
        if self.has_caught_up {
            self.gone.clear();
            self.remembers = true;
        }
    }
}

/// In the order of the configuration; those that it does not name come last. Nobody, once this replica was removed.
fn voters(here: &Here) -> Vec<VmName> {
    if !here.consensus.takes_part() {
        return Vec::new();
    }
    let voters: Vec<VmName> = here.consensus.members().voters.iter().map(|name| VmName::new(name)).collect();
    let configured = here.configured.iter().filter(|name| voters.contains(name));
    let others = voters.iter().filter(|name| !here.configured.contains(name));
    configured.chain(others).cloned().collect()
}

/// `None`, and nothing is approved, when the end of the log cannot be read or understood.
async fn tail(here: &Here) -> Option<Vec<Entry>> {
    let tail = match here.consensus.tail().await {
        Ok(tail) => tail,
        Err(error) => {
            tracing::warn!(%error, "this replica cannot tell whether it may approve alone");
            return None;
        }
    };
    let decoded: Result<Vec<Entry>, _> = tail.iter().map(|entry| log::decode_entry(entry)).collect();
    decoded.inspect_err(|error| tracing::warn!(%error, "the end of the log cannot be understood")).ok()
}

async fn act(hands: &Hands, mut situation: Situation) {
    let here = &hands.here;
    let Ok(document) = post::look(hands).await else { return };
    let looked_at = clock::steady();
    if let Some(alone) = &mut situation.alone {
        alone.document = hands.observer.believed();
    }
    situation.now = here.time.now();
    let due = takeover(&here.state(), &situation);
    let Some(announced) = due.and_then(|found| scheduled(&document, &found.id)) else { return };
    let Ok(true) = here.consensus.fence().await else {
        tracing::warn!(event = %announced.id, "not approved alone: this replica's vote cannot be written");
        return;
    };
    let begun = begun(&situation);
    let entry = Journaled { announcement: announced.clone(), takeover: begun.clone() };
    let may_still = || is_silent(here) && clock::steady().since(looked_at) < FRESH_FOR;
    match here.journal.begin(entry, may_still).await {
        Ok(true) => {}
        Ok(false) => return,
        Err(error) => {
            here.deeds.journal_failed();
            tracing::error!(%error, event = %announced.id, "not approved alone: the journal cannot be written");
            return;
        }
    }
    here.deeds.takeover(Rung::Alone);
    tracing::warn!(event = %announced.id, "no leader is heard: this replica approves the event alone");
    let outcome = if clock::steady().since(looked_at) < here.timing.claim_lease {
        post::outcome(hands.observer.approve(&announced.id).await)
    } else {
        PostOutcome::NotSent("this replica was paused before it could post".into())
    };
    tracing::warn!(event = %announced.id, outcome = outcome.as_word(), "what became of the approval given alone");
    let seen = situation.alone.as_ref().and_then(|alone| alone.seen_since.get(&announced.id));
    here.deeds.approval(Reason::Takeover, &outcome, seen.map(|seen| here.time.now().since(*seen)));
    if let Err(error) = here.journal.end(&begun, outcome, here.time.now()).await {
        here.deeds.journal_failed();
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
        out_of_reach: alone.out_of_reach(&situation.me),
        outcome: None,
        recorded: None,
    }
}

/// No leader was heard for as long as it takes, as consensus tells it at this moment.
fn is_silent(here: &Here) -> bool {
    let long_ago = |heard: Instant| heard.elapsed() >= here.timing.takeover_after;
    !here.consensus.standing_now().quorum && here.consensus.last_contact().is_none_or(long_ago)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::read_document;

    fn listing(ids: &[&str]) -> Document {
        let event = r#""EventType":"Freeze","EventStatus":"Scheduled","ResourceType":"VirtualMachine","Resources":["a"],"NotBefore":"""#;
        let events: Vec<String> = ids.iter().map(|id| format!(r#"{{"EventId":"{id}",{event}}}"#)).collect();
        let body = format!(r#"{{"DocumentIncarnation":1,"Events":[{}]}}"#, events.join(","));
        read_document(200, body.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn what_is_seen_again_after_nothing_was_seen_counts_from_then() {
        let (mut watch, document) = (Watch::new(), listing(&["A", "B"]));
        let seen = |watch: &Watch| watch.seen_since.values().map(|at| at.0).collect::<Vec<_>>();
        watch.see(Some(document.clone()), Timestamp(1));
        watch.see(Some(document.clone()), Timestamp(2));
        assert_eq!(seen(&watch), [1, 1]);
        watch.see(None, Timestamp(3));
        assert_eq!(seen(&watch), [0_i64; 0]);
        watch.see(Some(document.clone()), Timestamp(4));
        assert_eq!(seen(&watch), [4, 4]);
        watch.see(Some(listing(&["B", "C"])), Timestamp(5));
        assert_eq!(seen(&watch), [4, 5]);
        assert_eq!(watch.gone.iter().map(|event| event.id.as_str()).collect::<Vec<_>>(), ["A"]);
        watch.see(Some(document), Timestamp(6));
        assert!(watch.gone.iter().all(|event| event.id.as_str() == "C"), "what came back is not gone");
    }
}
