//! Watches for the time when this replica hears no leader, and approves what the core says it may then: by itself as one of
//! a pair, or because an operator asks this replica to. Every condition is checked again, with a fresh document, right
//! before the journal is written.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::clock;
use super::deeds::Rung;
use super::errands::Hands;
use super::here::Here;
use super::isolated_requests::{NotApproved, Request};
use super::post;
use super::rounds::Loop;
use crate::machine::alone::Alone;
use crate::machine::claim::PostOutcome;
use crate::machine::command::Entry;
use crate::machine::document::{Announcement, Document, Status};
use crate::machine::event::Event;
use crate::machine::id::{EventId, VmName};
use crate::machine::obstacle::Obstacle;
use crate::machine::situation::Situation;
use crate::machine::suspicion::as_if_told;
use crate::machine::takeover::{Journaled, RequestedBy, Takeover, overridden, takeover};
use crate::machine::time::Timestamp;
use crate::wire::log;

const TICK: Duration = Duration::from_millis(250);
/// While a leader is heard: only new documents are to be seen.
const IDLE_TICK: Duration = Duration::from_millis(500);
/// A tick that comes later than this was held up: the machine was paused, and what it waited for may have changed.
const PAUSED_AFTER: Duration = Duration::from_secs(2);
/// A document is fresh for this long.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// Before what came to nothing is tried again: the metadata service is asked only so often.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// How long this replica has heard no leader, and what it has seen meanwhile; all on the monotonic clock.
struct Watch {
    /// Time before this does not count: it began, or woke, at this moment.
    awake_since: Timestamp,
    last_tick: Timestamp,
    /// When somebody whom it reaches last told of a leader.
    told_of_leader: Option<Timestamp>,
    seen_since: BTreeMap<EventId, Timestamp>,
}

pub(super) async fn watch(hands: Arc<Hands>, stop: CancellationToken) {
    let mut watch = Watch::new();
    let mut not_before = watch.last_tick;
    let here = &hands.here;
    let (mut standing, mut polls) = (here.consensus.standing(), hands.observer.polls());
    let mut is_led = true;
    loop {
        let wait = here.rounds.until_turn(if is_led { IDLE_TICK } else { TICK });
        here.rounds.back_within(Loop::Alone, wait);
        let request = tokio::select! {
            () = tokio::time::sleep(wait) => None,
            _ = polls.changed() => None,
            _ = standing.wait_for(|standing| !standing.quorum), if is_led => None,
            request = here.alone_requests.next() => Some(request),
            () = stop.cancelled() => return,
        };
        let alone = watch.look(&hands).await;
        is_led = here.consensus.standing_now().quorum;
        let is_alone = alone.is_some();
        here.alone.send_replace(alone);
        let situation = is_alone.then(|| here.situation());
        let due = situation.as_ref().is_some_and(|situation| takeover(&here.state(), situation).is_some());
        let is_tried_again = clock::steady() >= not_before;
        // To its end, also when the replica stops: what was posted is to be written down.
        match (request, situation) {
            (Some(request), None) if is_led => request.answer(Err(NotApproved::Led)),
            (Some(request), None) => {
                request.answer(Err(NotApproved::Failed("the end of the log cannot be read".into())));
            }
            (Some(request), Some(situation)) => {
                let approved = act(&hands, situation, Some(&request)).await;
                request.answer(approved);
            }
            (None, Some(situation)) if due && is_tried_again => {
                if let Err(why) = act(&hands, situation, None).await {
                    tracing::warn!(%why, "event not approved without a quorum");
                }
                not_before = clock::steady().plus(AGAIN_AFTER);
            }
            (None, _) => continue,
        }
        watch.last_tick = clock::steady();
    }
}

impl Watch {
    fn new() -> Self {
        let now = clock::steady();
        Self { awake_since: now, last_tick: now, told_of_leader: None, seen_since: BTreeMap::new() }
    }

    /// `None` while a leader is heard.
    async fn look(&mut self, hands: &Hands) -> Option<Alone> {
        let here = &hands.here;
        let now = clock::steady();
        if now.since(self.last_tick) > PAUSED_AFTER {
            self.awake_since = now;
            self.seen_since.clear();
        }
        self.last_tick = now;
        self.see(hands.observer.believed().as_ref(), now);
        if here.consensus.standing_now().quorum {
            return None;
        }
        let heard = here.consensus.last_contact().map(clock::steadily);
        let voters = voters(here);
        let mut reached = here.contacts.peers();
        reached.retain(|name, _| voters.contains(name));
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
            log_time: here.time.of_the_log(),
            tail,
            journal: here.journal.entries().as_ref().clone(),
        })
    }

    /// An event that no document showed for a while counts from when it is seen again.
    fn see(&mut self, document: Option<&Document>, now: Timestamp) {
        self.seen_since.retain(|id, _| document.is_some_and(|document| document.get(id).is_some()));
        for event in document.iter().flat_map(|document| &document.events) {
            self.seen_since.entry(event.id.clone()).or_insert(now);
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

/// Approves the event that is due, or the one that an operator asks for.
async fn act(hands: &Hands, mut situation: Situation, request: Option<&Request>) -> Result<PostOutcome, NotApproved> {
    let failed = |why: String| NotApproved::Failed(why);
    let here = &hands.here;
    let document = post::look(hands).await.map_err(|why| failed(why.to_string()))?;
    let looked_at = clock::steady();
    if let Some(alone) = &mut situation.alone {
        alone.document = hands.observer.believed();
    }
    situation.now = here.time.now();
    let event = match request {
        None => takeover(&here.state(), &situation).map(|announced| announced.id.clone()),
        Some(request) => Some(checked(here, &situation, request)?),
    };
    let not_scheduled = NotApproved::Impossible(Obstacle::NotScheduled);
    let announced = event.and_then(|id| scheduled(&document, &id)).ok_or(not_scheduled)?;
    let Ok(true) = here.consensus.fence().await else {
        return Err(failed("the vote of this replica cannot be written".into()));
    };
    let begun = begun(&situation, request.map(|request| request.requested_by.clone()));
    let entry = Journaled { announcement: announced.clone(), takeover: begun.clone() };
    let may_still = || is_silent(here) && clock::steady().since(looked_at) < FRESH_FOR;
    match here.journal.begin(entry, may_still).await {
        Ok(true) => {}
        Ok(false) => return Err(failed("a leader is heard again, or the metadata service took too long".into())),
        Err(error) => {
            here.deeds.journal_failed();
            return Err(failed(format!("the journal cannot be written: {error}")));
        }
    }
    here.deeds.takeover(Rung::Alone);
    let who = request.map(|request| request.requested_by.who.as_str());
    tracing::warn!(event = %announced.id, requested_by = who, "event approved without a quorum");
    let outcome = if clock::steady().since(looked_at) < here.timing.claim_lease {
        post::outcome(hands.observer.approve(&announced.id).await)
    } else {
        PostOutcome::NotSent("this replica was paused before it could post".into())
    };
    tracing::warn!(event = %announced.id, outcome = outcome.as_word(), "approval without a quorum ended");
    let seen = situation.alone.as_ref().and_then(|alone| alone.seen_since.get(&announced.id));
    here.deeds.approval(begun.reason(), &outcome, seen.map(|seen| here.time.now().since(*seen)));
    if let Err(error) = here.journal.end(&begun, outcome.clone(), here.time.now()).await {
        here.deeds.journal_failed();
        tracing::error!(%error, event = %announced.id, "how the approval ended cannot be written to the journal");
    }
    Ok(outcome)
}

/// The operator's event, if it is as the operator saw it and can be approved here.
fn checked(here: &Here, situation: &Situation, request: &Request) -> Result<EventId, NotApproved> {
    let state = here.state();
    let shown = as_if_told(&state, &here.name, situation.alone.as_ref(), &here.journal.entries());
    let revision = shown.open_event(&request.event).map(|event: &Event| event.revision);
    match overridden(&state, situation, &request.event) {
        None => Err(NotApproved::Led),
        Some(Err(obstacle)) => Err(NotApproved::Impossible(obstacle)),
        Some(Ok(_)) if revision != Some(request.revision) => Err(NotApproved::Changed(revision.unwrap_or_default())),
        Some(Ok(_)) => Ok(request.event.clone()),
    }
}

fn scheduled<'a>(document: &'a Document, id: &EventId) -> Option<&'a Announcement> {
    document.get(id).filter(|announced| announced.status == Status::Scheduled)
}

fn begun(situation: &Situation, requested_by: Option<RequestedBy>) -> Takeover {
    let alone = situation.alone.clone().unwrap_or_default();
    let last = alone.journal.iter().map(|entry| entry.takeover.at).max();
    Takeover {
        approver: situation.me.clone(),
        at: last.map_or(situation.now, |last| situation.now.max(last.plus(Duration::from_millis(1)))),
        alone_since: alone.since,
        out_of_reach: alone.out_of_reach(&situation.me),
        requested_by,
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
        watch.see(Some(&document), Timestamp(1));
        watch.see(Some(&document), Timestamp(2));
        assert_eq!(seen(&watch), [1, 1]);
        watch.see(None, Timestamp(3));
        assert_eq!(seen(&watch), [0_i64; 0]);
        watch.see(Some(&document), Timestamp(4));
        assert_eq!(seen(&watch), [4, 4]);
        watch.see(Some(&listing(&["B", "C"])), Timestamp(5));
        assert_eq!(seen(&watch), [4, 5]);
    }
}
