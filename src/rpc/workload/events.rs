//! The open events as workloads see them: made once for all who watch.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::message::ms;
use crate::machine::document::NotBefore;
use crate::machine::id::EventId;
use crate::machine::state::State;
use crate::replica::here::Here;
use crate::replica::view::View;
use crate::wire::pb::allclear::operator::v1 as shown;
use crate::wire::pb::allclear::workload::v1 as pb;

/// What changes within this time of the last look is told together: a thousand workloads read it every time.
const GATHER: Duration = Duration::from_millis(250);

pub(super) type Open = watch::Receiver<Arc<Vec<pb::Event>>>;

/// Goes on until it is stopped.
pub(super) fn watch_open(view: View, here: Arc<Here>, stop: CancellationToken) -> Open {
    let (open, seen) = watch::channel(Arc::new(open_events(&view, &here.state())));
    tokio::spawn(async move {
        let mut changes = view.changes();
        while stop.run_until_cancelled(changes.next()).await == Some(true) {
            let events = open_events(&view, &here.state());
            open.send_if_modified(|known| {
                let is_news = **known != events;
                if is_news {
                    *known = Arc::new(events);
                }
                is_news
            });
            tokio::time::sleep(GATHER).await;
        }
    });
    seen
}

fn open_events(view: &View, state: &State) -> Vec<pb::Event> {
    view.status().events.into_iter().map(|event| of(event, state)).collect()
}

/// One event, open or closed.
pub(super) fn one(view: &View, state: &State, id: &EventId) -> Option<pb::Event> {
    view.event(id.as_str()).map(|event| of(event, state))
}

fn of(event: shown::Event, state: &State) -> pb::Event {
    let known = state.event(&EventId::new(&event.id)).map(|event| &event.announcement);
    pb::Event {
        not_before_unix_ms: known.and_then(|announcement| match announcement.not_before {
            NotBefore::At(at) => Some(at.0),
            NotBefore::Unknown => None,
        }),
        duration_ms: known.and_then(|announcement| announcement.duration).map(ms),
        id: event.id,
        r#type: event.r#type,
        source: event.source,
        resources: event.resources,
        status: event.status,
        description: event.description,
        stage: event.stage,
        blocker: event.blocker.map(|blocker| blocker.message),
        revision: event.revision,
    }
}
