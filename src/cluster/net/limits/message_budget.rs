//! Bounds the bytes of received messages that have no answer yet. A call above the budget fails with
//! `RESOURCE_EXHAUSTED`.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tonic::service::Routes;
use tonic::{Extensions, Status};

/// The bytes that messages of some callers may hold.
pub struct MessageBudget {
    most: usize,
    taken: AtomicUsize,
}

impl MessageBudget {
    pub fn new(most: usize) -> Self {
        Self { most, taken: AtomicUsize::new(0) }
    }

    fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.most);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }
}

/// Chooses by the head of a call, with its path and its caller, the budget of its messages, or refuses the call before
/// any message is read.
type Judge = Arc<dyn Fn(&str, &Extensions) -> Result<Arc<MessageBudget>, Status> + Send + Sync>;

/// The routes, with the messages of each call counted in the budget chosen by `judge`.
pub fn count_messages(
    routes: Routes,
    judge: impl Fn(&str, &Extensions) -> Result<Arc<MessageBudget>, Status> + Send + Sync + 'static,
) -> Routes {
    let judge: Judge = Arc::new(judge);
    routes.into_axum_router().layer(from_fn_with_state(judge, count)).into()
}

async fn count(State(judge): State<Judge>, request: Request, next: Next) -> Response {
    let asked = match judge(request.uri().path(), request.extensions()) {
        Ok(asked) => asked,
        Err(refused) => return refused.into_http(),
    };
    let call = CallBytes::of(&asked);
    // The bytes are held until the answer begins.
    next.run(request.map(|words| call.counts(words))).await
}

/// The bytes of one call.
struct CallBytes {
    of: Arc<MessageBudget>,
    bytes: AtomicUsize,
}

impl CallBytes {
    fn of(asked: &Arc<MessageBudget>) -> Arc<Self> {
        Arc::new(Self { of: asked.clone(), bytes: AtomicUsize::new(0) })
    }

    /// The body, counted as its frames arrive.
    fn counts(self: &Arc<Self>, words: Body) -> Body {
        Body::new(CountedBody { words, call: self.clone() })
    }

    fn take(&self, bytes: usize) -> bool {
        let is_taken = self.of.take(bytes);
        if is_taken {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        is_taken
    }
}

impl Drop for CallBytes {
    fn drop(&mut self) {
        self.of.taken.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

struct CountedBody {
    words: Body,
    call: Arc<CallBytes>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.words).poll_frame(context));
        let bytes = frame.as_ref().and_then(|frame| frame.as_ref().ok()?.data_ref()).map_or(0, Bytes::len);
        if self.call.take(bytes) {
            return Poll::Ready(frame);
        }
        let full = Status::resource_exhausted("the requests in progress are too large together; try again later");
        Poll::Ready(Some(Err(axum::Error::new(full))))
    }

    fn is_end_stream(&self) -> bool {
        self.words.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.words.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn calls_hold_what_they_asked_until_they_are_answered_and_no_more_than_there_is() {
        let asked = Arc::new(MessageBudget::new(10));
        let hears = |call: &Arc<CallBytes>, bytes: usize| call.counts(Body::from(vec![7; bytes])).collect();
        let [first, second] = [CallBytes::of(&asked), CallBytes::of(&asked)];
        assert!(hears(&first, 6).await.is_ok());
        let refused = hears(&second, 5).await.expect_err("there is no room");
        let status = Status::from_error(refused.into_inner());
        assert_eq!(status.code(), tonic::Code::ResourceExhausted, "{status}");
        assert!(hears(&second, 4).await.is_ok() && hears(&first, 1).await.is_err());
        drop(first);
        assert!(hears(&second, 6).await.is_ok());
        drop(second);
        assert_eq!(asked.taken.load(Ordering::Relaxed), 0);
    }
}
