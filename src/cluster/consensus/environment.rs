//! The I/O of consensus: connections to peers, and the execution of blocking work. A simulated network replaces this
//! I/O.

use std::io;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio::sync::oneshot;
use tonic::transport::{Channel, Endpoint};

use crate::net::dial::{self, DialTarget};

/// Work that may block.
pub type Work = Box<dyn FnOnce() + Send>;

/// The two I/O functions, with defaults.
#[derive(Debug, Clone, Copy)]
pub struct Environment {
    /// Returns a connection to another replica, opened at first use.
    pub dial: fn(&Endpoint, &Arc<DialTarget>) -> Channel,
    /// Runs the work without blocking other tasks; ends when the work is done or can no longer be done.
    pub aside: fn(Work) -> BoxFuture<'static, io::Result<()>>,
}

impl Default for Environment {
    fn default() -> Self {
        Self { dial: dial::dial, aside: on_a_thread }
    }
}

impl Environment {
    /// The environment of a cluster of one without certificates: other replicas are not dialled.
    pub fn alone() -> Self {
        Self { dial: dial::refuse, ..Self::default() }
    }

    /// The result of the work; an error if the work did not complete.
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
