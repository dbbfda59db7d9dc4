//! What a replica reports of what its endpoint says: absence is believed only when two polls in a row agree
//! (`behaviour.md` 2), and a poll that brought no information interrupts the row.

use alloc::collections::BTreeSet;

use super::command::Command;
use super::document::{Document, Kind};
use super::id::{EventId, VmName};
use super::state::State;

/// One replica's view of its endpoint.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Observation {
    /// `None` before the first validated document.
    document: Option<Document>,
    /// Events of the document that the last poll did not list.
    missed: BTreeSet<EventId>,
}

impl Observation {
    /// Takes up where this replica left off: what it reported last is not forgotten because the process is new.
    pub fn resume(state: &State, me: &VmName) -> Self {
        let document = state.replicas.get(me).and_then(|replica| replica.document.clone());
        Self { document, missed: BTreeSet::new() }
    }

    /// A validated document arrived. An old api-version hides some kinds of events: what it cannot show is not missed.
    pub fn saw(&mut self, document: &Document, can_show: impl Fn(&Kind) -> bool) {
        let mut believed = document.clone();
        let mut missed = BTreeSet::new();
        for event in self.document.iter().flat_map(|before| &before.events) {
            if document.get(&event.id).is_some() {
                continue;
            }
            if !can_show(&event.kind) {
                believed.events.push(event.clone());
            } else if !self.missed.contains(&event.id) {
                missed.insert(event.id.clone());
                believed.events.push(event.clone());
            }
        }
        self.document = Some(Document::new(believed.events));
        self.missed = missed;
    }

    /// A poll brought no information.
    pub fn saw_nothing(&mut self) {
        self.missed.clear();
    }

    /// What is believed of the endpoint's document; `None` before the first.
    pub const fn document(&self) -> Option<&Document> {
        self.document.as_ref()
    }

    /// The report that is due: the content changed since the last committed one, or that one no longer counts.
    pub fn report(&self, state: &State, me: &VmName) -> Option<Command> {
        let document = self.document.as_ref()?;
        let committed = state.replicas.get(me)?;
        let is_news = committed.document.as_ref() != Some(document) || committed.discounted.is_some();
        is_news.then(|| Command::Report { after: committed.reports, document: document.clone() })
    }
}
