//! What a replica reports of what its endpoint says. That an event is gone, or has not started after all, is believed only
//! when polls in a row agree (`members.md` 3, D3 and D5), and a poll that brought no information interrupts the row.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

use super::command::Command;
use super::document::{Announcement, Document, Kind, Status};
use super::id::{EventId, VmName};
use super::lifecycle::Stage;
use super::state::{Replica, State};
use super::time::Timestamp;

/// So many polls in a row say that an event is gone which nobody has decided yet.
const POLLS: u32 = 2;
/// The same of an event that may be about to start, or has started.
const POLLS_OF_DECIDED: u32 = 5;

/// How long polls have to agree until what they say is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// Polls come so far apart; one that is asked for in between is none of a row.
    pub poll_interval: Duration,
    /// For an event that may be about to start, or has started.
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
    missed: BTreeMap<EventId, Row>,
    /// Started events of the document that the last polls show otherwise.
    taken_back: BTreeMap<EventId, Row>,
    /// So many reports of this replica are taken into account.
    reports: u64,
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
struct Row {
    /// When the first of them had been answered.
    since: Timestamp,
    polls: u32,
}

impl Row {
    fn lasts(self, polls: u32, span: Duration, time: PollTime) -> bool {
        self.polls >= polls && time.asked.since(self.since) >= span
    }
}

/// One more poll of a row that is kept for the event.
fn extend(rows: &BTreeMap<EventId, Row>, id: &EventId, time: PollTime) -> Row {
    let Row { since, polls } = rows.get(id).copied().unwrap_or(Row { since: time.answered, polls: 0 });
    Row { since, polls: polls + 1 }
}

/// It may be about to start: whatever ends it too early is dear.
fn is_decided(state: &State, before: &Announcement) -> bool {
    let event = state.open_event(&before.id);
    before.status == Status::Started
        || event.is_some_and(|event| event.stage() >= Stage::Claimed || event.is_taken_over())
}

impl Observation {
    /// What the log says of this replica and this process has not seen was reported by an earlier life, whose last words
    /// may be committed after this one began. It is not forgotten because the process is new.
    pub fn take_up(&mut self, state: &State, me: &VmName) {
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
    pub fn saw(
        &mut self,
        polled: &Document,
        state: &State,
        time: PollTime,
        patience: Patience,
        can_show: impl Fn(&Kind) -> bool,
    ) {
        let (was_missed, was_taken_back) = (core::mem::take(&mut self.missed), core::mem::take(&mut self.taken_back));
        // A timer that is late makes the next span a little shorter.
        let apart = patience.poll_interval * 9 / 10;
        let (mut missed, mut taken_back) = (BTreeMap::new(), BTreeMap::new());
        self.take_over(polled, |before, seen| {
            let id = &before.id;
            let (polls, span) =
                if is_decided(state, before) { (POLLS_OF_DECIDED, patience.gone_after) } else { (POLLS, apart) };
            match seen {
                Some(_) => {
                    let row = extend(&was_taken_back, id, time);
                    let is_kept = !row.lasts(polls, span, time);
                    taken_back.extend(is_kept.then(|| (id.clone(), row)));
                    is_kept
                }
                None if !can_show(&before.kind) => true,
                None => {
                    let row = extend(&was_missed, id, time);
                    let span = if polled.has_gap { span.max(patience.stale_after) } else { span };
                    let is_kept = !row.lasts(polls, span, time);
                    missed.extend(is_kept.then(|| (id.clone(), row)));
                    is_kept
                }
            }
        });
        (self.missed, self.taken_back, self.is_current) = (missed, taken_back, true);
    }

    /// A validated document arrived that was asked for beside the polls. What it lists is news, and what it does not list
    /// is none.
    pub fn looked(&mut self, document: &Document) {
        self.take_over(document, |_, _| true);
        self.missed.retain(|id, _| document.get(id).is_none());
        self.taken_back.retain(|id, _| document.get(id).is_none_or(|seen| seen.status < Status::Started));
    }

    /// Takes what is listed for what is believed. What is believed and not listed, or is believed to have started and is
    /// shown otherwise, is kept where `keeps` says so.
    fn take_over(&mut self, listed: &Document, mut keeps: impl FnMut(&Announcement, Option<&Announcement>) -> bool) {
        let before = self.document.take().unwrap_or_default();
        let new = listed.events.iter().filter(|seen| before.get(&seen.id).is_none()).cloned();
        let known = before.events.iter().filter_map(|known| {
            let Some(seen) = listed.get(&known.id) else {
                return keeps(known, None).then(|| known.clone());
            };
            let has_started = known.status == Status::Started;
            Some(match seen.status {
                // What was known stays what it was.
                Status::Unreadable if has_started => known.clone(),
                Status::Unreadable => Announcement { status: Status::Unreadable, ..known.clone() },
                Status::Started => seen.clone(),
                _ if has_started && keeps(known, Some(seen)) => {
                    Announcement { status: Status::Started, ..seen.clone() }
                }
                Status::Other(_) | Status::Scheduled => seen.clone(),
            })
        });
        self.document = Some(Document::new(known.chain(new).collect()));
    }

    /// A poll brought no information.
    pub fn saw_nothing(&mut self) {
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
        let document = self.document.as_ref()?;
        let committed = state.replicas.get(me)?;
        let is_news = match committed.discounted {
            Some(_) => self.is_current && self.missed.is_empty(),
            None => committed.document.as_ref() != Some(document),
        };
        is_news.then(|| Command::Report { after: committed.reports, document: document.clone() })
    }

    /// Whether the report that is due may wait for those of others: another replica's says the same, and this one does not
    /// vote. Voters are few, and where they report at once whoever leads knows for itself soon.
    pub fn may_wait(&self, state: &State, me: &VmName, votes: impl FnOnce() -> bool) -> bool {
        let says_the_same = |replica: &Replica| replica.discounted.is_none() && replica.document == self.document;
        self.report(state, me).is_some()
            && state.replicas.iter().any(|(name, replica)| name != me && says_the_same(replica))
            && !votes()
    }
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use super::super::apply::apply;
    use super::super::command::Entry;
    use super::super::document::Status;
    use super::super::document::tests::announced;
    use super::super::event::Event;
    use super::super::time::Timestamp;
    use super::*;

    fn listing(ids: &[&str]) -> Document {
        Document::new(ids.iter().map(|id| announced(id, Status::Scheduled)).collect())
    }

    fn with_reported(me: &VmName, reports: u64, ids: &[&str]) -> State {
        let mut state = State::default();
        let replica = Arc::make_mut(state.replicas.entry(me.clone()).or_default());
        (replica.reports, replica.document) = (reports, Some(listing(ids)));
        state
    }

    /// A poll at this second, with everything that the api-version can show.
    fn poll(observation: &mut Observation, state: &State, second: i64, document: &Document) {
        observation.saw(document, state, PollTime::at_once(Timestamp(second * 1000)), Patience::default(), |_| true);
    }

    fn reported(observation: &Observation) -> Document {
        observation.document.clone().unwrap_or_default()
    }

    #[test]
    fn an_event_is_gone_when_two_polls_in_a_row_do_not_list_it() {
        let (mut observation, state) = (Observation::default(), State::default());
        poll(&mut observation, &state, 0, &listing(&["e1", "e2"]));
        poll(&mut observation, &state, 1, &listing(&["e2"]));
        assert_eq!(reported(&observation), listing(&["e1", "e2"]));
        let time = PollTime { asked: Timestamp(1_200), answered: Timestamp(5_000) };
        observation.saw(&listing(&["e2"]), &state, time, Patience::default(), |_| true);
        assert_eq!(reported(&observation), listing(&["e1", "e2"]), "they are not an interval apart");
        poll(&mut observation, &state, 2, &listing(&["e2"]));
        assert_eq!(reported(&observation), listing(&["e2"]));
    }

    #[test]
    fn a_poll_that_brings_nothing_or_the_event_interrupts_the_row() {
        let (mut observation, state) = (Observation::default(), State::default());
        poll(&mut observation, &state, 0, &listing(&["e1"]));
        poll(&mut observation, &state, 1, &listing(&[]));
        observation.saw_nothing();
        poll(&mut observation, &state, 2, &listing(&[]));
        assert_eq!(reported(&observation), listing(&["e1"]));
        poll(&mut observation, &state, 3, &listing(&["e1"]));
        poll(&mut observation, &state, 4, &listing(&[]));
        assert_eq!(reported(&observation), listing(&["e1"]));
    }

    #[test]
    fn a_look_beside_the_polls_brings_news_and_ends_nothing() {
        let (mut observation, state) = (Observation::default(), State::default());
        poll(&mut observation, &state, 0, &listing(&["e1"]));
        poll(&mut observation, &state, 1, &listing(&[]));
        observation.looked(&listing(&["e2"]));
        observation.looked(&listing(&["e2"]));
        assert_eq!(reported(&observation), listing(&["e1", "e2"]));
        observation.looked(&listing(&["e1", "e2"]));
        poll(&mut observation, &state, 2, &listing(&["e2"]));
        assert_eq!(reported(&observation), listing(&["e1", "e2"]), "it was listed meanwhile");
    }

    #[test]
    fn what_may_be_about_to_start_or_has_started_is_gone_after_ten_seconds_and_five_polls() {
        let (mut observation, mut state) = (Observation::default(), State::default());
        poll(&mut observation, &state, 0, &listing(&["e1"]));
        let mut event = Event::first_seen_as(announced("e1", Status::Scheduled), VmName::new("a"), Timestamp(0));
        event.entered.push((Stage::Claimed, Timestamp(0)));
        state.open.insert(EventId::new("e1"), event.into());
        for second in 1..=10 {
            poll(&mut observation, &state, second, &listing(&[]));
        }
        assert_eq!(reported(&observation), listing(&["e1"]));
        poll(&mut observation, &state, 11, &listing(&[]));
        assert_eq!(reported(&observation), listing(&[]));

        let started = Document::new([announced("e2", Status::Started)].into());
        poll(&mut observation, &state, 20, &started);
        for second in [21, 25, 30, 35] {
            poll(&mut observation, &state, second, &listing(&[]));
        }
        assert_eq!(reported(&observation), started, "four polls");
        poll(&mut observation, &state, 36, &listing(&[]));
        assert_eq!(reported(&observation), listing(&[]));
    }

    #[test]
    fn that_an_event_has_started_is_taken_back_after_ten_seconds_and_five_polls() {
        let (mut observation, state) = (Observation::default(), State::default());
        let started = Document::new([announced("e1", Status::Started)].into());
        poll(&mut observation, &state, 0, &started);
        for second in 1..=8 {
            poll(&mut observation, &state, second, &listing(&["e1"]));
        }
        observation.looked(&started);
        for second in 9..=18 {
            poll(&mut observation, &state, second, &listing(&["e1"]));
        }
        assert_eq!(reported(&observation), started);
        poll(&mut observation, &state, 19, &listing(&["e1"]));
        assert_eq!(reported(&observation), listing(&["e1"]));
    }

    #[test]
    fn that_an_event_has_started_by_the_word_of_an_earlier_life_is_taken_up() {
        let (me, mut observation) = (VmName::new("a"), Observation::default());
        poll(&mut observation, &State::default(), 0, &listing(&["e1"]));
        let mut state = with_reported(&me, 1, &[]);
        let started = Document::new([announced("e1", Status::Started)].into());
        Arc::make_mut(state.replicas.get_mut(&me).unwrap()).document = Some(started.clone());
        observation.take_up(&state, &me);
        assert_eq!(reported(&observation), started);
    }

    #[test]
    fn what_cannot_be_read_stays_what_it_was() {
        let (mut observation, state) = (Observation::default(), State::default());
        let of = |status: Status| Document::new([announced("e1", status)].into());
        let unreadable = Document::new([Announcement::unreadable(EventId::new("e1"), "it is odd")].into());
        poll(&mut observation, &state, 0, &of(Status::Scheduled));
        poll(&mut observation, &state, 1, &unreadable);
        assert_eq!(reported(&observation), of(Status::Unreadable));
        poll(&mut observation, &state, 2, &of(Status::Started));
        poll(&mut observation, &state, 3, &unreadable);
        assert_eq!(reported(&observation), of(Status::Started));
    }

    #[test]
    fn behind_an_element_without_an_id_an_event_may_hide_for_a_minute() {
        let (mut observation, state) = (Observation::default(), State::default());
        let gap = Document { has_gap: true, ..Document::default() };
        poll(&mut observation, &state, 0, &listing(&["e1"]));
        for second in 1..=60 {
            poll(&mut observation, &state, second, &gap);
        }
        assert_eq!(reported(&observation), listing(&["e1"]));
        poll(&mut observation, &state, 61, &gap);
        assert_eq!(reported(&observation), listing(&[]));
    }

    #[test]
    fn an_event_that_the_api_version_cannot_show_is_not_missed() {
        let (mut observation, state) = (Observation::default(), State::default());
        poll(&mut observation, &state, 0, &listing(&["e1"]));
        for second in 1..4 {
            let now = PollTime::at_once(Timestamp(second * 1000));
            observation.saw(&listing(&[]), &state, now, Patience::default(), |kind| *kind != Kind::Reboot);
        }
        assert_eq!(reported(&observation), listing(&["e1"]));
    }

    #[test]
    fn a_document_is_reported_once_and_again_when_it_no_longer_counts() {
        let me = VmName::new("a");
        let mut state = State::default();
        let commit = |state: &mut State, command| {
            apply(state, &Entry { at: Timestamp(0), by: me.clone(), command });
        };
        let mut observation = Observation::default();
        commit(&mut state, Command::Register { workloads: Vec::new(), groups: Vec::new() });
        assert_eq!(observation.report(&state, &me), None, "nothing is known yet");
        poll(&mut observation, &state, 1, &listing(&[]));
        let first = observation.report(&state, &me).expect("that there is nothing is news");
        commit(&mut state, first);
        assert_eq!(observation.report(&state, &me), None);
        commit(&mut state, Command::Discount { replica: me.clone() });
        assert!(observation.report(&state, &me).is_some());
        observation.saw_nothing();
        assert_eq!(observation.report(&state, &me), None, "it would be discounted again at once");
    }

    #[test]
    fn whose_word_no_longer_counts_speaks_again_when_it_knows_what_is_gone() {
        let me = VmName::new("a");
        let mut state = with_reported(&me, 1, &["e1", "e2"]);
        Arc::make_mut(state.replicas.entry(me.clone()).or_default()).discounted = Some(Timestamp(0));
        let mut observation = Observation::default();
        observation.take_up(&state, &me);
        poll(&mut observation, &state, 2, &listing(&["e2", "e3"]));
        assert_eq!(observation.report(&state, &me), None, "e1 would seem to be announced again");
        poll(&mut observation, &state, 3, &listing(&["e2", "e3"]));
        assert!(observation.report(&state, &me).is_some());
        assert_eq!(reported(&observation), listing(&["e2", "e3"]));

        let mut late = Observation::default();
        poll(&mut late, &state, 4, &listing(&["e2", "e3"]));
        late.take_up(&state, &me);
        for second in [5, 6] {
            assert_eq!(late.report(&state, &me), None, "it polled before it knew the log");
            poll(&mut late, &state, second, &listing(&["e2", "e3"]));
        }
        assert!(late.report(&state, &me).is_some());
        assert_eq!(reported(&late), listing(&["e2", "e3"]));
    }

    #[test]
    fn a_learner_lets_others_report_first_what_another_one_says_as_long_as_that_counts() {
        let (me, other) = (VmName::new("a"), VmName::new("b"));
        let mut state = State::default();
        state.replicas.entry(me.clone()).or_default();
        state.replicas.entry(other.clone()).or_default();
        let mut observation = Observation::default();
        assert!(!observation.may_wait(&state, &me, || false), "nothing is due");
        poll(&mut observation, &state, 6, &listing(&["e1"]));
        assert!(!observation.may_wait(&state, &me, || false), "nobody else says it");
        Arc::make_mut(state.replicas.entry(other.clone()).or_default()).document = Some(listing(&["e1"]));
        assert!(observation.may_wait(&state, &me, || false));
        assert!(!observation.may_wait(&state, &me, || true), "it votes");
        Arc::make_mut(state.replicas.entry(other).or_default()).discounted = Some(Timestamp(0));
        assert!(!observation.may_wait(&state, &me, || false), "the other's word does not count");
    }

    #[test]
    fn a_restarted_replica_does_not_take_a_first_empty_poll_for_an_end() {
        let me = VmName::new("a");
        let state = with_reported(&me, 1, &["e1"]);
        let mut observation = Observation::default();
        observation.take_up(&state, &me);
        poll(&mut observation, &state, 7, &listing(&[]));
        assert_eq!(observation.report(&state, &me), None);
        poll(&mut observation, &state, 8, &listing(&[]));
        assert!(observation.report(&state, &me).is_some());
    }

    #[test]
    fn what_an_earlier_life_reported_is_not_denied_when_it_is_in_the_log_late() {
        let me = VmName::new("a");
        let mut observation = Observation::default();
        observation.take_up(&with_reported(&me, 1, &[]), &me);
        poll(&mut observation, &State::default(), 9, &listing(&["e2"]));
        let late = with_reported(&me, 2, &["e1"]);
        observation.take_up(&late, &me);
        assert_eq!(reported(&observation), listing(&["e2", "e1"]));
        poll(&mut observation, &State::default(), 10, &listing(&["e2"]));
        observation.take_up(&late, &me);
        assert_eq!(reported(&observation), listing(&["e2", "e1"]));
        poll(&mut observation, &State::default(), 11, &listing(&["e2"]));
        observation.take_up(&late, &me);
        assert_eq!(reported(&observation), listing(&["e2"]), "once it is taken up two polls are enough");
    }
}
