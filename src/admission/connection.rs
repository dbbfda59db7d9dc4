//! A connection that was let in. Who does not read is not heard and is ended after a while, who talks too fast waits,
//! and where it is not for a protocol that asks for signs of life, so is who asks for nothing.

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

/// Why a connection may be open.
pub(super) enum Footing {
    Place {
        _place: Place,
    },
    /// As long as it need not give way.
    Stay {
        _stay: Stay,
        lost: Pin<Box<dyn Future<Output = ()> + Send>>,
    },
}

impl From<Place> for Footing {
    fn from(place: Place) -> Self {
        Self::Place { _place: place }
    }
}

impl From<Stay> for Footing {
    fn from(stay: Stay) -> Self {
        Self::Stay { lost: Box::pin(stay.lost()), _stay: stay }
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
        if let Footing::Stay { lost, .. } = &mut self.manners.footing
            && lost.as_mut().poll(context).is_ready()
        {
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
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio::time::timeout;

    use super::*;
    use crate::admission::{Crowd, Places, Who};

    const WITHIN: Duration = Duration::from_secs(10);

    /// A side that was let in, and the other one.
    fn admitted(
        longest_question: Option<usize>,
        pace: Option<Pace>,
    ) -> Option<(Admitted<DuplexStream>, DuplexStream, Places)> {
        let places = Places::in_all(1);
        let (stream, other) = duplex(64);
        let pace = pace.map(|pace| Arc::new(Mutex::new(pace)));
        let footing = places.enter(Who::Anybody)?.into();
        let manners = Manners { footing, pace, reads_within: WITHIN, longest_question };
        Some((Admitted::new(stream, b"begun ".to_vec(), manners), other, places))
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_read_at_the_door_is_read_first_and_the_place_is_free_at_the_end() {
        let (mut inside, mut other, places) = admitted(None, None).expect("a place");
        other.write_all(b"and goes on").await.expect("room");
        drop(other);
        let mut all = String::new();
        inside.read_to_string(&mut all).await.expect("all of it");
        assert_eq!(all, "begun and goes on");
        assert!(places.enter(Who::Anybody).is_none());
        drop(inside);
        assert!(places.enter(Who::Anybody).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn who_does_not_read_is_not_heard_and_is_ended_after_a_while() {
        let (mut inside, mut other, _places) = admitted(None, None).expect("a place");
        inside.read_exact(&mut [0; 6]).await.expect("what was begun");
        let began = Instant::now();
        let mut written = Box::pin(async {
            inside.write_all(&[0; 64]).await?;
            inside.write_all(&[0; 64]).await
        });
        assert!(timeout(WITHIN / 2, &mut written).await.is_err());
        drop(written);
        other.write_all(b"?").await.expect("room");
        assert!(timeout(WITHIN / 4, inside.read_u8()).await.is_err(), "it was heard");
        let ended = inside.read_u8().await;
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        assert!(began.elapsed() <= WITHIN * 2);
    }

    #[tokio::test(start_paused = true)]
    async fn who_reads_again_is_heard_again_and_who_has_nothing_to_read_may_be_silent() {
        let (mut inside, mut other, _places) = admitted(None, None).expect("a place");
        inside.read_exact(&mut [0; 6]).await.expect("what was begun");
        assert!(timeout(WITHIN * 10, inside.read_u8()).await.is_err());
        let (mut hears, mut says) = tokio::io::split(inside);
        let saying = tokio::spawn(async move { says.write_all(&[0; 200]).await });
        tokio::time::sleep(WITHIN / 2).await;
        other.write_all(b"?").await.expect("room");
        let hearing = tokio::spawn(async move { hears.read_u8().await });
        other.read_exact(&mut [0; 200]).await.expect("all of it");
        assert!(saying.await.expect("no panic").is_ok());
        assert_eq!(hearing.await.expect("no panic").ok(), Some(b'?'));
    }

    #[tokio::test(start_paused = true)]
    async fn where_questions_are_answered_one_by_one_silence_and_endless_questions_end_it() {
        let (mut silent, _other, _places) = admitted(Some(32), None).expect("a place");
        silent.read_exact(&mut [0; 6]).await.expect("what was begun");
        let ended = silent.read_u8().await;
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));

        let (mut inside, mut other, _places) = admitted(Some(32), None).expect("a place");
        inside.read_exact(&mut [0; 6]).await.expect("what was begun");
        other.write_all(&[0; 32]).await.expect("room");
        inside.read_exact(&mut [0; 32]).await.expect("a question");
        inside.write_all(b"answer").await.expect("room");
        other.write_all(&[0; 33]).await.expect("room");
        let ended = inside.read_exact(&mut [0; 33]).await;
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::InvalidData));
    }

    #[tokio::test(start_paused = true)]
    async fn who_talks_too_fast_is_heard_as_fast_as_it_may_talk() {
        let (mut inside, mut other, _places) = admitted(None, Some(Pace::new(10, 10))).expect("a place");
        inside.read_exact(&mut [0; 6]).await.expect("what was begun");
        let talking = tokio::spawn(async move { other.write_all(&[0; 640]).await.map(|()| other) });
        let began = Instant::now();
        inside.read_exact(&mut [0; 640]).await.expect("all of it");
        assert!(talking.await.is_ok());
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(50) && took <= Duration::from_secs(63), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn one_that_had_to_give_way_is_ended() {
        let mut crowd = Crowd::new(1);
        let (stream, _other) = duplex(64);
        let (stay, _) = crowd.enter(Who::User(1));
        let manners = Manners { footing: stay.into(), pace: None, reads_within: WITHIN, longest_question: None };
        let mut inside = Admitted::new(stream, Vec::new(), manners);
        assert!(timeout(WITHIN, inside.read_u8()).await.is_err());
        let _newcomer = crowd.enter(Who::User(2));
        let ended = inside.read_u8().await;
        assert_eq!(ended.map_err(|error| error.kind()), Err(io::ErrorKind::ConnectionAborted));
    }
}
