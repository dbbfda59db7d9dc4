//! Coalesces writes of ready tasks. HTTP/2 writes the head of a call first and its body after other tasks; separate
//! packets would wake both sides twice per call.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, BufWriter, ReadBuf};

/// A heartbeat and its head have some 150 bytes; longer writes are not delayed.
const KEPT_BYTES: usize = 1024;

/// A connection that yields once to every ready task before sending its buffer.
pub struct CoalescedWrites<S> {
    stream: BufWriter<S>,
    /// The task has yielded already.
    has_waited: bool,
}

impl<S: AsyncWrite> CoalescedWrites<S> {
    pub fn new(stream: S) -> Self {
        Self { stream: BufWriter::with_capacity(KEPT_BYTES, stream), has_waited: false }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for CoalescedWrites<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for CoalescedWrites<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.stream.buffer().is_empty() && !std::mem::replace(&mut self.has_waited, true) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.has_waited = flushed.is_pending();
        flushed
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    #[tokio::test]
    async fn what_others_have_to_say_at_the_same_moment_is_sent_with_it() {
        let (stream, mut other) = duplex(4 * KEPT_BYTES);
        let mut stream = CoalescedWrites::new(stream);
        stream.write_all(b"head").await.unwrap();
        assert!(poll_fn(|context| Poll::Ready(Pin::new(&mut stream).poll_flush(context).is_pending())).await);
        stream.write_all(b", body").await.unwrap();
        stream.flush().await.unwrap();
        let mut sent = [0; 64];
        let count = other.read(&mut sent).await.unwrap();
        assert_eq!(&sent[..count], b"head, body");
    }

    #[tokio::test]
    async fn what_is_long_waits_for_nothing_and_what_is_over_is_sent() {
        let (stream, mut other) = duplex(4 * KEPT_BYTES);
        let mut stream = CoalescedWrites::new(stream);
        let long = [7; 2 * KEPT_BYTES];
        stream.write_all(&long).await.unwrap();
        let mut sent = [0; 2 * KEPT_BYTES];
        assert_eq!(other.read(&mut sent).await.unwrap(), long.len());
        stream.write_all(b"bye").await.unwrap();
        stream.shutdown().await.unwrap();
        let mut rest = Vec::new();
        other.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"bye");
    }
}
