//! A cluster that is yet to be started: which replicas, what is beside them, and the configuration of each.

use std::cell::RefCell;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::LazyLock;

use allclear::net::tls::{Authority, Made};
use allclear::replica::clock;
use tempfile::TempDir;
use tokio::net::TcpSocket;

use super::cloud::Cloud;
use super::cluster::{Cluster, Replica};
use super::disks::SmallDisk;
use super::links::Links;
use super::namespaces::Namespaces;
use super::workload::{Hook, Hooks};
use crate::machine_share::share;

/// The name of every cluster of tests.
const CLUSTER: &str = "tests";
/// Long enough that nothing warns of a certificate that ends soon.
const VALID_DAYS: u32 = 365;

/// A cluster that is yet to be started.
#[derive(Default)]
pub(crate) struct Plan {
    vms: Vec<&'static str>,
    newcomer: Option<&'static str>,
    workloads: Vec<(&'static str, Vec<&'static str>, Vec<Hook>)>,
    overrides: Vec<(String, &'static str)>,
    has_links: bool,
    primary: Option<&'static str>,
    spare: Option<(&'static str, u32)>,
    environments: Vec<Vec<(&'static str, String)>>,
    namespaces: Option<Namespaces>,
    script: Option<&'static str>,
    disks: Option<&'static str>,
    tables: Vec<String>,
    hosts: Vec<&'static str>,
    launcher: Vec<String>,
    has_last_resort: bool,
}

impl Cluster {
    /// Replicas beside these VMs, without workloads.
    pub(crate) fn of(vms: &[&'static str]) -> Plan {
        Plan { vms: vms.into(), ..Plan::default() }
    }

    /// Three replicas whose VMs carry one workload with these hooks.
    pub(crate) async fn with_hooks(hooks: Vec<Hook>) -> Self {
        Self::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).start().await
    }
}

impl Plan {
    /// Every VM carries this workload.
    pub(crate) fn workload(mut self, name: &'static str, hooks: Vec<Hook>) -> Self {
        self.workloads.push((name, Vec::new(), hooks));
        self
    }

    /// Every VM carries this workload as well, prepared after `other`.
    pub(crate) fn workload_after(mut self, other: &'static str, name: &'static str, hooks: Vec<Hook>) -> Self {
        self.workloads.push((name, vec![other], hooks));
        self
    }

    /// So many members of the workload's group may be out of service at once. Otherwise an unreachable member blocks an
    /// event of another member, unless the event is claimed before the member is known to be unreachable.
    pub(crate) fn may_lose(mut self, members: u32, workload: &'static str) -> Self {
        self.spare = Some((workload, members));
        self
    }

    /// Another value of the configuration: `also("policy.margin", "1s")`.
    pub(crate) fn also(mut self, key: &str, value: &'static str) -> Self {
        self.overrides.push((format!("ALLCLEAR__{}", key.to_uppercase().replace('.', "__")), value));
        self
    }

    /// A lease of four seconds, and heartbeats that may take 750 ms: no load of the machine costs the leader a follower.
    pub(crate) fn keeps_its_leader(self) -> Self {
        self.also("cluster.heartbeat", "1s").also("cluster.election_timeout", "2s")
    }

    /// The groups of all workloads, where one group is defined: a configuration defines all its groups, or none.
    fn groups(&self) -> String {
        let others = self.tables.concat();
        if self.spare.is_none() && !others.contains("[[group]]") {
            return String::new();
        }
        let names = self.workloads.iter().map(|(name, ..)| *name);
        let missing = names.filter(|name| !others.contains(&format!("name = \"{name}s\"")));
        let members =
            |name: &str| self.spare.filter(|(workload, _)| *workload == name).map_or(1, |(_, members)| members);
        missing.fold(String::new(), |text, name| {
            text + &format!("[[group]]\nname = \"{name}s\"\nmax_unavailable = {}\n", members(name))
        })
    }

    /// Further environment variables of each replica: another wall clock, say.
    pub(crate) fn environments(mut self, environments: Vec<Vec<(&'static str, String)>>) -> Self {
        self.environments = environments;
        self
    }

    /// The hooks' script, instead of the usual script.
    pub(crate) fn script(mut self, script: &'static str) -> Self {
        self.script = Some(script);
        self
    }

    /// Further tables in the configuration of each replica.
    #[allow(dead_code, reason = "for other suites, whose workloads differ from one VM to another")]
    pub(crate) fn tables(mut self, of_each: Vec<String>) -> Self {
        self.tables = of_each;
        self
    }

    /// Each replica has its own disk of this size, where disks can be made.
    pub(crate) fn with_disks(mut self, size: &'static str) -> Self {
        self.disks = Some(size);
        self
    }

    /// One more VM; its replica is not started yet and is named only by its own configuration.
    pub(crate) fn newcomer(mut self, vm: &'static str) -> Self {
        self.newcomer = Some(vm);
        self
    }

    /// The replicas are connected through links that can be cut.
    pub(crate) fn with_links(mut self) -> Self {
        self.has_links = true;
        self
    }

    /// The workloads report their roles, and this VM's workloads are the primaries.
    pub(crate) fn with_primary(mut self, vm: &'static str) -> Self {
        self.primary = Some(vm);
        self
    }

    /// The replicas use these host names for each other, a name for each place. `launcher` is a command that gets the
    /// replica's command line and replaces itself by the replica.
    #[allow(dead_code, reason = "not every suite has names")]
    pub(crate) fn named(mut self, hosts: &[&'static str], launcher: Vec<String>) -> Self {
        (self.hosts, self.launcher) = (hosts.into(), launcher);
        self
    }

    /// Without a metadata endpoint, the replicas approve through the control plane.
    pub(crate) fn with_last_resort(mut self) -> Self {
        self.has_last_resort = true;
        self
    }

    /// Each replica runs in a network namespace of its own.
    pub(crate) fn within(mut self, namespaces: Namespaces) -> Self {
        self.namespaces = Some(namespaces);
        self
    }

    /// Starts all replicas, and waits until every replica polls, is registered and follows a leader.
    pub(crate) async fn start(self) -> Cluster {
        let mut cluster = self.cold().await;
        cluster.start_all();
        cluster.ready().await;
        cluster
    }

    /// The certificates of a replica, unless the plan has certificates or plain text for the replica.
    fn tls(&self, place: usize, vm: &str, folder: &Path) -> String {
        let variables = self.overrides.iter().map(|(key, _)| key.as_str());
        let own = self.environments.get(place).into_iter().flatten().map(|(key, _)| *key);
        let is_insecure = variables.chain(own).any(|key| key == "ALLCLEAR__CLUSTER__INSECURE");
        if is_insecure || self.tables.get(place).is_some_and(|tables| tables.contains("[cluster.tls]")) {
            return String::new();
        }
        certificates(&folder.join(format!("{place}.tls")), vm)
    }

    fn last_resort(&self, cloud: &Cloud) -> String {
        let table = format!("[control_plane]\nacknowledge = true\nendpoint = {:?}\n", cloud.control_plane());
        if self.has_last_resort { table } else { String::new() }
    }

    /// A disk for each replica, if the plan has disks.
    fn small_disks(&self, folder: &Path, count: usize) -> Vec<SmallDisk> {
        let disk = |place: usize| SmallDisk::at(&folder.join(format!("{place}.data")), self.disks?);
        (0..count).map_while(disk).collect()
    }

    /// Prepares the cluster; no replica was ever started.
    pub(crate) async fn cold(self) -> Cluster {
        let folder = TempDir::with_prefix("ac").unwrap();
        let vms: Vec<_> = self.vms.iter().copied().chain(self.newcomer).collect();
        let cloud = Cloud::of(&vms).await;
        let mut hooks = Hooks::new(folder.path(), self.script);
        if let Some(vm) = self.primary {
            hooks.tell_roles = true;
            hooks.make_primary(vm);
        }
        let mut addresses = free_addresses(2 * vms.len());
        let pages = addresses.split_off(vms.len());
        if let Some(namespaces) = &self.namespaces {
            addresses = (0..vms.len()).map(Namespaces::address).collect();
            for (place, vm) in vms.iter().enumerate() {
                namespaces.lead_out(place, cloud.endpoint(vm).trim_start_matches("http://"));
            }
        }
        let links = self.has_links.then(|| Links::between(&addresses));
        let groups = self.groups();
        let workloads = self.workloads.iter().map(|(name, after, each)| hooks.table(name, after, each));
        let tables = self.last_resort(&cloud) + &groups + &workloads.collect::<String>();
        let mut replicas = Vec::new();
        for (place, vm) in vms.iter().enumerate() {
            let known = if place < self.vms.len() { self.vms.len() } else { vms.len() };
            let address_of = |other: usize| match (&links, self.hosts.get(other)) {
                (Some(links), _) if other != place => links.address(place, other).to_owned(),
                (None, Some(host)) => format!("{host}:{}", addresses[other].rsplit_once(':').unwrap().1),
                (Some(_), _) | (None, None) => addresses[other].clone(),
            };
            let list: Vec<_> = (0..known).map(|other| format!("{:?} = {:?}", vms[other], address_of(other))).collect();
            let tls = self.tls(place, vm, folder.path());
            let path = |name: &str| folder.path().join(format!("{place}.{name}")).display().to_string();
            let toml = format!(
                "[replica]\nname = {vm:?}\ndata_dir = {data:?}\n\
                 [cluster]\nname = {CLUSTER:?}\nlisten = {listen:?}\nreplicas = {{ {list} }}\n{tls}\
                 [metadata]\nendpoint = {endpoint:?}\npoll_interval = \"500ms\"\ngone_after = \"1s\"\n[status]\nlisten = {page:?}\n\
                 [operator]\nsocket = {operator:?}\n[workloads]\nsocket = {workloads:?}\n{tables}{own}",
                data = path("data"),
                listen = addresses[place],
                list = list.join(", "),
                endpoint = cloud.endpoint(vm),
                page = pages[place],
                operator = path("operator"),
                workloads = path("workloads"),
                own = self.tables.get(place).map_or("", String::as_str),
            );
            write_in_confidence(&path("toml"), &toml);
            let (name, page) = ((*vm).to_owned(), format!("http://{}", pages[place]));
            let program = env!("CARGO_BIN_EXE_allclear").into();
            replicas.push(Replica { name, program, socket: path("operator").into(), page, child: None });
        }
        let disks = self.small_disks(folder.path(), vms.len());
        let (founders, overrides, environments) = (self.vms.len(), self.overrides, self.environments);
        let (namespaces, launcher) = (self.namespaces, self.launcher);
        Cluster {
            cloud,
            hooks,
            links,
            namespaces,
            replicas,
            founders,
            overrides,
            environments,
            launcher,
            disks,
            folder,
            _share: share().await,
        }
    }
}

/// Makes the key and the certificates of a replica in a new folder, and returns the table with the paths.
fn certificates(folder: &Path, replica: &str) -> String {
    static MADE: LazyLock<Made> = LazyLock::new(|| Authority::make(CLUSTER, VALID_DAYS, clock::now()).unwrap());
    let authority = Authority::read(&MADE.cert, &MADE.key).unwrap();
    let issued = authority.issue(replica, VALID_DAYS, clock::now()).unwrap();
    std::fs::create_dir(folder).unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        path.display().to_string()
    };
    let (cert, key) = (write("node.pem", &issued.cert), write("node.key", &issued.key));
    format!("[cluster.tls]\ncert = {cert:?}\nkey = {key:?}\nca = {:?}\n", write("ca.pem", &MADE.cert))
}

thread_local! {
    /// Sockets that are kept for the duration of the test.
    static HELD: RefCell<Vec<TcpSocket>> = RefCell::default();
}

/// Ports of this test alone, also while the replicas do not run. A socket holds each port without listening: the kernel
/// does not assign a held port to a bind of any port, and a bind of exactly this port may share the port.
pub(crate) fn free_addresses(count: usize) -> Vec<String> {
    let held = || {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::new(127, 0, 0, 3), 0).into())?;
        let address = socket.local_addr()?.to_string();
        HELD.with_borrow_mut(|held| held.push(socket));
        std::io::Result::Ok(address)
    };
    std::iter::repeat_with(|| held().unwrap()).take(count).collect()
}

/// Variables of hooks may be secret.
fn write_in_confidence(path: &str, toml: &str) {
    std::fs::write(path, toml).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}
