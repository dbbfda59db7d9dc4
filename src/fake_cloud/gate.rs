//! Listening on loopback, and ending connections the hard way: refused, reset, closed without an answer.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;

const BACKLOG: u32 = 128;
const ACCEPT_PAUSE: Duration = Duration::from_millis(20);

const OPEN: u8 = 0;
const CLOSED: u8 = 1;
const RESET: u8 = 2;

/// How a connection is to end, told by whoever answers on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(Arc<AtomicU8>);

impl Line {
    pub(super) fn reset(&self) {
        self.0.store(RESET, Ordering::Release);
    }

    pub(super) fn close(&self) {
        self.0.store(CLOSED, Ordering::Release);
    }
}

impl Connected<IncomingStream<'_, Gate>> for Line {
    fn connect_info(stream: IncomingStream<'_, Gate>) -> Self {
        stream.io().line.clone()
    }
}

/// One port. It can be closed and opened again without losing it to anybody else.
#[derive(Debug)]
pub(super) struct Gate {
    address: SocketAddr,
    /// Bound and never listening: keeps the port while nobody listens on it.
    _keeper: TcpSocket,
    listener: Option<TcpListener>,
    refused: watch::Receiver<bool>,
}

impl Gate {
    pub(super) fn open(address: SocketAddr, refused: watch::Receiver<bool>) -> io::Result<Self> {
        let keeper = bound(address)?;
        let address = keeper.local_addr()?;
        let listener = Some(bound(address)?.listen(BACKLOG)?);
        Ok(Self { address, _keeper: keeper, listener, refused })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

fn bound(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

impl Listener for Gate {
    type Io = Wire;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Wire, SocketAddr) {
        loop {
            if *self.refused.borrow_and_update() {
                self.listener = None;
                if self.refused.changed().await.is_err() {
                    // Nobody can clear the fault any more: the port stays closed.
                    std::future::pending::<()>().await;
                }
                continue;
            }
            if self.listener.is_none() {
                self.listener = bound(self.address).and_then(|socket| socket.listen(BACKLOG)).ok();
            }
            let accepted = match &self.listener {
                Some(listener) => tokio::select! {
                    accepted = listener.accept() => accepted,
                    Ok(()) = self.refused.changed() => continue,
                },
                None => Err(io::ErrorKind::AddrInUse.into()),
            };
            match accepted {
                Ok((stream, peer)) => return (Wire { stream, line: Line::default() }, peer),
                // Out of files, or the client was gone already: neither goes away faster by trying faster.
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// A connection that ends as its line says, as soon as an answer is about to be written.
#[derive(Debug)]
pub(super) struct Wire {
    stream: TcpStream,
    line: Line,
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

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check()?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
