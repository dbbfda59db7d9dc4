//! Real database servers: three of a system on loopback, each as if on a VM of its own, with the hook sets of
//! `deploy/hooks` beside them, and clients that write to them. For the demo and for tests.

pub mod hooks;
pub mod postgresql;
pub mod processes;
pub mod programs;
pub mod record;
pub mod redis;
pub mod three_nodes;
pub mod writers;

use std::io;
use std::time::Duration;

pub use postgresql::POSTGRESQL;
pub use redis::REDIS;

use record::Row;
use three_nodes::ThreeNodeBed;
use writers::Connect;

/// Values of the hooks' `env` tables on one VM, instead of those that the tables in `deploy/hooks` give as examples.
pub type Settings = Vec<(&'static str, String)>;

/// A system of servers, which are known by their place among the three. They hold no state of this process: whatever a
/// hook changes about them is seen where it is, on the disk and on the wire.
pub struct System {
    /// As people call it.
    pub name: &'static str,
    /// Its tables in `deploy/hooks`, which name its hook set.
    pub tables: &'static str,
    /// What must be installed.
    pub programs: &'static [&'static str],
    /// Whose rights its servers have where this process runs as root; `nobody` where there is no such user.
    pub user: &'static str,
    /// Makes the three members and starts them, the first as the primary; returns when all hold the same.
    pub found: fn(&ThreeNodeBed) -> anyhow::Result<()>,
    /// Starts what a VM that boots starts.
    pub boot: fn(&ThreeNodeBed, usize) -> anyhow::Result<()>,
    pub settings: fn(&ThreeNodeBed, usize) -> anyhow::Result<Settings>,
    /// A client that knows this member looks for one that takes writes there, and refuses any other. Nothing of it takes
    /// longer than the patience, neither now nor later.
    pub connect: Connect,
    /// Every row that this member holds.
    pub rows: fn(&ThreeNodeBed, usize) -> io::Result<Vec<Row>>,
}

/// One connection of a client.
pub trait DatabaseClient {
    /// Returns when the row is acknowledged. After an error nobody knows whether it is there, and the client is of no
    /// further use.
    fn write(&mut self, row: Row) -> io::Result<()>;
}

/// Whoever asks whether a member is the primary.
const GLANCE: Duration = Duration::from_secs(1);
/// Whoever reads all rows.
const READING: Duration = Duration::from_secs(20);
