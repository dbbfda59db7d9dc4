//! Connections with abnormal ends: reset, or closed without an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use axum::serve::Listener;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const RESET: u8 = 2;

/// How a connection is to end, set by the handler of the request.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionEnd(Arc<AtomicU8>);

impl ConnectionEnd {
    pub(super) fn reset(&self) {
        self.0.store(RESET, Ordering::Release);
    }

    pub(super) fn close(&self) {
        self.0.store(CLOSED, Ordering::Release);
    }
}

/// The listener of one port.
pub(super) struct EmulatorListener(pub(super) TcpListener);

impl Listener for EmulatorListener {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        let (stream, peer) = Listener::accept(&mut self.0).await;
        (Wire { stream, line: ConnectionEnd::default() }, peer)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

/// A connection that ends as `line` demands, as soon as an answer is about to be written.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    pub(super) line: ConnectionEnd,
}

impl Wire {
    fn check(&self) -> io::Result<()> {
        match self.line.0.load(Ordering::Acquire) {
            OPEN => return Ok(()),
            // Without lingering, closing sends a reset.
            RESET => self.stream.set_zero_linger()?,
            _ => {}
        }
        Err(io::ErrorKind::ConnectionReset.into())
    }
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
