//! The open events as workloads see them: made once for all who watch, and not while nobody does.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::message::ms;
use crate::machine::document::NotBefore;
use crate::machine::event::Event;
use crate::machine::explain::explain;
use crate::machine::id::{EventId, VmName};
use crate::machine::situation::Situation;
use crate::machine::state::State;
use crate::replica::view::{self, View};
use crate::wire::pb::allclear::workload::v1 as pb;

/// What changes within this time is told together: a thousand workloads read it every time. Whoever has something to do
/// is told of the event with that, and first.
const GATHER: Duration = Duration::from_millis(250);

/// What one watches: the latest, and whether it is another.
pub(super) type Seen = watch::Receiver<Arc<Vec<pb::Event>>>;

pub(super) struct Open {
    view: View,
    vm: VmName,
    all: watch::Sender<Arc<Vec<pb::Event>>>,
    /// Of all, those that affect this VM.
    here: watch::Sender<Arc<Vec<pb::Event>>>,
    /// Held while somebody begins to watch.
    beginning: Mutex<()>,
}

impl Open {
    /// Goes on until it is stopped.
    pub(super) fn new(view: View, vm: VmName, stop: CancellationToken) -> Arc<Self> {
        let (all, here) = (watch::Sender::default(), watch::Sender::default());
        let open = Arc::new(Self { view, vm, all, here, beginning: Mutex::default() });
        tokio::spawn(open.clone().keep(stop));
        open
    }

    /// All open events.
    pub(super) fn watch_all(&self) -> Seen {
        self.watch(&self.all)
    }

    /// Those that affect this VM.
    pub(super) fn watch_here(&self) -> Seen {
        self.watch(&self.here)
    }

    fn watch(&self, which: &watch::Sender<Arc<Vec<pb::Event>>>) -> Seen {
        let _one_by_one = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_watched() {
            self.make();
        }
        which.subscribe()
    }

    async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.view.changes();
        while stop.run_until_cancelled(changes.next()).await == Some(true) {
            tokio::time::sleep(GATHER).await;
            if self.is_watched() {
                self.make();
            }
        }
    }

    fn is_watched(&self) -> bool {
        self.all.receiver_count() + self.here.receiver_count() > 0
    }

    fn make(&self) {
        let (state, situation) = self.view.basis();
        let all: Vec<pb::Event> = state.open_events().map(|event| of(event, &state, &situation)).collect();
        let affects = |event: &&pb::Event| event.resources.iter().any(|name| VmName::new(name) == self.vm);
        put(&self.here, all.iter().filter(affects).cloned().collect());
        put(&self.all, all);
    }
}

fn put(told: &watch::Sender<Arc<Vec<pb::Event>>>, events: Vec<pb::Event>) {
    told.send_if_modified(|known| {
        let is_news = **known != events;
        if is_news {
            *known = Arc::new(events);
        }
        is_news
    });
}

/// One event, open or closed.
pub(super) fn one(view: &View, id: &EventId) -> Option<pb::Event> {
    let (state, situation) = view.basis();
    state.event(id).map(|event| of(event, &state, &situation))
}

/// Without its history: a hundred workloads may be told of it at once.
fn of(event: &Event, state: &State, situation: &Situation) -> pb::Event {
    let announcement = &event.announcement;
    pb::Event {
        id: announcement.id.to_string(),
        r#type: announcement.kind.to_string(),
        source: announcement.source.to_string(),
        resources: announcement.resources.iter().map(ToString::to_string).collect(),
        status: view::status(state, event).map(ToString::to_string),
        not_before_unix_ms: match announcement.not_before {
            NotBefore::At(at) => Some(at.0),
            NotBefore::Unknown => None,
        },
        description: announcement.description.clone(),
        duration_ms: announcement.duration.map(ms),
        stage: event.stage().to_string(),
        blocker: explain(state, event, situation)
            .map(|found| view::blocker::shown(&found, event, state, situation).message),
        revision: event.revision,
    }
}
