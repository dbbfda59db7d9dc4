//! Real database servers for the demo and for tests: three servers of a system on loopback, each as if on a VM of its
//! own, with the hook sets of `deploy/hooks`, and clients that write to the servers.

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

/// Values of the hooks' `env` tables on one VM, which replace the example values of the tables in `deploy/hooks`.
pub type Settings = Vec<(&'static str, String)>;

/// A database system. A server is identified by its place among the three servers. `System` keeps no state in this
/// process: every change by a hook is read from the disk and from the server.
pub struct System {
    /// The system's name in texts.
    pub name: &'static str,
    /// The system's tables in `deploy/hooks`, which name the hook set.
    pub tables: &'static str,
    /// Programs that must be installed.
    pub programs: &'static [&'static str],
    /// The user of the servers where this process runs as root; `nobody` where the user does not exist.
    pub user: &'static str,
    /// Makes and starts the three members, the first as the primary; returns when all members hold equal data.
    pub found: fn(&ThreeNodeBed) -> anyhow::Result<()>,
    /// Starts the servers that start at the boot of the VM.
    pub boot: fn(&ThreeNodeBed, usize) -> anyhow::Result<()>,
    pub settings: fn(&ThreeNodeBed, usize) -> anyhow::Result<Settings>,
    /// Connects a client that knows this member: finds a server that takes writes there, and rejects all other
    /// servers. Every call times out after the `Duration`, during the connect and later.
    pub connect: Connect,
    /// Every row of this member.
    pub rows: fn(&ThreeNodeBed, usize) -> io::Result<Vec<Row>>,
}

/// One connection of a client.
pub trait DatabaseClient {
    /// Returns when the row is acknowledged. After an error the row may be stored or not, and the client must not be
    /// used again.
    fn write(&mut self, row: Row) -> io::Result<()>;
}

/// Timeout of the query whether a member is the primary.
const GLANCE: Duration = Duration::from_secs(1);
/// Timeout of reading all rows.
const READING: Duration = Duration::from_secs(20);
