//! The approval without a quorum: a replica without a leader collects local facts, and approves the event that is due.
//! Every condition is checked again, with a fresh document, right before the journal is written.

use super::{Host, PostReason};
use crate::isolation::approval::{blockers_to_override, event_to_approve};
use crate::isolation::reconciliation::with_local_facts;
use crate::isolation::watch::IsolationWatch;
use crate::model::claim::PostOutcome;
use crate::model::command::Entry;
use crate::model::document::{Announcement, Document, Status};
use crate::model::id::{EventId, VmName, WorkloadName};
use crate::model::isolated_approval::{IsolatedApproval, JournalEntry, RequestedBy};
use crate::model::isolated_blocker::IsolatedBlocker;
use crate::model::isolation::{IsolatedView, PeerAnswer};
use crate::model::time::Timestamp;
use crate::model::workload::Readiness;
use crate::planning_input::PlanningInput;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

/// A document is fresh for this long.
const FRESH_FOR: Duration = Duration::from_secs(2);

/// Pause before a failed approval is tried again: the metadata service limits the rate of requests.
pub const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// An operator's request for the approval of an event without a quorum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IsolatedRequest {
    pub event: EventId,
    /// The revision of the event that the operator saw.
    pub revision: u64,
    pub requested_by: RequestedBy,
}

/// The reason why an isolated replica approved nothing. Nothing was posted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotApproved {
    /// This replica follows a leader.
    Led,
    Impossible(IsolatedBlocker),
    /// The event has this revision now.
    Changed(u64),
    Failed(String),
}

impl fmt::Display for NotApproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Led => f.write_str("this replica follows a leader: approve the event without --alone"),
            Self::Impossible(obstacle) => obstacle.fmt(f),
            Self::Changed(revision) => write!(f, "the event has changed and is at revision {revision} now"),
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl core::error::Error for NotApproved {}

/// Requirements of an isolated replica for the host, beside [`Host`].
#[allow(async_fn_in_trait, reason = "as in `Host`")]
pub trait IsolatedHost: Host {
    fn has_quorum(&self) -> bool;

    /// The last contact with a leader, on the monotonic clock.
    fn last_leader_contact(&self) -> Option<Timestamp>;

    /// The voters in the order of the configuration; none once this replica was removed.
    fn voters(&self) -> Vec<VmName>;

    /// The answers of the reachable replicas.
    fn peer_answers(&self) -> BTreeMap<VmName, PeerAnswer>;

    fn readiness(&self) -> BTreeMap<WorkloadName, Readiness>;

    /// The cluster time of the last applied entry.
    fn log_time(&self) -> Timestamp;

    fn journal(&self) -> Vec<JournalEntry>;

    /// The entries behind the applied index; `None` if the end of the log cannot be read.
    async fn unapplied_entries(&self) -> Option<Vec<Entry>>;

    /// The leader's inputs to planning, as known to this replica.
    fn planning_input(&self) -> PlanningInput;

    /// The event that this replica approves now.
    fn event_to_approve(&self, input: &PlanningInput) -> Option<EventId> {
        event_to_approve(&self.state(), input).map(|announced| announced.id.clone())
    }

    /// Ensures that no former leader gets anything acknowledged here; true once the fence is on the disk.
    async fn fence(&self) -> bool;

    /// Writes an entry to the journal if the approval is still allowed; false otherwise. On return the entry is on
    /// disk.
    ///
    /// # Errors
    /// The write to the disk failed.
    async fn begin_journal_entry(
        &self,
        entry: JournalEntry,
        input: &PlanningInput,
        is_still_allowed: impl Fn() -> bool,
    ) -> Result<bool, String>;

    /// Writes the outcome of the approval to the journal.
    async fn end_journal_entry(&self, begun: &JournalEntry, outcome: &PostOutcome);
}

/// The view of this replica while no leader is heard; `None` while the replica has a quorum.
pub async fn isolated_view<H: IsolatedHost>(host: &H, watch: &mut IsolationWatch) -> Option<IsolatedView> {
    watch.tick(host.monotonic(), host.trusted_document().as_ref());
    if host.has_quorum() {
        return None;
    }
    let heard = host.last_leader_contact();
    let voters = host.voters();
    let mut reached = host.peer_answers();
    reached.retain(|name, _| voters.contains(name));
    let since = host.to_cluster_time(watch.alone_since(heard, &reached));
    // The tail is read before the state: an entry applied meanwhile is in both, and never in neither.
    let tail = host.unapplied_entries().await?;
    Some(IsolatedView {
        since,
        voters,
        reached,
        document: host.trusted_document(),
        seen_since: watch.seen_since(|at| host.to_cluster_time(at)),
        log_time: host.log_time(),
        tail,
        readiness: host.readiness(),
        journal: host.journal(),
    })
}

/// Approves the event that is due, or the event that an operator names.
///
/// # Errors
/// Nothing was posted.
pub async fn approve_isolated<H: IsolatedHost>(
    host: &H,
    mut input: PlanningInput,
    request: Option<&IsolatedRequest>,
) -> Result<PostOutcome, NotApproved> {
    let failed = |why: &str| NotApproved::Failed(why.to_string());
    let document = host.fresh_document().await.map_err(NotApproved::Failed)?;
    let looked_at = host.monotonic();
    if let Some(view) = &mut input.isolated {
        view.document = host.trusted_document();
    }
    input.now = host.cluster_time();
    let event = match request {
        None => host.event_to_approve(&input),
        Some(request) => Some(requested_event(host, &input, request)?),
    };
    let not_scheduled = NotApproved::Impossible(IsolatedBlocker::NotScheduled);
    let announced = event.and_then(|id| scheduled(&document, &id)).ok_or(not_scheduled)?;
    if !host.fence().await {
        return Err(failed("the vote of this replica cannot be written"));
    }
    let begun = IsolatedApproval::begun(&input, request.map(|request| request.requested_by.clone()));
    let entry = JournalEntry { announcement: announced.clone(), approval: begun };
    let is_still_allowed = || is_silent(host) && host.monotonic().since(looked_at) < FRESH_FOR;
    match host.begin_journal_entry(entry.clone(), &input, is_still_allowed).await {
        Ok(true) => {}
        Ok(false) => {
            return Err(failed("this replica follows a leader again, or the metadata service answered too late"));
        }
        Err(error) => return Err(NotApproved::Failed(format!("the journal cannot be written: {error}"))),
    }
    let left = host.timing().claim_lease.saturating_sub(host.monotonic().since(looked_at));
    let outcome = if left > Duration::ZERO {
        host.post(&announced.id, PostReason::Isolated(entry.approval.at), left).await
    } else {
        PostOutcome::NotSent("the process of this replica was paused before the post".into())
    };
    host.end_journal_entry(&entry, &outcome).await;
    Ok(outcome)
}

/// The event that an operator names, if the revision is as seen by the operator and this replica can approve the event.
fn requested_event<H: IsolatedHost>(
    host: &H,
    input: &PlanningInput,
    request: &IsolatedRequest,
) -> Result<EventId, NotApproved> {
    let state = host.state();
    let shown = with_local_facts(&state, host.name(), input.isolated.as_ref(), &host.journal());
    let revision = shown.open_event(&request.event).map(|event| event.revision);
    match blockers_to_override(&state, input, &request.event) {
        None => Err(NotApproved::Led),
        Some(Err(obstacle)) => Err(NotApproved::Impossible(obstacle)),
        Some(Ok(_)) if revision != Some(request.revision) => Err(NotApproved::Changed(revision.unwrap_or_default())),
        Some(Ok(_)) => Ok(request.event.clone()),
    }
}

fn scheduled<'a>(document: &'a Document, id: &EventId) -> Option<&'a Announcement> {
    document.get(id).filter(|announced| announced.status == Status::Scheduled)
}

/// Whether no leader was heard for `takeover_after`.
fn is_silent<H: IsolatedHost>(host: &H) -> bool {
    let is_long_ago = |heard| host.monotonic().since(heard) >= host.timing().takeover_after;
    !host.has_quorum() && host.last_leader_contact().is_none_or(is_long_ago)
}
