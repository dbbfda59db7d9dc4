//! The simulated network and disk, as the I/O of a replica's consensus.

use std::io;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use allclear::consensus::{Environment, Work};
use allclear::net::dial::{CoalescedWrites, DialTarget};
use futures_util::Stream;
use futures_util::future::BoxFuture;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::runtime::{Handle, Id};
use tonic::transport::server::Connected;
use tonic::transport::{Channel, Endpoint, Uri};
use tower::service_fn;
use turmoil::net::{TcpListener, TcpStream};

use crate::dice::Dice;
use crate::world::{PORT, World};

/// Source of disk latencies. One process runs one seed, and functions have no other place for this source.
static DISK: OnceLock<(Dice, Arc<World>)> = OnceLock::new();
/// The host of each runtime.
static HOSTS: Mutex<Vec<(Id, usize)>> = Mutex::new(Vec::new());
/// Connect timeout, as for an address on a real network.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);
/// No kernel sends keepalives here, unlike with `net::dial`, so the replica itself sends keepalives as often.
const ASKED_EVERY: Duration = Duration::from_secs(1);
/// Interval of checks whether a stalled machine goes on.
const LOOK_EVERY: Duration = Duration::from_millis(10);

pub(crate) fn set_disk(dice: Dice, world: Arc<World>) {
    let _ = DISK.set((dice, world));
}

/// Attributes further work in this runtime to this host.
pub(crate) fn settle(place: usize) {
    HOSTS.lock().unwrap_or_else(PoisonError::into_inner).push((Handle::current().id(), place));
}

fn place() -> Option<usize> {
    let here = Handle::current().id();
    let hosts = HOSTS.lock().unwrap_or_else(PoisonError::into_inner);
    hosts.iter().rfind(|(runtime, _)| *runtime == here).map(|(_, place)| *place)
}

pub(crate) fn environment() -> Environment {
    Environment { dial, aside }
}

fn dial(endpoint: &Endpoint, _: &Arc<DialTarget>) -> Channel {
    let endpoint = endpoint.clone().http2_keep_alive_interval(ASKED_EVERY);
    endpoint.connect_timeout(CONNECT_WITHIN).connect_with_connector_lazy(service_fn(|uri: Uri| async move {
        let host = uri.host().unwrap_or_default().to_owned();
        let stream = TcpStream::connect((host, uri.port_u16().unwrap_or(PORT))).await?;
        Ok::<_, io::Error>(TokioIo::new(CoalescedWrites::new(stream)))
    }))
}

/// Waits for the disk latency, then does the work: a crash in between is a crash before the work.
fn aside(work: Work) -> BoxFuture<'static, io::Result<()>> {
    Box::pin(async move {
        if let Some((dice, world)) = DISK.get() {
            let (from, below) = world.manner.disk;
            tokio::time::sleep(dice.millis(from, below)).await;
            while place().is_some_and(|place| world.stalls(place)) {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
        work();
        Ok(())
    })
}

/// Incoming connections.
pub(crate) async fn listen() -> io::Result<impl Stream<Item = io::Result<Connection>>> {
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    Ok(futures_util::stream::unfold(listener, |listener| async move {
        let accepted = listener.accept().await.map(|(stream, _)| Connection(stream));
        Some((accepted, listener))
    }))
}

pub(crate) struct Connection(TcpStream);

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
