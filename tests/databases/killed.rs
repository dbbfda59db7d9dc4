//! A hook is killed at any point, and the server's own service then starts the server: never two members take writes,
//! no acknowledged write is lost, and the next attempt, or an undo, ends the hook well.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::hook::{BLOCKED, Ended, Hook, UNDO};
use super::stage::Stage;
use super::trio::{System, ThreeNodeBed, VMS, is_installed, until};
use super::writers::Writers;

/// Polls continuously which members take writes.
pub(crate) struct Watch {
    is_over: Arc<AtomicBool>,
    looking: Option<JoinHandle<Vec<String>>>,
}

/// The trio exists while the watch polls, also after a failure of the test.
impl Drop for Watch {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(looking) = self.looking.take() {
            let _ = looking.join();
        }
    }
}

impl Watch {
    pub(crate) fn begin<S: System>(trio: &Arc<ThreeNodeBed>) -> Self {
        let is_over = Arc::new(AtomicBool::default());
        let (trio, ends) = (Arc::clone(trio), Arc::clone(&is_over));
        let takes_writes = move |place: usize| S::takes_writes(&trio, place);
        let looking = std::thread::spawn(move || {
            let mut found = Vec::new();
            while !ends.load(Ordering::Relaxed) {
                for (one, other) in [(0, 1), (0, 2), (1, 2)] {
                    // The first member takes writes before and after the second does.
                    if takes_writes(one) && takes_writes(other) && takes_writes(one) {
                        found.push(format!("{} and {} take writes", VMS[one], VMS[other]));
                    }
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            found
        });
        Self { is_over, looking: Some(looking) }
    }

    /// Asserts: two members never took writes at the same time.
    pub(crate) fn end(mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let found = self.looking.take().unwrap().join().unwrap();
        assert!(found.is_empty(), "{found:?}");
    }
}

/// The point at which the hook was killed; `None` where the hook ended by itself.
pub(crate) fn killed_at(ended: &Ended) -> Option<&str> {
    ended.said.lines().find(|line| line.starts_with("killed ")).filter(|_| ended.status.is_none())
}

/// The primary's failover is killed at each point in turn, each time the server is restarted by its own service, and
/// then the failover is run again or undone.
async fn a_failover_is_killed_at_each_point<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::bare().await;
    S::sync_each_write(&stage.trio);
    let writers = Writers::start::<S>(&stage.trio);
    let watch = Watch::begin::<S>(&stage.trio);
    // Sentinel is slow at each point: where one run is too short, the next run begins at the end of the last run.
    let first = std::env::var("KILLED_FROM").map_or(1, |point| point.parse().unwrap());
    let mut points = first..;
    let last = loop {
        let (point, primary) = (points.next().unwrap(), stage.primary());
        let told = [("ALLCLEAR_EVENT_ID", &*format!("event-{point}"))];
        // A restarted member may not be a successor yet.
        let ended = until("a failover", || match Hook::killed::<S>(&stage.trio, primary, "failover", point, &told) {
            Ended { status: BLOCKED, said } => Err(said),
            ended => Ok(ended),
        });
        let Some(at) = killed_at(&ended) else {
            assert_eq!(ended.status, Some(0), "{ended:?}");
            println!("{}: a failover has {} points", S::NAME, point - 1);
            break primary;
        };
        println!("{}: {at}", S::NAME);
        stage.trio.kill(primary);
        S::boot(&stage.trio, primary);
        let again: &[(&str, &str)] = if point % 2 == 0 { &[UNDO, told[0]] } else { &told };
        Hook::until_done::<S>(&stage.trio, primary, "failover", again);
        Hook::until_done::<S>(&stage.trio, primary, "restore", &told);
        writers.go_on();
    };
    Hook::until_done::<S>(&stage.trio, last, "restore", &[]);
    watch.end();
    stage.all_is_there(writers);
}

macro_rules! killed {
    ($($system:ident: $kind:ty;)*) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        #[ignore = "all of them take half an hour"]
        async fn $system() {
            a_failover_is_killed_at_each_point::<$kind>().await;
        })*
    };
}

killed! {
    etcd: crate::databases::etcd::Etcd;
    mariadb: crate::databases::mariadb::MariaDb;
    postgresql: crate::databases::postgresql::Postgresql;
    postgresql_synchronous: crate::databases::postgresql::Synchronous;
    postgresql_pooled: crate::databases::postgresql::Pooled;
    redis: crate::databases::redis::Redis;
    sentinel: crate::databases::redis::Sentinel;
}
