//! The open events as sent to workloads, computed once for all watchers, and only while there are watchers.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::replica::clock;
use crate::replica::view::{self, View};
use allclear_core::explain::explain;
use allclear_core::model::document::NotBefore;
use allclear_core::model::event::Event;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::planning_input::PlanningInput;
use allclear_wire::pb::allclear::workload::v1 as pb;

/// Changes within this time are sent together. An attempt carries its event and is sent first.
const GATHER: Duration = Duration::from_millis(250);

/// The latest events, with change detection.
pub(super) type Seen = watch::Receiver<Arc<Vec<pb::Event>>>;

/// Two feeds: all open events, and the events of this VM for sessions.
pub(super) struct OpenStreams {
    pub(super) all: EventFeed,
    pub(super) here: EventFeed,
}

impl OpenStreams {
    /// Starts the feeds, which run until `stop`.
    pub(super) fn new(view: &View, vm: VmName, stop: CancellationToken) -> Arc<Self> {
        let told = |vm| EventFeed { view: view.clone(), vm, events: watch::Sender::default(), made: Mutex::default() };
        let open = Arc::new(Self { all: told(None), here: told(Some(vm)) });
        tokio::spawn(open.clone().keep(stop));
        open
    }

    async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let mut changes = self.all.view.changes();
        while stop.run_until_cancelled(changes.next()).await == Some(true) {
            tokio::time::sleep(GATHER).await;
            for told in [&self.all, &self.here] {
                told.renew();
            }
        }
    }
}

pub(super) struct EventFeed {
    view: View,
    /// `None`: events of all VMs.
    vm: Option<VmName>,
    events: watch::Sender<Arc<Vec<pb::Event>>>,
    /// The time of the last computation, on the monotonic clock; locked during a computation.
    made: Mutex<Option<Timestamp>>,
}

impl EventFeed {
    /// Subscribes to the feed. Changes from a time without watchers are sent at once; changes within the last `GATHER`
    /// are sent a moment later, so that repeated reconnects do not cause a computation each.
    pub(super) fn watch(&self) -> Seen {
        let mut made = self.lock();
        let is_recent = made.is_some_and(|at| clock::monotonic().since(at) < GATHER);
        if self.events.receiver_count() == 0 && !is_recent {
            self.make(&mut made);
        }
        self.events.subscribe()
    }

    fn renew(&self) {
        let mut made = self.lock();
        if self.events.receiver_count() > 0 {
            self.make(&mut made);
        }
    }

    fn make(&self, made: &mut Option<Timestamp>) {
        *made = Some(clock::monotonic());
        let (state, input) = self.view.inputs();
        let is_told = |event: &&Event| self.vm.as_ref().is_none_or(|vm| event.announcement.resources.contains(vm));
        let events: Vec<_> = state.open_events().filter(is_told).map(|event| of(event, &state, &input)).collect();
        self.events.send_if_modified(|known| {
            let is_news = **known != events;
            if is_news {
                *known = Arc::new(events);
            }
            is_news
        });
    }

    fn lock(&self) -> MutexGuard<'_, Option<Timestamp>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One event, open or closed.
pub(super) fn one(view: &View, id: &EventId) -> Option<pb::Event> {
    let (state, input) = view.inputs();
    state.event(id).map(|event| of(event, &state, &input))
}

/// The event without its history: the message may go to every workload at once.
fn of(event: &Event, state: &State, input: &PlanningInput) -> pb::Event {
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
        blocker: explain(state, event, input)
            .first()
            .map(|found| view::blocker::shown(found, event, state, input).message),
        revision: event.revision,
    }
}

pub(super) fn ms(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}
