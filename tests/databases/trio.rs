//! The trait of a system under test, and three VMs for the system.

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

/// The timeout of a query whether a member takes writes.
const GLANCE: Duration = Duration::from_secs(1);
/// A limit far beyond any duration on a loaded machine.
const LIMIT: Duration = Duration::from_mins(2);

/// A database system. Its servers are known by their place among the three, and hold no state of the test: a hook's
/// changes to a server are observed on the disk and on the wire.
pub(crate) trait System: Send + Sync + 'static {
    /// The system's usual name.
    const NAME: &'static str;
    /// The system's tables in `deploy/hooks`, which name the hook set.
    const TABLES: &'static [&'static str];
    /// Programs which must be installed.
    const PROGRAMS: &'static [&'static str];
    /// The user of the servers when the test runs as root; `nobody` where there is no such user.
    const USER: &'static str;
    /// The system finds a new primary by itself.
    const FAILS_OVER: bool = false;
    /// A restarted primary takes no writes until the next promotion.
    const COMES_BACK_CLOSED: bool = false;
    /// One connection of a client.
    type Client: DatabaseClient + 'static;

    /// Makes and starts the three members, the first as the primary; returns when all members hold equal data.
    fn found(trio: &ThreeNodeBed);

    /// Starts the programs of a VM at boot, as the server; nothing where the server's data is gone.
    fn boot(trio: &ThreeNodeBed, place: usize);

    /// From now on a killed server has each write that it acknowledged.
    fn sync_each_write(_trio: &ThreeNodeBed) {}

    /// Promotes one of these members, as a person on call would. Never called where the system fails over by itself.
    fn promote(_trio: &ThreeNodeBed, _among: &[usize]) {
        unreachable!("{} does that by itself", Self::NAME)
    }

    /// The place of the member which takes writes; `None` without such a member, or without its answer within a second.
    fn primary(trio: &ThreeNodeBed) -> Option<usize>;

    /// Values of the hooks' `env` tables on this VM, in place of the examples in `deploy/hooks`.
    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)>;

    /// Connects a client which knows this member: the client searches there for a member which takes writes, and
    /// refuses any other. Every call on the client, now and later, times out after `patience`.
    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<Self::Client>;

    /// Whether this member takes writes; no second member may do so at the same time.
    fn takes_writes(trio: &ThreeNodeBed, place: usize) -> bool {
        Self::connect(trio, place, GLANCE).is_ok()
    }

    /// All rows of this member.
    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>>;
}

/// Three VMs of a system, in a folder which is removed with the VMs.
pub(crate) fn vms_of<S: System>() -> ThreeNodeBed {
    let folder = TempDir::with_prefix("db").unwrap().keep();
    std::fs::remove_dir(&folder).unwrap();
    ThreeNodeBed::make(folder, S::USER, &free_addresses(ADDRESSES)).unwrap()
}

/// The tables of the system's hooks for the replica on this VM.
pub(crate) fn tables<S: System>(trio: &ThreeNodeBed, place: usize) -> String {
    S::TABLES.iter().map(|name| trio.tables(place, name, S::settings(trio, place)).unwrap()).collect()
}

/// Waits for the wanted state of a system, and returns the observation.
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

/// Whether the system's programs are installed.
pub(crate) fn is_installed<S: System>() -> bool {
    let Some(missing) = missing(S::PROGRAMS) else { return true };
    crate::left_out::lacks(missing);
    false
}
