//! Shares of the machine: tests share the machine, except measuring tests, of which each runs alone.
//!
//! A test waiting for exclusive use holds nothing needed by the running tests, so a sharing test never waits for a test
//! which still waits for exclusive use.

use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, Semaphore, SemaphorePermit};
use tokio::time::sleep;

struct Use {
    shares: usize,
    /// The thread of the test with exclusive use, named like the test.
    alone: Option<String>,
}

struct Machine {
    used: Mutex<Use>,
    /// Notifies when a share or the exclusive use is released.
    given_back: Notify,
}

static MACHINE: Machine = Machine::new();

/// Programs that start whole clusters work all the time, while most tests wait. More of them at once than processors
/// only make each other late.
static STAGES: Semaphore = Semaphore::const_new(STAGES_AT_ONCE as usize);
const STAGES_AT_ONCE: u32 = 2;

/// So many sharing tests begin however busy the machine is.
const LEAST: usize = 2;
/// Runnable threads of each processor up to which a further test begins. Beyond it, a further test ends no sooner: the
/// tests only make each other late, and replicas miss their deadlines.
const RUNNABLE: usize = 4;
/// The samples of the runnable threads, and the pause between two. Each test takes its samples alone, so the tests begin at
/// least 150 ms apart: by then, most threads of the test before run.
const SAMPLES: (usize, Duration) = (10, Duration::from_millis(15));
/// The longest wait for a less busy machine: another program may keep it busy all day.
const PATIENCE: Duration = Duration::from_mins(2);
/// The tests that wait for a less busy machine begin one after the other.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Releases the share on drop.
pub(crate) struct Share(&'static Machine);

/// A place among the programs that start whole clusters, and a share.
pub(crate) type Stage = (Share, SemaphorePermit<'static>);

/// Releases the exclusive use on drop.
pub(crate) struct Alone(&'static Machine);

fn own_name() -> Option<String> {
    thread::current().name().map(str::to_owned)
}

/// Waits until no other test has exclusive use, and the machine is not too busy.
pub(crate) async fn share() -> Share {
    let turn = TURN.lock().await;
    let most = RUNNABLE * thread::available_parallelism().map_or(1, NonZero::get);
    let began = Instant::now();
    while MACHINE.shares() >= LEAST && runnable().await > most && began.elapsed() < PATIENCE {}
    // A test with exclusive use, which may want a share too, must not wait for a test that waits for its end.
    drop(turn);
    MACHINE.share().await
}

/// The average number of runnable threads of the machine; 0 where the system does not tell.
async fn runnable() -> usize {
    let mut sum = 0;
    for _ in 0..SAMPLES.0 {
        let told = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let now = told.lines().find_map(|line| line.strip_prefix("procs_running ")?.parse::<usize>().ok());
        sum += now.unwrap_or_default();
        sleep(SAMPLES.1).await;
    }
    sum / SAMPLES.0
}

/// A share for a test whose program starts a whole cluster.
pub(crate) async fn stage() -> Stage {
    // The share first: a test alone on the machine must not wait for a permit of a test that waits for a share.
    (share().await, STAGES.acquire().await.unwrap())
}

/// As `stage`, for a program that starts as many replicas as several others.
pub(crate) async fn whole_stage() -> Stage {
    (share().await, STAGES.acquire_many(STAGES_AT_ONCE).await.unwrap())
}

/// Waits until there are no shares. `None` at once unless `ALLCLEAR_FLOOD` asks for figures: only figures of delays need
/// the whole machine.
pub(crate) async fn alone() -> Option<Alone> {
    if crate::left_out::runs_floods() { Some(MACHINE.alone().await) } else { None }
}

impl Machine {
    const fn new() -> Self {
        Self { used: Mutex::new(Use { shares: 0, alone: None }), given_back: Notify::const_new() }
    }

    fn used(&self) -> MutexGuard<'_, Use> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shares(&self) -> usize {
        self.used().shares
    }

    async fn share(&'static self) -> Share {
        self.granted(|used| {
            let is_free = used.alone.is_none() || used.alone == own_name();
            used.shares += usize::from(is_free);
            is_free
        })
        .await;
        Share(self)
    }

    async fn alone(&'static self) -> Alone {
        self.granted(|used| {
            let is_free = used.shares == 0 && used.alone.is_none();
            if is_free {
                used.alone = own_name();
            }
            is_free
        })
        .await;
        Alone(self)
    }

    async fn granted(&self, take: impl Fn(&mut Use) -> bool) {
        loop {
            let mut given_back = std::pin::pin!(self.given_back.notified());
            given_back.as_mut().enable();
            if take(&mut self.used()) {
                return;
            }
            given_back.await;
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.0.used().shares -= 1;
        self.0.given_back.notify_waiters();
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        self.0.used().alone = None;
        self.0.given_back.notify_waiters();
    }
}

#[tokio::test]
async fn whoever_is_alone_shares_with_nobody_but_itself() {
    let machine: &'static Machine = Box::leak(Box::new(Machine::new()));
    let alone = machine.alone().await;
    let own = machine.share().await;
    let (asks, asked) = std::sync::mpsc::channel();
    let other = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let mut share = std::pin::pin!(machine.share());
            let first = std::future::poll_fn(|context| Poll::Ready(share.as_mut().poll(context).is_ready())).await;
            asks.send(first).unwrap();
            drop(share.await);
        });
    });
    assert!(!asked.recv().unwrap(), "somebody shares it");
    drop((own, alone));
    other.join().unwrap();
}
