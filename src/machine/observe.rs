//! What a replica reports of what its endpoint says: absence is believed only when two polls in a row agree
//! (`behaviour.md` 2), and a poll that brought no information interrupts the row.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::command::Command;
use super::document::{Document, Kind};
use super::id::{EventId, VmName};
use super::state::{Replica, State};

/// One replica's view of its endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Observation {
    /// `None` before the first validated document, unless the log knows of one.
    document: Option<Document>,
    /// The last poll brought it.
    is_current: bool,
    /// Events of the document that the last poll did not list.
    missed: BTreeSet<EventId>,
    /// So many reports of this replica are taken into account.
    reports: u64,
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
        let known = self.document.take().unwrap_or_default();
        let unknown: Vec<_> = reported.events.iter().filter(|event| known.get(&event.id).is_none()).cloned().collect();
        self.is_current &= unknown.is_empty();
        self.document = Some(Document::new(known.events.into_iter().chain(unknown).collect()));
    }

    /// A validated document arrived. An old api-version hides some kinds of events: what it cannot show is not missed.
    pub fn saw(&mut self, document: &Document, can_show: impl Fn(&Kind) -> bool) {
        let mut kept = Vec::new();
        let mut missed = BTreeSet::new();
        for event in self.document.iter().flat_map(|before| &before.events) {
            if document.get(&event.id).is_some() {
                continue;
            }
            if !can_show(&event.kind) {
                kept.push(event.clone());
            } else if !self.missed.contains(&event.id) {
                missed.insert(event.id.clone());
                kept.push(event.clone());
            }
        }
        self.document = Some(Document::new(document.events.iter().cloned().chain(kept).collect()));
        (self.missed, self.is_current) = (missed, true);
    }

    /// A poll brought no information.
    pub fn saw_nothing(&mut self) {
        self.missed.clear();
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
    use super::super::document::tests::announced;
    use super::super::document::{Kind, Status};
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

    fn reported(observation: &Observation) -> Document {
        observation.document.clone().unwrap_or_default()
    }

    #[test]
    fn an_event_is_gone_when_two_polls_in_a_row_do_not_list_it() {
        let mut observation = Observation::default();
        observation.saw(&listing(&["e1", "e2"]), |_| true);
        observation.saw(&listing(&["e2"]), |_| true);
        assert_eq!(reported(&observation), listing(&["e1", "e2"]));
        observation.saw(&listing(&["e2"]), |_| true);
        assert_eq!(reported(&observation), listing(&["e2"]));
    }

    #[test]
    fn a_poll_that_brings_nothing_or_the_event_interrupts_the_row() {
        let mut observation = Observation::default();
        observation.saw(&listing(&["e1"]), |_| true);
        observation.saw(&listing(&[]), |_| true);
        observation.saw_nothing();
        observation.saw(&listing(&[]), |_| true);
        assert_eq!(reported(&observation), listing(&["e1"]));
        observation.saw(&listing(&["e1"]), |_| true);
        observation.saw(&listing(&[]), |_| true);
        assert_eq!(reported(&observation), listing(&["e1"]));
    }

    #[test]
    fn an_event_that_the_api_version_cannot_show_is_not_missed() {
        let mut observation = Observation::default();
        observation.saw(&listing(&["e1"]), |_| true);
        for _ in 0..3 {
            observation.saw(&listing(&[]), |kind| *kind != Kind::Reboot);
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
        observation.saw(&listing(&[]), |_| true);
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
        observation.saw(&listing(&["e2", "e3"]), |_| true);
        assert_eq!(observation.report(&state, &me), None, "e1 would seem to be announced again");
        observation.saw(&listing(&["e2", "e3"]), |_| true);
        assert!(observation.report(&state, &me).is_some());
        assert_eq!(reported(&observation), listing(&["e2", "e3"]));

        let mut late = Observation::default();
        late.saw(&listing(&["e2", "e3"]), |_| true);
        late.take_up(&state, &me);
        for _ in 0..2 {
            assert_eq!(late.report(&state, &me), None, "it polled before it knew the log");
            late.saw(&listing(&["e2", "e3"]), |_| true);
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
        observation.saw(&listing(&["e1"]), |_| true);
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
        observation.saw(&listing(&[]), |_| true);
        assert_eq!(observation.report(&state, &me), None);
        observation.saw(&listing(&[]), |_| true);
        assert!(observation.report(&state, &me).is_some());
    }

    #[test]
    fn what_an_earlier_life_reported_is_not_denied_when_it_is_in_the_log_late() {
        let me = VmName::new("a");
        let mut observation = Observation::default();
        observation.take_up(&with_reported(&me, 1, &[]), &me);
        observation.saw(&listing(&["e2"]), |_| true);
        let late = with_reported(&me, 2, &["e1"]);
        observation.take_up(&late, &me);
        assert_eq!(reported(&observation), listing(&["e2", "e1"]));
        observation.saw(&listing(&["e2"]), |_| true);
        observation.take_up(&late, &me);
        assert_eq!(reported(&observation), listing(&["e2", "e1"]));
        observation.saw(&listing(&["e2"]), |_| true);
        observation.take_up(&late, &me);
        assert_eq!(reported(&observation), listing(&["e2"]), "once it is taken up two polls are enough");
    }
}
