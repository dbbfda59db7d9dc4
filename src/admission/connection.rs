//! A connection that was let in. Who does not read is not heard and is ended after a while, who talks too fast waits,
//! and where it is not for a protocol that asks for signs of life, so is who asks for nothing.

use std::future::pending;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tonic::transport::server::Connected;

use super::crowd::Stay;
use super::pace::Pace;
use super::places::Place;

/// What was said faster waits no longer than that before it is heard; signs of life may take longer.
const WAITS_AT_MOST: Duration = Duration::from_secs(10);

/// Why a connection may be open: held as long as it is, and what ends when it has to give way.
pub(super) struct Footing {
    _held: Box<dyn Send>,
    lost: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl From<Place> for Footing {
    fn from(place: Place) -> Self {
        Self { _held: Box::new(place), lost: Box::pin(pending()) }
    }
}

impl From<Stay> for Footing {
    fn from(stay: Stay) -> Self {
        Self { lost: Box::pin(stay.lost()), _held: Box::new(stay) }
    }
}

/// How one that was let in is put up with.
pub(super) struct Manners {
    pub(super) footing: Footing,
    /// Bytes.
    pub(super) pace: Option<Arc<Mutex<Pace>>>,
    /// For as long nothing that is to be written has to be read.
    pub(super) reads_within: Duration,
    /// Set where every question is answered before the next is heard: so long may a question be, and for as long as
    /// `reads_within` there may be none.
    pub(super) longest_question: Option<usize>,
}

pub struct Admitted<S> {
    stream: S,
    /// What was read at the door, to be read once more.
    begun: Vec<u8>,
    manners: Manners,
    /// Since the last time something was written.
    heard: usize,
    patience: Pin<Box<Sleep>>,
    /// Otherwise there is nothing that the other side has to do.
    is_waited_for: bool,
    /// Until it is heard again.
    hushed: Option<Pin<Box<Sleep>>>,
    /// Of a reader, while nothing can be written.
    unheard: Option<Waker>,
}

impl<S> Admitted<S> {
    pub(super) fn new(stream: S, begun: Vec<u8>, manners: Manners) -> Self {
        let patience = Box::pin(sleep(manners.reads_within));
        let is_waited_for = manners.longest_question.is_some();
        Self { stream, begun, manners, heard: 0, patience, is_waited_for, hushed: None, unheard: None }
    }

    /// Fails when it is not put up with any longer.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        if self.manners.footing.lost.as_mut().poll(context).is_ready() {
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "it gave way to others"));
        }
        if self.is_waited_for && self.patience.as_mut().poll(context).is_ready() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "nothing was read, or asked, for too long"));
        }
        Ok(())
    }

    /// True while it is not to be heard.
    fn is_hushed(&mut self, context: &mut Context<'_>) -> bool {
        if self.is_waited_for && self.manners.longest_question.is_none() {
            self.unheard = Some(context.waker().clone());
            return true;
        }
        let is_hushed = self.hushed.as_mut().is_some_and(|hushed| hushed.as_mut().poll(context).is_pending());
        if !is_hushed {
            self.hushed = None;
        }
        is_hushed
    }

    fn has_heard(&mut self, count: usize) -> io::Result<()> {
        self.heard += count;
        if self.manners.longest_question.is_some_and(|longest| self.heard > longest) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a question is too long"));
        }
        let Some(pace) = &self.manners.pace else { return Ok(()) };
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let wait = pace.lock().unwrap_or_else(PoisonError::into_inner).wait(count, WAITS_AT_MOST);
        let wait = wait.unwrap_or(WAITS_AT_MOST);
        self.hushed = (!wait.is_zero()).then(|| Box::pin(sleep(wait)));
        Ok(())
    }

    /// Keeps count of what became of a write.
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
            // So that somebody comes by when the time is over.
            self.check(context)?;
        }
        written
    }
}

impl<S: Connected> Connected for Admitted<S> {
    type ConnectInfo = S::ConnectInfo;

    fn connect_info(&self) -> S::ConnectInfo {
        self.stream.connect_info()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Admitted<S> {
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
            self.has_heard(into.filled().len() - before)?;
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Admitted<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write(context, from);
        self.wrote(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        from: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, from);
        self.wrote(context, written)
    }

    /// Otherwise HTTP/1 would copy each answer, which many connections share, and keep the room for it.
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
