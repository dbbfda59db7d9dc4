//! Evaluates the polls of one replica before a report. An event counts as gone, or as not started, only after
//! consecutive polls agree (`SPEC.md` 2, D3 and D5). A poll without information interrupts the series.

use crate::cluster_time::Trust;
use crate::model::command::{Command, ReportDocument};
use crate::model::document::{Announcement, Document, EventType, Status};
use crate::model::id::{EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::state::{Replica, State};
use crate::model::time::Timestamp;
use crate::report_limits;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// The number of consecutive polls after which an event without started hooks counts as gone.
const POLLS: u32 = 2;

/// The number of consecutive polls for an event with started hooks, an event that may be about to start, or a started
/// event.
const POLLS_OF_BEGUN: u32 = 5;

/// How long polls have to agree until their result counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// The time between polls; a poll requested in between is not part of a series.
    pub poll_interval: Duration,
    /// For an event with started hooks, an event that may be about to start, or a started event.
    pub gone_after: Duration,
    /// For a missing event, which may be an unreadable element of the document.
    pub stale_after: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { poll_interval: seconds(1), gone_after: seconds(10), stale_after: seconds(60) }
    }
}

/// One replica's view of its endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Observation {
    /// `None` before the first validated document, unless the log contains a document.
    document: Option<Document>,
    /// The document is the result of the last poll.
    is_current: bool,
    /// Events of the document that the last polls did not list.
    missed: BTreeMap<EventId, AgreeingPolls>,
    /// Started events of the document that the last polls list as not started.
    taken_back: BTreeMap<EventId, AgreeingPolls>,
    /// The number of reports of this replica taken into account.
    reports: u64,
    /// The number of recently listed events that exceed the report limit and are not adopted in their current form.
    left_out: usize,
}

/// A poll with a document as its result.
#[derive(Clone, Copy, Debug)]
pub struct Poll<'a> {
    pub document: &'a Document,
    pub time: PollTime,
    pub patience: Patience,
}

/// The request time and the answer time of a poll, on a monotonic clock: the document was current at some time in
/// between.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PollTime {
    pub asked: Timestamp,
    pub answered: Timestamp,
}

impl PollTime {
    pub const fn at_once(at: Timestamp) -> Self {
        Self { asked: at, answered: at }
    }
}

/// Consecutive polls that agree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct AgreeingPolls {
    /// The answer time of the first poll.
    since: Timestamp,
    polls: u32,
}

impl AgreeingPolls {
    fn lasts(self, polls: u32, span: Duration, time: PollTime) -> bool {
        self.polls >= polls && time.asked.since(self.since) >= span
    }
}

/// Extends the series of an event by one poll.
fn extend(rows: &BTreeMap<EventId, AgreeingPolls>, id: &EventId, time: PollTime) -> AgreeingPolls {
    let AgreeingPolls { since, polls } =
        rows.get(id).copied().unwrap_or(AgreeingPolls { since: time.answered, polls: 0 });
    AgreeingPolls { since, polls: polls + 1 }
}

/// The event may be about to start: ending the event too early is costly.
fn is_decided(state: &State, before: &Announcement) -> bool {
    let event = state.open_event(&before.id);
    before.status == Status::Started
        || event.is_some_and(|event| event.stage() >= Stage::Claimed || event.has_isolated_approval())
}

/// The event's hooks may have moved service away: ending the event too early causes an undo and a second move.
fn is_begun(state: &State, id: &EventId) -> bool {
    state.open_event(id).is_some_and(|event| !event.attempts.is_empty())
}

impl Observation {
    /// Adopts the reports in the log that are unknown to this process. A previous run made these reports, and its last
    /// reports may be committed after this run began. A new process does not forget them.
    pub fn adopt_state(&mut self, state: &State, me: &VmName) {
        let Some(replica) = state.replicas.get(me).filter(|replica| replica.reports != self.reports) else {
            return;
        };
        self.reports = replica.reports;
        let Some(reported) = &replica.document else {
            return;
        };
        let mut known = self.document.take().unwrap_or_default();
        for event in &mut known.events {
            let has_started = reported.get(&event.id).is_some_and(|reported| reported.status == Status::Started);
            event.status = if has_started { Status::Started } else { event.status.clone() };
        }
        let unknown: Vec<_> = reported.events.iter().filter(|event| known.get(&event.id).is_none()).cloned().collect();
        self.is_current &= unknown.is_empty();
        self.document = Some(Document::new(known.events.into_iter().chain(unknown).collect()));
    }

    /// Records the document of a poll. An old api-version hides some event types: a hidden event does not count as
    /// missing.
    pub fn record_poll(
        &mut self,
        Poll { document: polled, time, patience }: Poll<'_>,
        state: &State,
        can_show: impl Fn(&EventType) -> bool,
    ) {
        let (was_missed, was_taken_back) = (core::mem::take(&mut self.missed), core::mem::take(&mut self.taken_back));
        // A late timer makes the next interval a little shorter.
        let apart = patience.poll_interval * 9 / 10;
        let (mut missed, mut taken_back) = (BTreeMap::new(), BTreeMap::new());
        self.adopt_listed(polled, state, |before, seen| {
            let id = &before.id;
            let (is_decided, has_begun) = (is_decided(state, before), is_begun(state, id));
            let (polls, span) =
                if is_decided || has_begun { (POLLS_OF_BEGUN, patience.gone_after) } else { (POLLS, apart) };
            match seen {
                Some(_) => {
                    let row = extend(&was_taken_back, id, time);
                    let is_kept = !row.lasts(polls, span, time);
                    taken_back.extend(is_kept.then(|| (id.clone(), row)));
                    is_kept.then_some(Status::Started)
                }
                None if !can_show(&before.kind) => Some(before.status.clone()),
                None => {
                    let row = extend(&was_missed, id, time);
                    let span = if polled.has_element_without_id { span.max(patience.stale_after) } else { span };
                    if row.lasts(polls, span, time) {
                        return None;
                    }
                    missed.insert(id.clone(), row);
                    let is_missing = has_begun && !is_decided && row.lasts(POLLS, apart, time);
                    Some(if is_missing { Status::Missing } else { before.status.clone() })
                }
            }
        });
        (self.missed, self.taken_back, self.is_current) = (missed, taken_back, true);
    }

    /// Records a validated document that was requested outside the polls. A listed event counts as new information, an
    /// event that is not listed does not.
    pub fn looked(&mut self, document: &Document, state: &State) {
        self.adopt_listed(document, state, |known, _| Some(known.status.clone()));
        self.missed.retain(|id, _| document.get(id).is_none());
        self.taken_back.retain(|id, _| document.get(id).is_none_or(|seen| seen.status < Status::Started));
    }

    /// Adopts the listed events. A known event that is not listed, or a started event that is listed otherwise, is kept
    /// as `kept_as` decides.
    fn adopt_listed(
        &mut self,
        listed: &Document,
        state: &State,
        mut kept_as: impl FnMut(&Announcement, Option<&Announcement>) -> Option<Status>,
    ) {
        let before = self.document.take().unwrap_or_default();
        let new = listed.events.iter().filter(|seen| before.get(&seen.id).is_none()).cloned();
        let known = before.events.iter().filter_map(|known| {
            let Some(seen) = listed.get(&known.id) else {
                return kept_as(known, None).map(|status| Announcement { status, ..known.clone() });
            };
            let has_started = known.status == Status::Started;
            Some(match seen.status {
                // The known content is kept.
                Status::Unreadable if has_started => known.clone(),
                Status::Unreadable => Announcement { status: Status::Unreadable, ..known.clone() },
                Status::Started => seen.clone(),
                _ if has_started => {
                    let status = kept_as(known, Some(seen)).unwrap_or_else(|| seen.status.clone());
                    Announcement { status, ..seen.clone() }
                }
                Status::Missing | Status::Other(_) | Status::Scheduled => seen.clone(),
            })
        });
        let (document, left_out) = report_limits::fitting(Document::new(known.chain(new).collect()), &before, state);
        (self.document, self.left_out) = (Some(document), left_out);
    }

    /// The number of recently listed events that exceed the report limit.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Records a poll without information.
    pub fn record_failed_poll(&mut self) {
        self.missed.clear();
        self.taken_back.clear();
        self.is_current = false;
    }

    /// The document as far as trusted; `None` before the first information.
    pub const fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// The pending report: the content differs from the last committed report, or the committed report no longer
    /// counts. A stale replica reports again only when no event is missing in its last poll: a missing event would
    /// count as announced again.
    pub fn report(&self, state: &State, me: &VmName) -> Option<Command> {
        self.report_as(self.document.as_ref()?.clone(), state, me)
    }

    /// The pending report at this level of trust in cluster time.
    pub fn report_by(&self, trust: Trust, state: &State, me: &VmName) -> Option<Command> {
        self.report_as(self.told(trust)?, state, me)
    }

    /// The document for the log. The meaning of the platform's times is unknown while cluster time is only guessed.
    fn told(&self, trust: Trust) -> Option<Document> {
        let document = self.document.as_ref()?;
        match trust {
            Trust::Unknown => None,
            Trust::Guessed => Some(document.clone().forget_times()),
            Trust::Known => Some(document.clone()),
        }
    }

    fn report_as(&self, document: Document, state: &State, me: &VmName) -> Option<Command> {
        let committed = state.replicas.get(me)?;
        let is_news = match committed.stale_since {
            Some(_) => self.is_current && self.missed.is_empty(),
            None => committed.document.as_ref() != Some(&document),
        };
        // A document above the limit would be rejected.
        (is_news && state.takes(&document))
            .then(|| Command::ReportDocument(ReportDocument { after: committed.reports, document }))
    }

    /// Whether the pending report may wait for reports of other replicas: another replica reports an equal document,
    /// and this replica does not vote. Voters are few, and while voters report at once the leader soon has its own
    /// knowledge.
    pub fn may_wait(&self, trust: Trust, state: &State, me: &VmName, votes: impl FnOnce() -> bool) -> bool {
        let told = self.told(trust);
        let says_the_same = |replica: &Replica| replica.stale_since.is_none() && replica.document == told;
        self.report_by(trust, state, me).is_some()
            && state.replicas.iter().any(|(name, replica)| name != me && says_the_same(replica))
            && !votes()
    }
}

/// Whether a report differs from the previous report in an event that names a VM of this cluster.
pub fn concerns_us(document: &Document, state: &State, me: &VmName) -> bool {
    let replica = state.replicas.get(me).filter(|replica| replica.stale_since.is_none());
    let Some(before) = replica.and_then(|replica| replica.document.as_ref()) else { return true };
    let is_other = |one: &Document, other: &Document| {
        let mut ours = one.events.iter().filter(|event| event.concerns(state));
        ours.any(|event| other.get(&event.id) != Some(event))
    };
    is_other(document, before) || is_other(before, document)
}

#[cfg(test)]
mod tests;
