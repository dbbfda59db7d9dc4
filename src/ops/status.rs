//! The status for programs. Making it costs more than sending it, so whoever asks within a moment gets the same one, unless
//! something has changed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::get;

use super::bounds::{Limits, too_often};
use crate::admission::Who;
use crate::machine::state::State;
use crate::machine::time::Timestamp;
use crate::replica::clock;
use crate::replica::view::View;

/// How old an answer may be, ages and times in it too.
const SHARED_FOR: Duration = Duration::from_millis(50);

/// What was told last.
struct Told {
    of: Arc<State>,
    /// On the steady clock.
    at: Timestamp,
    answer: Bytes,
}

#[derive(Default)]
struct Statuses(Mutex<Option<Told>>);

pub(super) fn router(view: View, limits: Arc<Limits>) -> Router<View> {
    let statuses = Arc::new(Statuses::default());
    let status = move || {
        let (statuses, view, limits) = (statuses.clone(), view.clone(), limits.clone());
        async move { statuses.answer(&view, &limits).await }
    };
    Router::new().route("/v1/status", get(status))
}

impl Statuses {
    async fn answer(&self, view: &View, limits: &Limits) -> Response {
        let answer = match self.shared(view) {
            Some(answer) if limits.shared.wait(Who::Anybody).await => answer,
            // Somebody else may have had it made meanwhile.
            None if limits.made.wait(Who::Anybody).await => self.shared(view).unwrap_or_else(|| self.make(view)),
            Some(_) | None => return too_often(),
        };
        ([(header::CONTENT_TYPE, "application/json")], answer).into_response()
    }

    fn shared(&self, view: &View) -> Option<Bytes> {
        let told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let told = told.as_ref()?;
        let is_fresh = Arc::ptr_eq(&told.of, &view.state()) && clock::steady().since(told.at) < SHARED_FOR;
        is_fresh.then(|| told.answer.clone())
    }

    fn make(&self, view: &View) -> Bytes {
        let (of, at) = (view.state(), clock::steady());
        // The status has no map whose keys are no text, and nothing else fails.
        let answer = Bytes::from(serde_json::to_vec(&view.status()).unwrap_or_default());
        let told = Told { of, at, answer: answer.clone() };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(told);
        answer
    }
}
