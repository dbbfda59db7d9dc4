//! The workloads' socket: who may connect, and how many at once.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use futures_util::StreamExt as _;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio_stream::wrappers::UnixListenerStream;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::{Connected, UdsConnectInfo};

/// One for each workload, and some for those who only look.
const MAX_CONNECTIONS: usize = 1_200;
/// Of a user that is neither root nor the replica's own.
const MAX_OF_ANOTHER_USER: usize = 400;
/// Calls of one connection at once.
const MAX_CALLS: u32 = 64;

/// The users who may: root, the replica's own, and those of the configuration.
#[derive(Clone, Debug)]
pub struct Users {
    own: u32,
    others: Vec<u32>,
}

impl Users {
    /// The socket is the replica's own user's.
    pub fn of(socket: &Path, others: &[u32]) -> io::Result<Self> {
        Ok(Self { own: std::fs::metadata(socket)?.uid(), others: others.to_vec() })
    }

    fn may(&self, uid: u32) -> bool {
        self.is_trusted(uid) || self.others.contains(&uid)
    }

    pub(super) fn is_trusted(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own
    }

    /// The user who asks.
    pub(super) fn check<T>(&self, request: &tonic::Request<T>) -> Result<u32, Status> {
        let peer = request.extensions().get::<UdsConnectInfo>().and_then(|connected| connected.peer_cred);
        let Some(uid) = peer.map(|peer| peer.uid()) else {
            return Err(Status::permission_denied("the system does not say who asks"));
        };
        let refusal = || {
            format!("uid {uid} may not register here: add it to `workloads.allow_uids` of the replica's configuration")
        };
        if self.may(uid) { Ok(uid) } else { Err(Status::permission_denied(refusal())) }
    }
}

type Counts = Arc<Mutex<BTreeMap<u32, usize>>>;

/// A connection that is counted for as long as it lasts.
struct Counted {
    stream: UnixStream,
    uid: u32,
    counts: Counts,
}

impl Counted {
    fn new(stream: UnixStream, users: &Users, counts: &Counts) -> Option<Self> {
        let uid = stream.peer_cred().ok()?.uid();
        let mut counted = counts.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = counted.values().sum();
        let own = counted.entry(uid).or_default();
        if all >= MAX_CONNECTIONS || (*own >= MAX_OF_ANOTHER_USER && !users.is_trusted(uid)) {
            tracing::warn!(uid, all, of_this_user = *own, "a connection to the workloads' socket too many was closed");
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
    users: Users,
    stop: CancellationToken,
) -> Result<(), tonic::transport::Error> {
    let counts = Counts::default();
    let incoming = UnixListenerStream::new(listener).filter_map(move |accepted| {
        let counted = accepted.map(|stream| Counted::new(stream, &users, &counts)).transpose();
        std::future::ready(counted)
    });
    let mut server = Server::builder().max_concurrent_streams(MAX_CALLS);
    server.add_routes(routes).serve_with_incoming_shutdown(incoming, stop.cancelled()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_the_own_user_and_those_of_the_configuration_may() {
        let users = Users { own: 100, others: vec![200] };
        assert_eq!([0, 100, 200, 300].map(|uid| users.may(uid)), [true, true, true, false]);
    }

    #[tokio::test]
    async fn so_many_connections_of_one_user_and_no_more_until_one_ends() -> io::Result<()> {
        let (stream, _other) = UnixStream::pair()?;
        let uid = stream.peer_cred()?.uid();
        let users = Users { own: uid, others: Vec::new() };
        let counts = Counts::default();
        if let Ok(mut counts) = counts.lock() {
            counts.insert(uid, MAX_CONNECTIONS - 1);
        }
        let last = Counted::new(stream, &users, &counts);
        assert!(last.is_some());
        assert!(Counted::new(UnixStream::pair()?.0, &users, &counts).is_none());
        drop(last);
        assert!(Counted::new(UnixStream::pair()?.0, &users, &counts).is_some());
        Ok(())
    }
}
