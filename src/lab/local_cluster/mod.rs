//! Everything a demo runs on: a folder, a fake cloud, three replicas with their configuration, and the members of a
//! session database, or database servers. All processes end with the demo.

pub(super) mod folder;
pub(super) mod members;
pub(super) mod power;
mod process;
pub(super) mod replica;
pub(super) mod servers;
pub(super) mod snapshot;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::net::TcpSocket;

use self::members::MemberPrograms;
use self::process::ChildProcess;
use self::replica::LocalReplica;
use self::servers::{ServerKind, Servers};
use crate::fake_cloud::{self, Options, Running};
pub(crate) use crate::testbed::three_nodes::VMS;
use allclear_core::model::document::EventType;
use allclear_core::model::time::Timestamp;
use allclear_server::net::tls::Authority;
use allclear_server::net::tls::issued;
use allclear_server::replica::clock;

const CLUSTER: &str = "demo";
/// Validity of the certificates, long enough to avoid warnings of expiring certificates with `--keep`.
const VALID_DAYS: u32 = 365;
const WORKLOAD: &str = "orders-db";

/// Phase, the minimum freeze, and the duration at the speeds for watching and for interruption.
const HOOKS: [(&str, Option<&str>, &str, &str); 5] = [
    ("checkpoint", Some("2s"), "600ms", "3s"),
    ("failover", Some("9s"), "1200ms", "3s"),
    ("drain", Some("9s"), "800ms", "800ms"),
    ("shutdown", None, "600ms", "600ms"),
    ("restore", None, "500ms", "500ms"),
];

/// Duration of the sample workload's hooks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookSpeed {
    /// Hooks that are long enough to watch.
    Unhurried,
    /// Hooks that are long enough for a takeover.
    Long,
    /// Hooks that end at once.
    Instant,
}

/// The demo's workload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SampleWorkload {
    /// A workload of the configuration, whose hooks are commands.
    Hooks(HookSpeed),
    /// A session workload: its program with the first arguments, to which name, socket and folder are added.
    Dials(Vec<String>),
    /// Real servers, whose hooks are the hook set of `deploy/hooks`.
    Serves(ServerKind),
}

/// Clients that write all the time leave the replicas less of the processors than a VM would.
const PATIENCE: &str = "heartbeat = \"250ms\"\nelection_timeout = \"1s\"\n";

pub(crate) struct LocalCluster {
    pub(crate) folder: PathBuf,
    pub(crate) cloud: Running,
    pub(crate) replicas: Vec<LocalReplica>,
    pub(crate) members: Option<MemberPrograms>,
    pub(crate) servers: Option<Servers>,
    /// VMs with servers that are down, by position.
    away: BTreeMap<usize, EventType>,
    program: PathBuf,
    _reserved: Vec<TcpSocket>,
}

impl LocalCluster {
    /// Makes the cloud, and starts the servers, the replicas, and the session workloads.
    pub(crate) async fn set_up(folder: PathBuf, speed: NonZeroU32, who: &SampleWorkload) -> anyhow::Result<Self> {
        Self::beside(VMS.map(str::to_owned).into(), folder, speed, who).await
    }

    /// Makes a cluster for the VMs `vms`, for which only hooks of the configuration are prepared.
    pub(crate) async fn beside(
        vms: Vec<String>,
        folder: PathBuf,
        speed: NonZeroU32,
        who: &SampleWorkload,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find the program of this process")?;
        let log = Some(folder.join("requests.jsonl"));
        let options = Options { speed, log, ..Options::new(vms.iter().cloned()) };
        let cloud = fake_cloud::serve(options).await?;
        let (addresses, reserved) = free_addresses(2 * vms.len()).context("no free port on loopback")?;
        let mut stage = Self {
            folder,
            cloud,
            replicas: Vec::new(),
            members: None,
            servers: None,
            away: BTreeMap::new(),
            program,
            _reserved: reserved,
        };
        if let SampleWorkload::Serves(server) = who {
            stage.servers.insert(Servers::new(*server, &stage.folder)?).found().await?;
        }
        let authority = Authority::make(CLUSTER, VALID_DAYS, clock::now())?;
        let (ca, authority) = (authority.cert.clone(), Authority::read(&authority.cert, &authority.key)?);
        let (clusters, statuses) = addresses.split_at(vms.len());
        let peers: Vec<String> = vms.iter().zip(clusters).map(|(vm, at)| format!("{vm} = \"{at}\"")).collect();
        for ((vm, cluster), status) in vms.iter().zip(clusters).zip(statuses) {
            let replica = LocalReplica::new(&stage.folder, vm, *status);
            issued::issue((&authority, &ca), vm, VALID_DAYS, &stage.certificates(vm), clock::now())?;
            replica.configure(&stage.configuration(&replica, *cluster, &peers, who)?)?;
            stage.replicas.push(replica);
        }
        for replica in &mut stage.replicas {
            replica.start(&stage.program).with_context(|| format!("{} cannot be started", replica.name))?;
        }
        if let SampleWorkload::Dials(program) = who {
            stage.members = Some(MemberPrograms::start(program, &stage.folder).await?);
        }
        Ok(stage)
    }

    pub(crate) fn start(&mut self, name: &str) -> anyhow::Result<()> {
        let found = self.replicas.iter_mut().find(|replica| replica.name == name);
        found
            .map_or(Ok(()), |replica| replica.start(&self.program))
            .with_context(|| format!("{name} cannot be started"))
    }

    pub(crate) fn hook_log(&self) -> PathBuf {
        self.folder.join("hooks.jsonl")
    }

    pub(crate) fn processes(&self) -> impl Iterator<Item = &ChildProcess> {
        let members = self.members.iter().flat_map(MemberPrograms::processes);
        self.replicas.iter().map(|replica| &replica.process).chain(members)
    }

    /// Ends every process. The folder stays.
    pub(crate) async fn strike(mut self) {
        let members = self.members.iter_mut().flat_map(MemberPrograms::processes_mut);
        let mut processes: Vec<_> =
            members.chain(self.replicas.iter_mut().map(|replica| &mut replica.process)).collect();
        for process in &processes {
            process.ask_to_stop();
        }
        for process in &mut processes {
            process.see_off().await;
        }
        folder::end_leftovers(&self.folder);
        self.cloud.shutdown().await;
    }

    fn configuration(
        &self,
        replica: &LocalReplica,
        listen: SocketAddr,
        peers: &[String],
        who: &SampleWorkload,
    ) -> anyhow::Result<String> {
        let name = &replica.name;
        let path = |ending: &str| quoted(&self.folder.join(format!("{name}{ending}")));
        let pem = |file: &str| quoted(&self.certificates(name).join(file));
        let prepared = match (who, &self.servers) {
            (SampleWorkload::Hooks(hooks), _) => self.with_hooks(*hooks),
            (SampleWorkload::Dials(_), _) => format!("[[group]]\nname = \"{}\"\nmax_unavailable = 1\n", members::GROUP),
            (SampleWorkload::Serves(_), servers) => {
                let place = self.replicas.len();
                servers.as_ref().map_or_else(|| Ok(String::new()), |servers| servers.tables(place))?
            }
        };
        let patience = if self.servers.is_some() { PATIENCE } else { "" };
        Ok(format!(
            "[replica]\nname = \"{name}\"\ndata_dir = {}\n\n\
             [cluster]\nname = \"{CLUSTER}\"\nlisten = \"{listen}\"\nreplicas = {{ {} }}\n{patience}\n\
             [cluster.tls]\ncert = {}\nkey = {}\nca = {}\n\n\
             [metadata]\nendpoint = \"{}\"\n\n\
             [status]\nlisten = \"{}\"\n\n\
             [operator]\nsocket = {}\n\n\
             [workloads]\nsocket = {}\n\n\
             [policy]\nmargin = \"1s\"\nlast_call = \"2s\"\n\n\
             {prepared}",
            path(""),
            peers.join(", "),
            pem("node.pem"),
            pem("node.key"),
            pem("ca.pem"),
            self.cloud.endpoint(name).unwrap_or_default(),
            replica.status,
            quoted(&replica.socket),
            quoted(&workloads_socket(&self.folder, name)),
        ))
    }

    /// The folder of a replica's key and certificates.
    fn certificates(&self, vm: &str) -> PathBuf {
        self.folder.join(format!("{vm}.tls"))
    }

    fn with_hooks(&self, hooks: HookSpeed) -> String {
        let mut text = format!(
            "[[group]]\nname = \"orders\"\nmax_unavailable = 2\n\n\
             [[workload]]\nname = \"{WORKLOAD}\"\ngroup = \"orders\"\n"
        );
        let (program, log) = (quoted(&self.program), quoted(&self.hook_log()));
        for (phase, min_freeze, usual, long) in HOOKS {
            let takes = match hooks {
                HookSpeed::Unhurried => usual,
                HookSpeed::Long => long,
                HookSpeed::Instant => "0s",
            };
            let command = format!("[{program}, \"demo-hook\", \"--takes\", \"{takes}\", \"--log\", {log}]");
            // Writing to a string cannot fail.
            let _ =
                write!(text, "\n[[workload.hook]]\nphase = \"{phase}\"\ncommand = {command}\nconfirm = {command}\n");
            if let Some(least) = min_freeze {
                let _ = writeln!(text, "min_freeze = \"{least}\"");
            }
        }
        text
    }
}

/// Where the replica of this VM waits for workloads.
pub(crate) fn workloads_socket(folder: &Path, vm: &str) -> PathBuf {
    folder.join(format!("{vm}.workloads"))
}

/// Seconds from one time to the other; negative when `to` is before `from`.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    let millis = i32::try_from(to.0.saturating_sub(from.0)).unwrap_or(i32::MAX);
    f64::from(millis) / 1000.0
}

/// A path as a TOML string, for which a JSON string is valid.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

fn free_addresses(count: usize) -> std::io::Result<(Vec<SocketAddr>, Vec<TcpSocket>)> {
    free_addresses_of(Ipv4Addr::LOCALHOST, count)
}

/// Free addresses, and the sockets that reserve them, also while a VM is down. A socket holds its port without listening: the
/// kernel gives the port to nobody who asks for any port, and a server that names it may reuse the address.
fn free_addresses_of(host: Ipv4Addr, count: usize) -> std::io::Result<(Vec<SocketAddr>, Vec<TcpSocket>)> {
    let reserved = || -> std::io::Result<(SocketAddr, TcpSocket)> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((host, 0).into())?;
        Ok((socket.local_addr()?, socket))
    };
    std::iter::repeat_with(reserved).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_address_is_for_whoever_names_it() {
        let (addresses, _reserved) = free_addresses(5).unwrap();
        for address in addresses {
            // As for a bind to any free port: without reuse of addresses.
            let any = TcpSocket::new_v4().unwrap();
            any.set_reuseaddr(false).unwrap();
            assert_eq!(any.bind(address).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
            // Again and again, as a replica that is restarted.
            for _ in 0..2 {
                std::net::TcpListener::bind(address).unwrap();
            }
        }
    }
}
