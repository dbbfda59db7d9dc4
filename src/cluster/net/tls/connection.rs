//! A verified connection. The connection ends after a while, so that a certificate is verified again.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_rustls::TlsStream;
use tonic::transport::server::Connected;

use super::caller::Caller;

/// Added to the maximum age, at which the listening side ends the connection gently: for a peer that does not react.
const GRACE: Duration = Duration::from_secs(30);

pub struct TlsConnection {
    stream: TlsStream<TcpStream>,
    caller: Caller,
    ends: Pin<Box<Sleep>>,
}

impl TlsConnection {
    pub(super) fn new(stream: impl Into<TlsStream<TcpStream>>, caller: Caller) -> Self {
        let age = caller.max_connection_age() + GRACE;
        Self { stream: stream.into(), caller, ends: Box::pin(sleep(age)) }
    }
}

impl Connected for TlsConnection {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller.clone()
    }
}

impl AsyncRead for TlsConnection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.ends.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the connection is too old")));
        }
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for TlsConnection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
