//! What a system has to say of itself so that it can be tested, and three VMs for it.

use std::io;
use std::time::{Duration, Instant};

pub(crate) use allclear::testbed::DatabaseClient;
pub(crate) use allclear::testbed::programs::find;
use allclear::testbed::programs::missing;
use allclear::testbed::three_nodes::ADDRESSES;
pub(crate) use allclear::testbed::three_nodes::{DatabaseVm, ThreeNodeBed, VMS};
use tempfile::TempDir;

use super::plan::free_addresses;
use super::record::Row;

/// Whoever asks whether a member takes writes.
const GLANCE: Duration = Duration::from_secs(1);
/// Far beyond what anything takes on a loaded machine.
const LIMIT: Duration = Duration::from_mins(2);

/// A database system. Its servers are known by their place among the three, and hold no state of the test: whatever a
/// hook changes about them is seen where it is, on the disk and on the wire.
pub(crate) trait System: Send + Sync + 'static {
    /// As people call it.
    const NAME: &'static str;
    /// Its tables in `deploy/hooks`, which name its hook set.
    const TABLES: &'static [&'static str];
    /// What must be installed.
    const PROGRAMS: &'static [&'static str];
    /// Whose rights its servers have when the test runs as root; `nobody` where there is no such user.
    const USER: &'static str;
    /// It finds a new primary by itself.
    const FAILS_OVER: bool = false;
    /// A primary that was restarted takes no writes until somebody makes it the primary again.
    const COMES_BACK_CLOSED: bool = false;
    /// One connection of a client.
    type Client: DatabaseClient + 'static;

    /// Makes the three members and starts them, the first as the primary; returns when all hold the same.
    fn found(trio: &ThreeNodeBed);

    /// Starts what a VM that boots starts, the server for one; nothing where its data is gone.
    fn boot(trio: &ThreeNodeBed, place: usize);

    /// Makes one of these the primary, as a person would who was called. Never called where it fails over by itself.
    fn promote(_trio: &ThreeNodeBed, _among: &[usize]) {
        unreachable!("{} does that by itself", Self::NAME)
    }

    /// The place of the member that takes writes; `None` while there is none, or it does not say within a second.
    fn primary(trio: &ThreeNodeBed) -> Option<usize>;

    /// Values of the hooks' `env` tables on this VM, instead of those that the tables in `deploy/hooks` give as examples.
    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)>;

    /// A client that knows this member looks for one that takes writes there, and refuses any other. Nothing of it takes
    /// longer than the patience, neither now nor later.
    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<Self::Client>;

    /// Whether this member takes writes, as no second one must at the same moment.
    fn takes_writes(trio: &ThreeNodeBed, place: usize) -> bool {
        Self::connect(trio, place, GLANCE).is_ok()
    }

    /// Every row that this member holds.
    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>>;
}

/// Three VMs of a system, in a folder that goes with them.
pub(crate) fn vms_of<S: System>() -> ThreeNodeBed {
    let folder = TempDir::with_prefix("db").unwrap().keep();
    std::fs::remove_dir(&folder).unwrap();
    ThreeNodeBed::make(folder, S::USER, &free_addresses(ADDRESSES)).unwrap()
}

/// The tables of its hooks for the replica on this VM.
pub(crate) fn tables<S: System>(trio: &ThreeNodeBed, place: usize) -> String {
    S::TABLES.iter().map(|name| trio.tables(place, name, S::settings(trio, place)).unwrap()).collect()
}

/// Waits until a system is as wanted, and returns what was seen.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Ok(seen) => return seen,
            Err(why) => assert!(began.elapsed() < LIMIT, "waited in vain for {what}: {why}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether the system can be tried here. Where it cannot, this is said; and where everything has to be tried, that is a
/// failure.
pub(crate) fn is_installed<S: System>() -> bool {
    let Some(missing) = missing(S::PROGRAMS) else { return true };
    println!("SKIPPED: {} is not installed, there is no {missing}", S::NAME);
    assert!(std::env::var_os("CI").is_none(), "{missing} is missing, and nothing may be skipped where CI is set");
    false
}
