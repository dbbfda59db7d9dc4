//! Who has the machine: tests share it, but for those that measure, one of which has it by itself.
//!
//! A test that waits for the others to end holds nothing that they wait for, so whoever shares never waits for a test that
//! only wishes to be alone.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

struct Use {
    shares: usize,
    /// The thread of the test that has the machine, which is named like the test.
    alone: Option<String>,
}

static USE: Mutex<Use> = Mutex::new(Use { shares: 0, alone: None });

/// Given back when it is dropped.
pub(crate) struct Share(());

/// Given back when it is dropped.
pub(crate) struct Alone(());

fn machine() -> MutexGuard<'static, Use> {
    USE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_name() -> Option<String> {
    thread::current().name().map(str::to_owned)
}

/// Once nobody else has the machine alone.
pub(crate) async fn share() -> Share {
    loop {
        {
            let mut machine = machine();
            if machine.alone.is_none() || machine.alone == own_name() {
                machine.shares += 1;
                return Share(());
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Once nobody shares it.
pub(crate) async fn alone() -> Alone {
    loop {
        {
            let mut machine = machine();
            if machine.shares == 0 && machine.alone.is_none() {
                machine.alone = own_name();
                return Alone(());
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        machine().shares -= 1;
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        machine().alone = None;
    }
}

#[tokio::test]
async fn whoever_is_alone_shares_with_nobody_but_itself() {
    let alone = alone().await;
    let own = share().await;
    let others = thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async { tokio::time::timeout(LOOK_EVERY * 4, share()).await.is_ok() })
    });
    assert!(!others.join().unwrap(), "somebody shares it");
    drop((own, alone));
    drop(share().await);
}
