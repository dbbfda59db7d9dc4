//! The workloads' socket: how many connections there may be at once.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::{Connected, UdsConnectInfo};

use super::super::users::Guard;
use crate::replica::deeds::Refused;

/// One for each workload, and some for those who only look.
const MAX_CONNECTIONS: usize = 1_200;
/// Of a user that is neither root nor the replica's own.
const MAX_OF_ANOTHER_USER: usize = 400;
/// Calls of one connection at once.
const MAX_CALLS: u32 = 64;

type Counts = Arc<Mutex<BTreeMap<u32, usize>>>;

/// A connection that is counted for as long as it lasts.
struct Counted {
    stream: UnixStream,
    uid: u32,
    counts: Counts,
}

impl Counted {
    fn new(stream: UnixStream, guard: &Guard, counts: &Counts) -> Option<Self> {
        let peer = stream.peer_cred().ok()?;
        let uid = peer.uid();
        let mut counted = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counted.values().sum();
        let own = counted.entry(uid).or_default();
        if all >= MAX_CONNECTIONS || (*own >= MAX_OF_ANOTHER_USER && !guard.users.is_trusted(uid)) {
            let one = format!("a connection beside {own} of this user and {all} of all");
            guard.deeds.refusals.note(Refused::Connection, &format!("uid {uid}"), peer.pid(), &one);
            return None;
        }
        *own += 1;
        Some(Self { stream, uid, counts: counts.clone() })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.uid) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.uid);
            }
        }
    }
}

impl Connected for Counted {
    type ConnectInfo = UdsConnectInfo;

    fn connect_info(&self) -> UdsConnectInfo {
        self.stream.connect_info()
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl AsyncWrite for Counted {
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

/// Serves until it is stopped; open calls are waited for, so every stream ends when it is told to stop.
pub async fn serve_workloads(
    listener: UnixListener,
    routes: Routes,
    guard: Guard,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let (counts, guard) = (Counts::default(), Arc::new(guard));
    let routes = guard.clone().before(routes);
    let incoming = UnixListenerStream::new(listener).filter_map(move |accepted| {
        let counted = accepted.map(|stream| Counted::new(stream, &guard, &counts)).transpose();
        std::future::ready(counted)
    });
    let mut server = Server::builder().max_concurrent_streams(MAX_CALLS);
    server.add_routes(routes).serve_with_incoming_shutdown(incoming, stop.cancelled()).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replica::deeds::Deeds;

    #[tokio::test]
    async fn so_many_connections_of_one_user_and_no_more_until_one_ends() -> io::Result<()> {
        let (stream, _other) = UnixStream::pair()?;
        let uid = stream.peer_cred()?.uid();
        let guard = Guard::of_workloads(&[], Arc::new(Deeds::new().map_err(io::Error::other)?));
        let counts = Counts::default();
        if let Ok(mut counts) = counts.lock() {
            counts.insert(uid, MAX_CONNECTIONS - 1);
        }
        let last = Counted::new(stream, &guard, &counts);
        assert!(last.is_some());
        assert!(Counted::new(UnixStream::pair()?.0, &guard, &counts).is_none());
        drop(last);
        assert!(Counted::new(UnixStream::pair()?.0, &guard, &counts).is_some());
        Ok(())
    }
}
