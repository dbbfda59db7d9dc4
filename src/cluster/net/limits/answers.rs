//! Answers take bytes of the budget when they are made, and return them when they are read.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::HeaderMap;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{FutureExt as _, stream};
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::Status;

use super::answer_budget::{AnswerBudget, Hold, PeerReader, Unread};

/// The number of concurrently made answers from the whole state.
const MADE_AT_ONCE: usize = 4;
/// The maximum wait of an answer for its turn, and for the budget.
const WAITS_AT_MOST: Duration = Duration::from_secs(5);

type Framed = Result<Frame<Bytes>, axum::Error>;

/// Makes answers over HTTP/1.1, a few at a time.
#[derive(Clone)]
pub struct Maker {
    pub room: AnswerBudget,
    turns: Arc<Semaphore>,
}

impl Default for Maker {
    fn default() -> Self {
        Self { room: AnswerBudget::default(), turns: Arc::new(Semaphore::new(MADE_AT_ONCE)) }
    }
}

impl Maker {
    /// Makes an answer when the budget allows; `None` after a timeout.
    pub async fn make(&self, reader: &PeerReader, made: impl Future<Output = Response>) -> Option<Response> {
        let making = async {
            let _turn = self.turns.acquire().await.ok()?;
            let (head, body) = made.await.into_parts();
            // A streamed answer takes its budget part by part.
            if body.size_hint().exact().is_none() {
                return Some(Response::from_parts(head, body));
            }
            let bytes = to_bytes(body, usize::MAX).await.ok()?;
            Some(Response::from_parts(head, Body::from(self.room.hold(reader, &bytes).await?)))
        };
        timeout(WAITS_AT_MOST, making).await.ok().flatten()
    }
}

/// The answer of a call, once the budget has space for the answer or its beginning.
pub(super) async fn answer(room: &AnswerBudget, reader: &PeerReader, response: Response) -> Response {
    let (head, mut body) = response.into_parts();
    if body.is_end_stream() {
        return Response::from_parts(head, body);
    }
    // A message is encoded before the connection polls for a frame, so all held bytes are counted. A single message is
    // followed by the end at once.
    let mut begins = VecDeque::new();
    while begins.len() < 2 {
        match body.frame().now_or_never() {
            Some(Some(frame)) => begins.push_back(frame),
            Some(None) => return whole(room, reader, head, begins).await,
            None => break,
        }
        if let Some(Ok(last)) = begins.back()
            && last.is_trailers()
        {
            return whole(room, reader, head, begins).await;
        }
    }
    let told = StreamedBody { room: room.clone(), reader: reader.clone(), begins, body, hold: None, is_over: false };
    let frames = stream::unfold(told, |mut told| async { Some((told.next().await?, told)) });
    Response::from_parts(head, Body::new(StreamBody::new(Box::pin(frames))))
}

/// The answer without the encoder and its buffer.
async fn whole(
    room: &AnswerBudget,
    reader: &PeerReader,
    head: axum::http::response::Parts,
    frames: VecDeque<Framed>,
) -> Response {
    let mut told = Vec::new();
    for frame in frames {
        told.push(match frame.map(Frame::into_data) {
            Ok(Ok(bytes)) => match room.hold(reader, &bytes).await {
                Some(bytes) => Ok(Frame::data(bytes)),
                None => return full().into_http(),
            },
            Ok(Err(other)) => Ok(other),
            Err(error) => Err(error),
        });
    }
    Response::from_parts(head, Body::new(StreamBody::new(stream::iter(told))))
}

/// A streamed answer.
struct StreamedBody {
    room: AnswerBudget,
    reader: PeerReader,
    begins: VecDeque<Framed>,
    body: Body,
    /// The encoder keeps the buffer of the longest part for the next part.
    hold: Option<Arc<Hold>>,
    is_over: bool,
}

impl StreamedBody {
    async fn next(&mut self) -> Option<Framed> {
        if self.is_over {
            return None;
        }
        let frame = match self.begins.pop_front() {
            Some(frame) => frame,
            None => self.body.frame().await?,
        };
        let bytes = match frame.map(Frame::into_data) {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(other)) => return Some(Ok(other)),
            Err(error) => return Some(Err(error)),
        };
        Some(Ok(if let Some(hold) = self.hold(bytes.len()).await {
            Frame::data(Unread::handed_on(bytes, hold))
        } else {
            self.is_over = true;
            let mut why = HeaderMap::new();
            let _ = full().add_header(&mut why);
            Frame::trailers(why)
        }))
    }

    /// Reserves twice the bytes, because the encoder's buffer may be twice as large as its content.
    async fn hold(&mut self, bytes: usize) -> Option<Arc<Hold>> {
        let wanted = 2 * bytes;
        // The previous part was read, and its buffer is used again.
        let used_again = self.hold.take().and_then(Arc::into_inner);
        if let Some(hold) = used_again
            && hold.bytes >= wanted
        {
            return Some(self.keep(hold));
        }
        let hold = self.room.reserve(&self.reader, wanted).await?;
        Some(self.keep(hold))
    }

    fn keep(&mut self, hold: Hold) -> Arc<Hold> {
        self.hold.insert(Arc::new(hold)).clone()
    }
}

fn full() -> Status {
    Status::resource_exhausted("too many callers do not read their answers; try again, or use another replica")
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = 8 << 20;

    fn grpc(parts: usize) -> Response {
        let part = || Ok::<_, axum::Error>(Frame::data(Bytes::from(vec![7; HALF])));
        let end = Ok(Frame::trailers(HeaderMap::new()));
        let frames: Vec<_> = (0..parts).map(|_| part()).chain([end]).collect();
        Response::new(Body::new(StreamBody::new(stream::iter(frames))))
    }

    fn is_refused(response: &Response) -> bool {
        response.headers().get("grpc-status").is_some_and(|code| code == "8")
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_held_whole_with_its_end_until_it_is_read() {
        let (room, reader) = (AnswerBudget::default(), PeerReader::default());
        let unread = [answer(&room, &reader, grpc(1)).await, answer(&room, &reader, grpc(1)).await];
        assert!(is_refused(&answer(&room, &PeerReader::default(), grpc(1)).await), "nobody has read any");
        for response in unread {
            let read = response.into_body().collect().await.expect("an answer");
            assert!(read.trailers().is_some());
            assert_eq!(read.to_bytes().len(), HALF);
        }
        assert!(!is_refused(&answer(&room, &reader, grpc(1)).await));
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_goes_on_keeps_its_buffer_and_ends_where_there_is_no_room() {
        let (room, reader) = (AnswerBudget::default(), PeerReader::default());
        let mut told = answer(&room, &reader, grpc(3)).await.into_body();
        let first = told.frame().await.expect("a part").expect("a part");
        let second = told.frame().await.expect("an end").expect("an end");
        assert!(first.is_data() && second.is_trailers(), "the first part is not read");
        assert!(told.frame().await.is_none());
        drop((first, told));
        let mut told = answer(&room, &reader, grpc(3)).await.into_body();
        for _ in 0..3 {
            assert!(told.frame().await.expect("a part").expect("a part").is_data());
        }
        assert!(told.frame().await.expect("an end").expect("an end").is_trailers());
        assert!(is_refused(&answer(&room, &PeerReader::default(), grpc(1)).await), "its buffer is kept");
    }

    #[tokio::test(start_paused = true)]
    async fn another_answer_is_made_when_there_is_room_for_it() {
        let (maker, reader) = (Maker::default(), PeerReader::default());
        // Two answers exceed the budget.
        let made = || async { Response::new(Body::from(vec![7; HALF + 1])) };
        let unread = maker.make(&reader, made()).await.expect("room for one");
        assert!(maker.make(&PeerReader::default(), made()).await.is_none(), "nobody has read the first one");
        let read = to_bytes(unread.into_body(), usize::MAX).await.expect("an answer");
        assert_eq!(read, vec![7; HALF + 1]);
        drop(read);
        assert!(maker.make(&reader, made()).await.is_some(), "the first one was read");
    }
}
