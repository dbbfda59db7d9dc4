//! The I/O of consensus: how it connects to peers, and where it runs blocking work. A simulated network replaces it.

use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

use crate::net::dial::{self, DialTarget};

/// Work that may block.
pub type Work = Box<dyn FnOnce() + Send>;

/// Two functions, and what they are by default.
#[derive(Debug, Clone, Copy)]
pub struct Environment {
    /// A connection to another replica, made when it is first used.
    pub dial: fn(&Endpoint, &Arc<DialTarget>) -> Channel,
    /// Has the work done where it holds nobody up, and ends when it is done or can no longer be.
    pub aside: fn(Work) -> BoxFuture<'static, io::Result<()>>,
}

impl Default for Environment {
    fn default() -> Self {
        Self { dial: dial::dial, aside: on_a_thread }
    }
}

impl Environment {
    /// The means of a cluster of one that has no certificates: other replicas are not dialled.
    pub fn alone() -> Self {
        Self { dial: dial::refuse, ..Self::default() }
    }

    /// What the work brought; an error when it was not done to its end.
    pub async fn result_of<T: Send + 'static>(self, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        let (done, result) = oneshot::channel();
        let work = move || {
            let _ = done.send(work());
        };
        (self.aside)(Box::new(work)).await?;
        result.await.map_err(io::Error::other)
    }
}

fn on_a_thread(work: Work) -> BoxFuture<'static, io::Result<()>> {
    let working = tokio::task::spawn_blocking(work);
    Box::pin(async move { working.await.map_err(io::Error::other) })
}
