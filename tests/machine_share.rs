//! Shares of the machine: tests share the machine, except measuring tests, of which each runs alone.
//!
//! A test waiting for exclusive use holds nothing needed by the running tests, so a sharing test never waits for a test
//! which still waits for exclusive use.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;

use tokio::sync::Notify;

struct Use {
    shares: usize,
    /// The thread of the test with exclusive use, named like the test.
    alone: Option<String>,
}

static USE: Mutex<Use> = Mutex::new(Use { shares: 0, alone: None });
/// Notifies when a share or the exclusive use is released.
static GIVEN_BACK: Notify = Notify::const_new();

/// Releases the share on drop.
pub(crate) struct Share(());

/// Releases the exclusive use on drop.
pub(crate) struct Alone(());

fn machine() -> MutexGuard<'static, Use> {
    USE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_name() -> Option<String> {
    thread::current().name().map(str::to_owned)
}

/// Waits until no other test has exclusive use.
pub(crate) async fn share() -> Share {
    granted(|machine| {
        let is_free = machine.alone.is_none() || machine.alone == own_name();
        machine.shares += usize::from(is_free);
        is_free
    })
    .await;
    Share(())
}

/// Waits until there are no shares.
pub(crate) async fn alone() -> Alone {
    granted(|machine| {
        let is_free = machine.shares == 0 && machine.alone.is_none();
        if is_free {
            machine.alone = own_name();
        }
        is_free
    })
    .await;
    Alone(())
}

async fn granted(take: impl Fn(&mut Use) -> bool) {
    loop {
        let mut given_back = std::pin::pin!(GIVEN_BACK.notified());
        given_back.as_mut().enable();
        if take(&mut machine()) {
            return;
        }
        given_back.await;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        machine().shares -= 1;
        GIVEN_BACK.notify_waiters();
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        machine().alone = None;
        GIVEN_BACK.notify_waiters();
    }
}

#[tokio::test]
async fn whoever_is_alone_shares_with_nobody_but_itself() {
    let alone = alone().await;
    let own = share().await;
    let (asks, asked) = std::sync::mpsc::channel();
    let other = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut share = std::pin::pin!(share());
            let first = std::future::poll_fn(|context| Poll::Ready(share.as_mut().poll(context).is_ready())).await;
            asks.send(first).unwrap();
            drop(share.await);
        });
    });
    assert!(!asked.recv().unwrap(), "somebody shares it");
    drop((own, alone));
    other.join().unwrap();
}
