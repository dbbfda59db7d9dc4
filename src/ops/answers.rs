//! What answers hold that were made and not read yet: so many bytes together, and no more of them are made meanwhile.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// In KiB, of all of them.
const HELD: u32 = 16 << 10;
/// Made, and not yet counted.
const MADE_AT_ONCE: usize = 4;
/// For so long one waits until others are read.
const WAITS_AT_MOST: Duration = Duration::from_secs(5);
/// Of an answer as much is handed on at a time: what is handed on is held by its connection until it is read.
const PART: usize = 16 << 10;

/// The room for all of them.
#[derive(Clone)]
pub(super) struct Room {
    makes: Arc<Semaphore>,
    held: Arc<Semaphore>,
}

/// Bytes of an answer, which are let go of part by part.
pub(super) struct Held {
    bytes: Bytes,
    _permit: OwnedSemaphorePermit,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { makes: Arc::new(Semaphore::new(MADE_AT_ONCE)), held: Arc::new(Semaphore::new(HELD as usize)) }
    }

    /// Makes an answer when there is room for one more; `None` where there is none for too long.
    pub(super) async fn make(&self, made: impl Future<Output = Response>) -> Option<Response> {
        let making = async {
            let _makes = self.makes.acquire().await.ok()?;
            let (head, body) = made.await.into_parts();
            // One that grows while it is told makes room for itself, part by part.
            if body.size_hint().exact().is_none() {
                return Some(Response::from_parts(head, body));
            }
            let bytes = to_bytes(body, usize::MAX).await.ok()?;
            Some(Response::from_parts(head, Body::new(self.hold(bytes).await?)))
        };
        timeout(WAITS_AT_MOST, making).await.ok().flatten()
    }

    /// Waits for room.
    pub(super) async fn hold(&self, bytes: Bytes) -> Option<Held> {
        let kib = u32::try_from(bytes.len() >> 10).unwrap_or(u32::MAX).saturating_add(1);
        let permit = self.held.clone().acquire_many_owned(kib.min(HELD)).await.ok()?;
        Some(Held { bytes, _permit: permit })
    }
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let part = self.bytes.len().min(PART);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(part)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

impl Iterator for Held {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let part = self.bytes.len().min(PART);
        (part > 0).then(|| self.bytes.split_to(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn another_answer_is_made_when_there_is_room_for_it() {
        let room = Room::new();
        // Two of them are more than there is room for.
        let answer = || async { Response::new(Body::from(vec![7; (HELD as usize) << 9])) };
        let unread = room.make(answer()).await.expect("room for one");
        assert!(room.make(answer()).await.is_none(), "nobody has read the first one");
        let read = to_bytes(unread.into_body(), usize::MAX).await.expect("an answer");
        assert_eq!(read, vec![7; (HELD as usize) << 9]);
        assert!(room.make(answer()).await.is_some(), "the first one was read");
    }
}
