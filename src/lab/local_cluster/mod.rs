//! Everything a demo runs on: a folder, a fake cloud, three replicas with their configuration, and the members of a
//! database where one dials in, or the servers of one. Taken down at the end.

pub(super) mod folder;
pub(super) mod members;
pub(super) mod power;
mod process;
pub(super) mod replica;
pub(super) mod servers;
pub(super) mod snapshot;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

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
/// Long enough that `--keep` never shows a warning of certificates that end soon.
const VALID_DAYS: u32 = 365;
const WORKLOAD: &str = "orders-db";

/// Phase, the least freeze it is worth, and how long it takes to be watched and to be interrupted.
const HOOKS: [(&str, Option<&str>, &str, &str); 5] = [
    ("checkpoint", Some("2s"), "600ms", "3s"),
    ("failover", Some("9s"), "1200ms", "3s"),
    ("drain", Some("9s"), "800ms", "800ms"),
    ("shutdown", None, "600ms", "600ms"),
    ("restore", None, "500ms", "500ms"),
];

/// How long the sample workload's hooks take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HookSpeed {
    /// As long as it takes to watch them.
    Unhurried,
    /// Long enough for a takeover.
    Long,
    /// No time at all.
    Instant,
}

/// Who is prepared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum SampleWorkload {
    /// A workload of the configuration, whose hooks are commands.
    Hooks(HookSpeed),
    /// A database that dials in: its program with its first arguments, to which name, socket and folder are added.
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
    /// VMs with servers that are away, by their place.
    away: BTreeMap<usize, EventType>,
    program: PathBuf,
}

impl LocalCluster {
    /// Makes the cloud, and starts servers, the replicas, and whoever dials in.
    pub(crate) async fn set_up(folder: PathBuf, speed: NonZeroU32, who: &SampleWorkload) -> anyhow::Result<Self> {
        Self::beside(VMS.map(str::to_owned).into(), folder, speed, who).await
    }

    /// The same beside other VMs, for which only hooks of the configuration are prepared.
    pub(crate) async fn beside(
        vms: Vec<String>,
        folder: PathBuf,
        speed: NonZeroU32,
        who: &SampleWorkload,
    ) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find its own program")?;
        let log = Some(folder.join("requests.jsonl"));
        let options = Options { speed, log, ..Options::new(vms.iter().cloned()) };
        let cloud = fake_cloud::serve(options).await?;
        let mut stage =
            Self { folder, cloud, replicas: Vec::new(), members: None, servers: None, away: BTreeMap::new(), program };
        if let SampleWorkload::Serves(server) = who {
            stage.servers.insert(Servers::new(*server, &stage.folder)?).found().await?;
        }
        let authority = Authority::make(CLUSTER, VALID_DAYS, clock::now())?;
        let (ca, authority) = (authority.cert.clone(), Authority::read(&authority.cert, &authority.key)?);
        let addresses = free_addresses(2 * vms.len()).context("no free port on loopback")?;
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

/// From one moment to another; below zero when it is the other way round.
pub(crate) fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    let millis = i32::try_from(to.0.saturating_sub(from.0)).unwrap_or(i32::MAX);
    f64::from(millis) / 1000.0
}

/// As a text of TOML, which takes what JSON takes.
fn quoted(path: &Path) -> String {
    serde_json::Value::from(path.to_string_lossy()).to_string()
}

fn free_addresses(count: usize) -> std::io::Result<Vec<SocketAddr>> {
    free_addresses_of(Ipv4Addr::LOCALHOST, count)
}

/// Of ports that a connection to itself leaves in `TIME_WAIT`, the kernel gives none to anybody who asks for any, for a
/// minute; whoever asks for exactly that one, and may reuse addresses, gets it. So no other stage takes them meanwhile.
fn free_addresses_of(host: Ipv4Addr, count: usize) -> std::io::Result<Vec<SocketAddr>> {
    let reserved = || -> std::io::Result<SocketAddr> {
        let listener = TcpListener::bind((host, 0))?;
        let address = listener.local_addr()?;
        let caller = TcpStream::connect(address)?;
        let (accepted, _) = listener.accept()?;
        // Who closes first is the one that waits.
        drop(accepted);
        drop(caller);
        Ok(address)
    };
    std::iter::repeat_with(reserved).take(count).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_address_is_for_whoever_names_it() {
        for address in free_addresses(5).unwrap() {
            // As the kernel looks for those who ask for any port: not willing to reuse one.
            let any = tokio::net::TcpSocket::new_v4().unwrap();
            any.set_reuseaddr(false).unwrap();
            assert_eq!(any.bind(address).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
            TcpListener::bind(address).unwrap();
        }
    }
}
