//! Real database servers, one beside each replica, and the clients that write to the servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::net::TcpSocket;
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::free_addresses_of;
use crate::testbed::record::{WriteRecord, Wrong};
use crate::testbed::three_nodes::{ADDRESSES, DatabaseVm, ThreeNodeBed, VMS};
use crate::testbed::writers::{WriteProgress, Writers};
use crate::testbed::{POSTGRESQL, REDIS, System, programs};
use allclear_server::replica::clock;

/// Programs that start every server.
const STARTERS: [&str; 2] = ["setsid", "setpriv"];
/// The pause of each client after a write: leaves processor time to the rest of the machine, and allows the clients
/// to measure an outage of this length.
const REST: Duration = Duration::from_millis(1);
/// Time until every client has written some more rows, and until every member has all rows.
const SETTLED_WITHIN: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// A loopback address other than the source address of outgoing connections, so that no connection takes a server's
/// port while the server is down.
const LOOPBACK: std::net::Ipv4Addr = std::net::Ipv4Addr::new(127, 0, 0, 3);

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum ServerKind {
    #[value(alias = "postgresql")]
    Postgres,
    Redis,
}

impl ServerKind {
    pub(crate) fn system(self) -> &'static System {
        match self {
            Self::Postgres => &POSTGRESQL,
            Self::Redis => &REDIS,
        }
    }

    /// Which program is not installed here, and how to install the program.
    pub(crate) fn lacks(self) -> anyhow::Result<()> {
        let system = self.system();
        let Some(missing) = programs::missing(system.programs).or(programs::missing(&STARTERS)) else { return Ok(()) };
        let package = match (missing, self) {
            ("python3", _) => "python3",
            ("setsid" | "setpriv", _) => "util-linux",
            (_, Self::Postgres) => "postgresql",
            (_, Self::Redis) => "redis-server",
        };
        bail!(
            "servers of {} cannot be started here: there is no {missing}, neither in the PATH nor where Debian keeps \
             it; install it (on Debian and Ubuntu: apt install {package}), or leave out --with",
            system.name
        )
    }
}

/// On drop, all servers end and their data is removed. The servers also end with the thread that starts them: the
/// runtime has to keep its blocking threads.
pub(crate) struct Servers {
    system: &'static System,
    trio: Arc<ThreeNodeBed>,
    writers: Option<Writers>,
    _reserved: Vec<TcpSocket>,
}

/// The record of the clients' writes, and the wrong rows of each member.
pub(crate) struct Settled {
    pub(crate) record: WriteRecord,
    pub(crate) wrong: Vec<(&'static str, Wrong)>,
}

impl Servers {
    /// Servers in a new folder below `folder`.
    pub(super) fn new(server: ServerKind, folder: &Path) -> anyhow::Result<Self> {
        let system = server.system();
        let (addresses, reserved) = free_addresses_of(LOOPBACK, ADDRESSES).context("no free port on loopback")?;
        let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        let trio = Arc::new(ThreeNodeBed::make(folder_of_servers(folder), system.user, &addresses)?);
        Ok(Self { system, trio, writers: None, _reserved: reserved })
    }

    /// Starts a primary and two standbys; clients begin to write.
    pub(super) async fn found(&mut self) -> anyhow::Result<()> {
        let (found, trio) = (self.system.found, self.trio.clone());
        if let Err(error) = spawn_blocking(move || found(&trio)).await? {
            let tails: Vec<_> = self.tails().collect();
            bail!("the servers of {} cannot be set up: {error:#}\n{}", self.system.name, tails.join("\n"));
        }
        self.writers = Some(Writers::start(&self.trio, self.system.connect, REST));
        Ok(())
    }

    pub(crate) fn name(&self) -> &'static str {
        self.system.name
    }

    /// The tables of the hook set for the replica on this VM.
    pub(super) fn tables(&self, place: usize) -> anyhow::Result<String> {
        let settings = (self.system.settings)(&self.trio, place)?;
        self.trio.tables(place, self.system.tables, settings)
    }

    pub(crate) fn progress(&self) -> WriteProgress {
        self.writers.as_ref().map(Writers::progress).unwrap_or_default()
    }

    /// Name and address of each server.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.trio.vms.iter().map(|vm| (vm.name, vm.addresses[0].as_str()))
    }

    pub(crate) fn tails(&self) -> impl Iterator<Item = String> {
        self.trio.vms.iter().map(DatabaseVm::tail)
    }

    pub(super) fn trio(&self) -> &ThreeNodeBed {
        &self.trio
    }

    pub(super) async fn boot(&self, place: usize) -> anyhow::Result<()> {
        let (boot, trio) = (self.system.boot, self.trio.clone());
        spawn_blocking(move || boot(&trio, place)).await?
    }

    /// Ends the clients, each after some more writes, so that no pause is left open; then reads every member until
    /// the member has all expected rows or the time is over.
    pub(crate) async fn settle(&mut self) -> anyhow::Result<Settled> {
        let limit = clock::monotonic().plus(SETTLED_WITHIN);
        let before = self.progress();
        while !self.progress().is_beyond(&before) && clock::monotonic() < limit {
            sleep(LOOK_EVERY).await;
        }
        let writers = self.writers.take().context("no client has written")?;
        let record = Arc::new(spawn_blocking(move || writers.end()).await??);
        let mut wrong = Vec::new();
        for (place, vm) in VMS.into_iter().enumerate() {
            wrong.push((vm, self.wrong(place, &record).await?));
        }
        let record = Arc::into_inner(record).context("a client still reads")?;
        Ok(Settled { record, wrong })
    }

    async fn wrong(&self, place: usize, record: &Arc<WriteRecord>) -> anyhow::Result<Wrong> {
        let limit = clock::monotonic().plus(SETTLED_WITHIN);
        loop {
            let (rows, trio, record) = (self.system.rows, self.trio.clone(), record.clone());
            let found = spawn_blocking(move || Ok(record.against(&rows(&trio, place)?))).await?;
            let is_late = clock::monotonic() > limit;
            match found {
                Ok(wrong) if wrong == Wrong::default() || is_late => return Ok(wrong),
                Err::<_, std::io::Error>(error) if is_late => {
                    return Err(error).with_context(|| format!("the rows on {} cannot be read", VMS[place]));
                }
                Ok(_) | Err(_) => sleep(LOOK_EVERY).await,
            }
        }
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.trio.end();
        self.writers = None;
    }
}

/// The servers' folder in a demo's folder.
pub(super) fn folder_of_servers(folder: &Path) -> PathBuf {
    folder.join("servers")
}
