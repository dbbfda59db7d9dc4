//! The status as server-sent events: at once, and at each change.

use std::convert::Infallible;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::limits::reader;
use super::problem::problem;
use crate::net::limits::{AnswerBudget, PeerReader};
use crate::replica::view::{Changes, View};

/// The maximal number of concurrent streams.
const LISTENERS: usize = 64;

/// The interval of `alive` events; a client that receives no event for a few intervals has lost the replica. Changes
/// without a log entry, as an unreachable replica or a stalled channel, are noticed within this interval.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// Changes within this time are sent together.
const BURST: Duration = Duration::from_millis(50);

pub(super) fn router(view: View, room: AnswerBudget, stop: CancellationToken) -> Router<View> {
    let places = Arc::new(Semaphore::new(LISTENERS));
    let watch = move |request: Request| {
        let (place, reader) = (places.clone().try_acquire_owned(), reader(&request));
        let (view, room, stop) = (view.clone(), room.clone(), stop.clone());
        let listener = place.map(|place| StatusStream::new(view, (room, reader), stop, place));
        async move { listener.map_or_else(|_| full(), |listener| answer(listener.statuses())) }
    };
    Router::new().route("/v1/watch", get(watch))
}

fn answer(statuses: impl Stream<Item = Result<Bytes, Infallible>> + Send + 'static) -> Response {
    let headers = [(header::CACHE_CONTROL, "no-store"), (header::CONTENT_TYPE, "text/event-stream")];
    (headers, Body::from_stream(statuses)).into_response()
}

fn full() -> Response {
    let why = format!("the limit of {LISTENERS} listeners is reached; try again, or use another replica");
    ([(header::RETRY_AFTER, "5")], problem(StatusCode::SERVICE_UNAVAILABLE, &why)).into_response()
}

struct StatusStream {
    view: View,
    changes: Changes,
    room: (AnswerBudget, PeerReader),
    stop: CancellationToken,
    /// A digest of the last sent status, without values that change each time.
    told: Option<u64>,
    _place: OwnedSemaphorePermit,
}

impl StatusStream {
    fn new(view: View, room: (AnswerBudget, PeerReader), stop: CancellationToken, place: OwnedSemaphorePermit) -> Self {
        Self { changes: view.changes(), view, room, stop, told: None, _place: place }
    }

    /// The stream of events; each event occupies answer budget until read.
    fn statuses(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut listener| async {
            let event = listener.next().await?;
            let (room, reader) = &listener.room;
            Some((Ok(room.hold(reader, event.as_bytes()).await?), listener))
        })
    }

    /// The next event in the format of server-sent events.
    async fn next(&mut self) -> Option<String> {
        if self.told.is_some() {
            self.news().await?;
        }
        let status = self.view.status();
        let now = status.now.clone();
        let mut lasting = status.clone();
        lasting.now.clear();
        lasting.platform_difference_ms = lasting.platform_difference_ms.map(|ahead| ahead / 1000);
        for replica in &mut lasting.replicas {
            replica.last_document_age_ms = None;
            replica.clock_difference_ms = replica.clock_difference_ms.map(|ahead| ahead / 1000);
        }
        let mut digest = DefaultHasher::new();
        serde_json::to_string(&lasting).ok()?.hash(&mut digest);
        if self.told == Some(digest.finish()) {
            return Some(format!("event: alive\ndata: {now}\n\n"));
        }
        self.told = Some(digest.finish());
        Some(format!("data: {}\n\n", serde_json::to_string(&status).ok()?))
    }

    /// Waits for a possible change of the status, or until the next `alive` event is due. `None` when the replica
    /// stops.
    async fn news(&mut self) -> Option<()> {
        let listening = async {
            if let Ok(goes_on) = timeout(SIGN_OF_LIFE, self.changes.next()).await {
                sleep(BURST).await;
                return goes_on;
            }
            true
        };
        self.stop.run_until_cancelled(listening).await.filter(|goes_on| *goes_on).map(|_| ())
    }
}
