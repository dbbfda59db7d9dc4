//! Judges the polls of one replica before it reports. An event counts as gone, or as not started, only after polls in a
//! row that agree (`members.md` 3, D3 and D5). A poll without information interrupts the row.

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

/// So many polls in a row say that an event is gone for which nothing was begun.
const POLLS: u32 = 2;

/// The same of an event for which hooks were begun, or that may be about to start or has started.
const POLLS_OF_BEGUN: u32 = 5;

/// How long polls have to agree until what they say is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Polls come so far apart; one that is asked for in between is none of a row.
    pub poll_interval: Duration,
    /// For an event for which hooks were begun, or that may be about to start or has started.
    pub gone_after: Duration,
    /// For what may stand in an element that cannot be read.
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
    /// `None` before the first validated document, unless the log knows of one.
    document: Option<Document>,
    /// The last poll brought it.
    is_current: bool,
    /// Events of the document that the last polls did not list.
    missed: BTreeMap<EventId, AgreeingPolls>,
    /// Started events of the document that the last polls show otherwise.
    taken_back: BTreeMap<EventId, AgreeingPolls>,
    /// So many reports of this replica are taken into account.
    reports: u64,
    /// So many events that were listed last are not believed as they are: there is no room for them.
    left_out: usize,
}

/// A poll that brought a document.
#[derive(Clone, Copy, Debug)]
pub struct Poll<'a> {
    pub document: &'a Document,
    pub time: PollTime,
    pub patience: Patience,
}

/// When a poll was asked for and answered, on a clock that never goes back: what it says was so at some time in between.
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

/// Polls one after the other that agree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct AgreeingPolls {
    /// When the first of them had been answered.
    since: Timestamp,
    polls: u32,
}

impl AgreeingPolls {
    fn lasts(self, polls: u32, span: Duration, time: PollTime) -> bool {
        self.polls >= polls && time.asked.since(self.since) >= span
    }
}

/// One more poll of a row that is kept for the event.
fn extend(rows: &BTreeMap<EventId, AgreeingPolls>, id: &EventId, time: PollTime) -> AgreeingPolls {
    let AgreeingPolls { since, polls } =
        rows.get(id).copied().unwrap_or(AgreeingPolls { since: time.answered, polls: 0 });
    AgreeingPolls { since, polls: polls + 1 }
}

/// It may be about to start: whatever ends it too early is dear.
fn is_decided(state: &State, before: &Announcement) -> bool {
    let event = state.open_event(&before.id);
    before.status == Status::Started
        || event.is_some_and(|event| event.stage() >= Stage::Claimed || event.has_isolated_approval())
}

/// Its hooks may have moved service away: whatever ends it too early has that undone and done again.
fn is_begun(state: &State, id: &EventId) -> bool {
    state.open_event(id).is_some_and(|event| !event.attempts.is_empty())
}

impl Observation {
    /// What the log says of this replica and this process has not seen was reported by an earlier life, whose last words
    /// may be committed after this one began. It is not forgotten because the process is new.
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

    /// The document of a poll arrived. An old api-version hides some kinds of events: what it cannot show is not missed.
    pub fn record_poll(
        &mut self,
        Poll { document: polled, time, patience }: Poll<'_>,
        state: &State,
        can_show: impl Fn(&EventType) -> bool,
    ) {
        let (was_missed, was_taken_back) = (core::mem::take(&mut self.missed), core::mem::take(&mut self.taken_back));
        // A timer that is late makes the next span a little shorter.
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

    /// A validated document arrived that was asked for beside the polls. What it lists is news, and what it does not list
    /// is none.
    pub fn looked(&mut self, document: &Document, state: &State) {
        self.adopt_listed(document, state, |known, _| Some(known.status.clone()));
        self.missed.retain(|id, _| document.get(id).is_none());
        self.taken_back.retain(|id, _| document.get(id).is_none_or(|seen| seen.status < Status::Started));
    }

    /// Takes what is listed for what is believed. What is believed and not listed, or is believed to have started and is
    /// shown otherwise, is kept as `kept_as` says.
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
                // What was known stays what it was.
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

    /// How many events of what was listed last there was no room for.
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// A poll brought no information.
    pub fn record_failed_poll(&mut self) {
        self.missed.clear();
        self.taken_back.clear();
        self.is_current = false;
    }

    /// What is believed of the endpoint's document; `None` before anything is known.
    pub const fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// The report that is due: the content changed since the last committed one, or that one no longer counts. A replica
    /// whose word does not count speaks again when it knows what is gone: an event that its last poll did not list any
    /// more would be taken for announced again.
    pub fn report(&self, state: &State, me: &VmName) -> Option<Command> {
        self.report_as(self.document.as_ref()?.clone(), state, me)
    }

    /// The report that is due while the cluster's time is known so well.
    pub fn report_by(&self, trust: Trust, state: &State, me: &VmName) -> Option<Command> {
        self.report_as(self.told(trust)?, state, me)
    }

    /// What the log is told. What the platform's times mean is not known while the cluster's time is only guessed.
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
        // Nobody would take it.
        (is_news && state.takes(&document))
            .then(|| Command::ReportDocument(ReportDocument { after: committed.reports, document }))
    }

    /// Whether the report that is due may wait for those of others: another replica's says the same, and this one does not
    /// vote. Voters are few, and where they report at once whoever leads knows for itself soon.
    pub fn may_wait(&self, trust: Trust, state: &State, me: &VmName, votes: impl FnOnce() -> bool) -> bool {
        let told = self.told(trust);
        let says_the_same = |replica: &Replica| replica.stale_since.is_none() && replica.document == told;
        self.report_by(trust, state, me).is_some()
            && state.replicas.iter().any(|(name, replica)| name != me && says_the_same(replica))
            && !votes()
    }
}

/// Whether a report says something else than the one before it of an event that names a VM of this cluster.
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
