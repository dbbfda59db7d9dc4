//! Disk work of a runner, never done on a thread of the runtime: a disk that stalls must not make the replica silent.

use std::fs::File;
use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Weak};

use tokio::task::spawn_blocking;

/// The spool's disk, as long as the runner holds the spool's lock.
pub(super) struct Disk(Weak<File>);

impl Disk {
    pub(super) fn under(lock: &Arc<File>) -> Self {
        Self(Arc::downgrade(lock))
    }

    /// What was begun goes on when the runner is dropped, and holds the spool's lock until it is done, so that the
    /// next runner finds nobody at work. Nothing is begun after the runner: whoever asks then ends with it.
    pub(super) async fn work<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let Some(lock) = self.0.upgrade() else { return pending().await };
        let work = move || {
            let done = work();
            drop(lock);
            done
        };
        match spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                // The runtime ends, and whoever asked with it.
                Err(_) => pending().await,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn what_was_begun_is_done_aside_and_keeps_the_spool_until_then() {
        let spool = tempfile::NamedTempFile::new().unwrap();
        let lock = Arc::new(File::open(spool.path()).unwrap());
        lock.lock().unwrap();
        let disk = Disk::under(&lock);
        let (begun, begins) = oneshot::channel();
        let (go_on, told) = channel();
        let work = move || {
            begun.send(thread::current().id()).unwrap();
            told.recv().unwrap();
        };
        let working = tokio::spawn(async move { disk.work(work).await });
        assert_ne!(begins.await.unwrap(), thread::current().id());
        drop(lock);
        let next = File::open(spool.path()).unwrap();
        assert!(next.try_lock().is_err(), "it is not done");
        go_on.send(()).unwrap();
        working.await.unwrap();
        next.try_lock().unwrap();
    }
}
