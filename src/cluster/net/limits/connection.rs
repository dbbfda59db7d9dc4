//! An accepted connection. A peer that does not read is not read from, and is closed after a while. A peer that sends
//! too fast waits. On protocols without keep-alives an idle peer is closed.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tonic::transport::server::Connected;

use super::accepted::Accepted;
use super::answer_budget::PeerReader;
use super::connection_limit::ConnectionPermit;
use super::evicting_limit::EvictingPermit;
use super::frames::Frames;
use super::rate_limit::RateLimiter;

/// The maximum delay of fast input; keep-alives may take longer.
const WAITS_AT_MOST: Duration = Duration::from_secs(10);

/// The pause in reading a connection, for each call refused because of its caller. The refused call itself does not
/// wait: a waiting call would keep a permit from other calls.
const UNHEARD_AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// The permit of a connection: held as long as the connection, with a future that ends on eviction.
pub(super) struct ConnectionHold {
    _held: Box<dyn Send>,
    lost: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl<W: Ord + Send + 'static> From<ConnectionPermit<W>> for ConnectionHold {
    fn from(place: ConnectionPermit<W>) -> Self {
        Self { _held: Box::new(place), lost: Box::pin(pending()) }
    }
}

impl From<EvictingPermit> for ConnectionHold {
    fn from(stay: EvictingPermit) -> Self {
        Self { lost: Box::pin(stay.evicted()), _held: Box::new(stay) }
    }
}

/// The rate at which a connection is read without a pause.
pub(super) enum ReadRate {
    /// Bytes.
    Bytes(Arc<Mutex<RateLimiter>>),
    /// HTTP/2 frames without a request.
    Frames(Frames),
}

impl ReadRate {
    fn wait(&mut self, heard: &[u8]) -> Duration {
        let wait = match self {
            Self::Bytes(pace) => {
                let count = u32::try_from(heard.len()).unwrap_or(u32::MAX);
                pace.lock().unwrap_or_else(PoisonError::into_inner).wait(count, WAITS_AT_MOST)
            }
            Self::Frames(frames) => frames.wait(heard, WAITS_AT_MOST),
        };
        wait.unwrap_or(WAITS_AT_MOST)
    }
}

/// The limits of an accepted connection.
pub(super) struct ConnectionBounds {
    pub(super) footing: ConnectionHold,
    pub(super) measure: ReadRate,
    /// The maximum time for which pending output may stay unread.
    pub(super) reads_within: Duration,
    /// The maximum length of a request, set if every request is answered before the next is read: then a connection may
    /// also be idle for `reads_within` at most.
    pub(super) longest_question: Option<usize>,
}

pub struct BoundedConnection<S> {
    stream: S,
    /// Bytes read at the handshake gate, to be read once more.
    begun: Vec<u8>,
    manners: ConnectionBounds,
    reader: PeerReader,
    is_lost: bool,
    /// Bytes read since the last write.
    heard: usize,
    patience: Pin<Box<Sleep>>,
    /// True while the peer has to act; otherwise no timeout applies.
    is_waited_for: bool,
    /// The pause until the next read.
    hushed: Option<Pin<Box<Sleep>>>,
    /// The waker of a reader, while no write is possible.
    unheard: Option<Waker>,
}

impl<S> BoundedConnection<S> {
    pub(super) fn new(stream: S, begun: Vec<u8>, mut manners: ConnectionBounds) -> Self {
        let reader = PeerReader::default();
        let (lost, given_way) = (manners.footing.lost, reader.evicted());
        manners.footing.lost = Box::pin(async move {
            tokio::select! {
                () = lost => {}
                () = given_way => {}
            }
        });
        let patience = Box::pin(sleep(manners.reads_within));
        let is_waited_for = manners.longest_question.is_some();
        let (is_lost, hushed, unheard) = (false, None, None);
        Self { stream, begun, manners, reader, is_lost, heard: 0, patience, is_waited_for, hushed, unheard }
    }

    pub(super) fn stream(&self) -> &S {
        &self.stream
    }

    /// The reader for the handlers that answer on this connection.
    pub fn reader(&self) -> PeerReader {
        self.reader.clone()
    }

    /// Fails when the connection exceeds its limits or is evicted.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.is_lost || self.manners.footing.lost.as_mut().poll(context).is_ready() {
            self.is_lost = true;
            return Err(io::Error::new(
                io::ErrorKind::ConnectionAborted,
                "the connection was closed in favour of other connections",
            ));
        }
        if self.is_waited_for && self.patience.as_mut().poll(context).is_ready() {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the client neither read nor sent anything for too long",
            ));
        }
        Ok(())
    }

    /// True during a pause of reading.
    fn is_hushed(&mut self, context: &mut Context<'_>) -> bool {
        if self.is_waited_for && self.manners.longest_question.is_none() {
            self.unheard = Some(context.waker().clone());
            return true;
        }
        let refused = self.reader.take_refused();
        if refused > 0 {
            self.hush(UNHEARD_AFTER_REFUSAL * refused);
        }
        let is_hushed = self.hushed.as_mut().is_some_and(|hushed| hushed.as_mut().poll(context).is_pending());
        if !is_hushed {
            self.hushed = None;
        }
        is_hushed
    }

    /// Pauses reading, after the current pause.
    fn hush(&mut self, wait: Duration) {
        let now = Instant::now();
        let begins = self.hushed.as_ref().map_or(now, |hushed| hushed.deadline().max(now));
        self.hushed = Some(Box::pin(sleep_until((begins + wait).min(now + WAITS_AT_MOST))));
    }

    fn has_heard(&mut self, words: &[u8]) -> io::Result<()> {
        self.heard += words.len();
        if self.manners.longest_question.is_some_and(|longest| self.heard > longest) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a request is too long"));
        }
        let wait = self.manners.measure.wait(words);
        self.hushed = (!wait.is_zero()).then(|| Box::pin(sleep(wait)));
        Ok(())
    }

    /// A peer that has closed its end may have sent messages before. HTTP/2 would give them up unread at a failed write, so
    /// the write of `length` bytes counts as done, and reading ends the connection.
    fn reads_on(&self, length: usize, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(Err(error))
                if self.manners.longest_question.is_none()
                    && matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) =>
            {
                Poll::Ready(Ok(length))
            }
            written => written,
        }
    }

    /// Tracks the result of a write.
    fn wrote(&mut self, context: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        let is_written = matches!(written, Poll::Ready(Ok(count)) if count > 0);
        if is_written || (written.is_pending() && !self.is_waited_for) {
            self.patience.as_mut().reset(Instant::now() + self.manners.reads_within);
            self.is_waited_for = !is_written || self.manners.longest_question.is_some();
        }
        if is_written {
            self.heard = 0;
            if let Some(reader) = self.unheard.take() {
                reader.wake();
            }
        } else if written.is_pending() {
            // Registers the waker for the timeout.
            self.check(context)?;
        }
        written
    }
}

impl<S: Connected> Connected for BoundedConnection<S> {
    type ConnectInfo = Accepted;

    fn connect_info(&self) -> Accepted {
        Accepted::new(self.reader.clone(), self.stream.connect_info())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for BoundedConnection<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        if !self.begun.is_empty() {
            let count = self.begun.len().min(into.remaining());
            into.put_slice(&self.begun[..count]);
            self.begun.drain(..count);
            return Poll::Ready(Ok(()));
        }
        if self.is_hushed(context) {
            return Poll::Pending;
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, into);
        if let Poll::Ready(Ok(())) = read {
            self.has_heard(&into.filled()[before..])?;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for BoundedConnection<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        let written = self.reads_on(from.len(), written);
        self.wrote(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        let written = self.reads_on(from.iter().map(|part| part.len()).sum(), written);
        self.wrote(context, written)
    }

    /// Otherwise HTTP/1 would copy each answer, which many connections share, and keep the bytes taken of the budget.
    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests;
