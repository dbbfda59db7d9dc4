//! The open events as workloads see them: made once for all who watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::message::ms;
use crate::machine::document::NotBefore;
use crate::machine::event::Event;
use crate::machine::explain::explain;
use crate::machine::id::EventId;
use crate::machine::situation::Situation;
use crate::machine::state::State;
use crate::replica::view::{self, View};
use crate::wire::pb::allclear::workload::v1 as pb;

/// What changes within this time is told together: a thousand workloads read it every time. Whoever has something to do
/// is told of the event with that, and first.
const GATHER: Duration = Duration::from_millis(250);

pub(super) type Open = watch::Receiver<Arc<Vec<pb::Event>>>;

/// Goes on until it is stopped.
pub(super) fn watch_open(view: View, stop: CancellationToken) -> Open {
    let (open, seen) = watch::channel(Arc::new(open_events(&view)));
    tokio::spawn(async move {
        let mut changes = view.changes();
        while stop.run_until_cancelled(changes.next()).await == Some(true) {
            tokio::time::sleep(GATHER).await;
            let events = open_events(&view);
            open.send_if_modified(|known| {
                let is_news = **known != events;
                if is_news {
                    *known = Arc::new(events);
                }
                is_news
            });
        }
    });
    seen
}

fn open_events(view: &View) -> Vec<pb::Event> {
    let (state, situation) = view.basis();
    state.open.values().map(|event| of(event, &state, &situation)).collect()
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
