//! Watches for the time when this replica hears no leader, and approves what the core says it may then: by itself as one of
//! a pair, or because an operator asks this replica to. Every condition is checked again, with a fresh document, right
//! before the journal is written.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use super::clock;
use super::context::Context;
use super::errands::Executor;
use super::isolated_requests::{IsolatedRequest, NotApproved};
use super::metrics::TakeoverLevel;
use super::post;
use super::watchdog::Loop;
use allclear_core::isolation::approval::{event_to_approve, overridden};
use allclear_core::isolation::reconciliation::with_local_facts;
use allclear_core::isolation::watch::IsolationWatch;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::Entry;
use allclear_core::model::document::{Announcement, Document, Status};
use allclear_core::model::event::Event;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::isolated_approval::{IsolatedApproval, JournalEntry};
use allclear_core::model::isolation::IsolatedView;
use allclear_core::model::obstacle::ApprovalObstacle;
use allclear_core::planning_input::PlanningInput;
use allclear_wire::log;

const TICK: Duration = Duration::from_millis(250);
/// While a leader is heard: only new documents are to be seen.
const IDLE_TICK: Duration = Duration::from_millis(500);
/// A document is fresh for this long.
const FRESH_FOR: Duration = Duration::from_secs(2);
/// Before what came to nothing is tried again: the metadata service is asked only so often.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

pub(super) async fn watch(hands: Arc<Executor>, stop: CancellationToken) {
    let mut watch = IsolationWatch::new(clock::monotonic());
    let mut not_before = watch.last_tick;
    let here = &hands.here;
    let (mut standing, mut polls) = (here.consensus.status(), hands.observer.polls());
    let mut is_led = true;
    loop {
        let wait = here.rounds.until_turn(if is_led { IDLE_TICK } else { TICK });
        here.rounds.arm(Loop::Alone, wait);
        let request = tokio::select! {
            () = tokio::time::sleep(wait) => None,
            _ = polls.changed() => None,
            _ = standing.wait_for(|standing| !standing.quorum), if is_led => None,
            request = here.alone_requests.next() => Some(request),
            () = stop.cancelled() => return,
        };
        let alone = look(&mut watch, &hands).await;
        is_led = here.consensus.status_now().quorum;
        let is_alone = alone.is_some();
        here.alone.send_replace(alone);
        let situation = is_alone.then(|| here.planning_input());
        let due = situation.as_ref().is_some_and(|situation| event_to_approve(&here.state(), situation).is_some());
        let is_tried_again = clock::monotonic() >= not_before;
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
                not_before = clock::monotonic().plus(AGAIN_AFTER);
            }
            (None, _) => continue,
        }
        watch.last_tick = clock::monotonic();
    }
}

/// `None` while a leader is heard.
async fn look(watch: &mut IsolationWatch, hands: &Executor) -> Option<IsolatedView> {
    let here = &hands.here;
    watch.tick(clock::monotonic(), hands.observer.trusted_document().as_ref());
    if here.consensus.status_now().quorum {
        return None;
    }
    let heard = here.consensus.last_contact().map(clock::to_monotonic);
    let voters = voters(here);
    let mut reached = here.contacts.peers();
    reached.retain(|name, _| voters.contains(name));
    let since = here.at(watch.alone_since(heard, &reached));
    // Before the state is read: what is applied meanwhile is in both, and in neither the other way round.
    let tail = tail(here).await?;
    Some(IsolatedView {
        since,
        voters,
        reached,
        document: hands.observer.trusted_document(),
        seen_since: watch.seen_since(|at| here.at(at)),
        log_time: here.time.of_the_log(),
        tail,
        readiness: here.readiness.all(),
        journal: here.journal.entries().as_ref().clone(),
    })
}

/// In the order of the configuration; those that it does not name come last. Nobody, once this replica was removed.
fn voters(here: &Context) -> Vec<VmName> {
    if !here.consensus.is_member() {
        return Vec::new();
    }
    let voters: Vec<VmName> = here.consensus.members().voters.iter().map(|name| VmName::new(name)).collect();
    let configured = here.configured.iter().filter(|name| voters.contains(name));
    let others = voters.iter().filter(|name| !here.configured.contains(name));
    configured.chain(others).cloned().collect()
}

/// `None`, and nothing is approved, when the end of the log cannot be read or understood.
async fn tail(here: &Context) -> Option<Vec<Entry>> {
    let tail = match here.consensus.unapplied_entries().await {
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
async fn act(
    hands: &Executor,
    mut situation: PlanningInput,
    request: Option<&IsolatedRequest>,
) -> Result<PostOutcome, NotApproved> {
    let failed = |why: String| NotApproved::Failed(why);
    let here = &hands.here;
    let document = hands.observer.fetch_now(&here.state()).await.map_err(|why| failed(why.to_string()))?;
    let looked_at = clock::monotonic();
    if let Some(alone) = &mut situation.alone {
        alone.document = hands.observer.trusted_document();
    }
    situation.now = here.time.now();
    let event = match request {
        None => event_to_approve(&here.state(), &situation).map(|announced| announced.id.clone()),
        Some(request) => Some(checked(here, &situation, request)?),
    };
    let not_scheduled = NotApproved::Impossible(ApprovalObstacle::NotScheduled);
    let announced = event.and_then(|id| scheduled(&document, &id)).ok_or(not_scheduled)?;
    let Ok(true) = here.consensus.fence().await else {
        return Err(failed("the vote of this replica cannot be written".into()));
    };
    let begun = IsolatedApproval::begun(&situation, request.map(|request| request.requested_by.clone()));
    let entry = JournalEntry { announcement: announced.clone(), takeover: begun.clone() };
    let may_still = || is_silent(here) && clock::monotonic().since(looked_at) < FRESH_FOR;
    match here.journal.begin(entry, may_still).await {
        Ok(true) => {}
        Ok(false) => return Err(failed("a leader is heard again, or the metadata service took too long".into())),
        Err(error) => {
            here.deeds.journal_failed();
            return Err(failed(format!("the journal cannot be written: {error}")));
        }
    }
    here.deeds.takeover(TakeoverLevel::Alone);
    let who = request.map(|request| request.requested_by.who.as_str());
    tracing::warn!(event = %announced.id, requested_by = who, "event approved without a quorum");
    let outcome = if clock::monotonic().since(looked_at) < here.timing.claim_lease {
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
fn checked(here: &Context, situation: &PlanningInput, request: &IsolatedRequest) -> Result<EventId, NotApproved> {
    let state = here.state();
    let shown = with_local_facts(&state, &here.name, situation.alone.as_ref(), &here.journal.entries());
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

/// No leader was heard for as long as it takes, as consensus tells it at this moment.
fn is_silent(here: &Context) -> bool {
    let long_ago = |heard: Instant| heard.elapsed() >= here.timing.takeover_after;
    !here.consensus.status_now().quorum && here.consensus.last_contact().is_none_or(long_ago)
}
