//! The third stage: the typed configuration, and contradictions between its tables.

use core::fmt;
use core::net::SocketAddr;
use std::path::PathBuf;

use super::cluster::{self, ClusterConfig, ReplicaConfig};
use super::control_plane;
use super::error::Hidden;
use super::listeners::{self, Operator, Registration, StatusConfig};
use super::metadata::{self, Metadata};
use super::notify;
use super::policy;
use super::reader::{self, Reading, TomlTable};
use super::source::Value;
use super::tracing;
use super::workload::{self, ConfiguredWorkload};
use crate::control_plane::ControlPlaneOptions;
use crate::export::notices::receiver::Receiver;
use crate::export::traces::Collector;
use allclear_core::model::workload::Group;
use allclear_core::ownership::Grants;
use allclear_core::policy::Policy;

/// The configuration of one replica. Tables are named as in the file, `[[workload]]` is `workloads`, `[workloads]` is
/// `registration` and `[[notify]]` is `receivers`.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    pub replica: ReplicaConfig,
    pub cluster: ClusterConfig,
    pub metadata: Metadata,
    /// Approvals through the control plane as the last resort; `None`: never.
    pub control_plane: Option<ControlPlaneOptions>,
    pub status: StatusConfig,
    pub operator: Operator,
    pub registration: Registration,
    /// The collector of exported traces.
    pub tracing: Option<Collector>,
    pub policy: Policy,
    pub groups: Vec<Group>,
    /// In the order of the file.
    pub workloads: Vec<ConfiguredWorkload>,
    pub receivers: Vec<Receiver>,
    /// Values that are not printed.
    pub hidden: Vec<Hidden>,
    /// The absolute path of the file; empty for text from elsewhere.
    pub file: PathBuf,
    printed: String,
}

/// Prints an equivalent file without any default, as `allclear check` does. Reading the text again gives the same
/// configuration, except for hidden values.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.printed)
    }
}

/// Reads the configuration; `None` if a required value is missing or wrong, with a mistake in the findings.
pub(super) fn read(document: &Value, reading: Reading<'_>) -> Option<Config> {
    let (config, printed) = reader::read_table(String::new(), document, reading, |table| {
        let replica = table.table_or_empty("replica", cluster::read_replica);
        let cluster = table.table_or_empty("cluster", |table| cluster::read_cluster(table, &replica));
        let metadata = table.table_or_empty("metadata", metadata::read);
        let control_plane = table.table("control_plane", control_plane::read).flatten();
        let status = table.table_or_empty("status", listeners::read_status);
        let operator = table.table_or_empty("operator", listeners::read_operator);
        let registration = table.table_or_empty("workloads", listeners::read_registration);
        let tracing = table.table("tracing", tracing::read).flatten();
        let policy = table.table_or_empty("policy", policy::read);
        let groups = policy::read_groups(table);
        let workloads = workload::read_all(table, groups.as_deref());
        let receivers = notify::read_all(table);
        let cluster = cluster?;
        let policy = Policy { repost_after: cluster.repost_after, ..policy? };
        let (groups, workloads) = (groups?, workloads?);
        let grants = Grants {
            groups: groups.iter().map(|(group, uids)| (group.name.clone(), uids.clone())).collect(),
            trusted: Vec::new(),
            workloads: workloads.iter().map(|it| (it.name.clone(), it.allow_uids.clone())).collect(),
            groups_of: workloads.iter().filter_map(|it| Some((it.name.clone(), it.group.clone()?))).collect(),
        };
        let registration = Registration { grants, ..registration };
        let config = Config {
            replica: replica.into_replica()?,
            cluster,
            metadata,
            control_plane,
            status,
            operator,
            registration,
            tracing,
            policy,
            groups: groups.into_iter().map(|(group, _)| group).collect(),
            workloads,
            receivers: receivers?,
            hidden: Vec::new(),
            file: PathBuf::new(),
            printed: String::new(),
        };
        check_listeners(table, &config);
        Some(config)
    });
    config.map(|config| Config { printed: printed.to_string(), hidden: reading.findings.hidden(), ..config })
}

/// Rejects two listeners on the same port of an address, or of all addresses. Port 0 lets the system choose each time.
fn check_listeners(table: &TomlTable<'_>, config: &Config) {
    let status = config.status.listen;
    let meets = |cluster: &SocketAddr| {
        let meet = cluster.ip() == status.ip() || cluster.ip().is_unspecified() || status.ip().is_unspecified();
        meet && cluster.port() == status.port() && cluster.port() != 0
    };
    if let Some(cluster) = config.cluster.listen.filter(meets) {
        table.mistake(
            &table.place_in("status", "listen"),
            format!("`status.listen` is {status}, the same port as `cluster.listen` ({cluster}): use another port"),
        );
    }
    if config.registration.path() == config.operator.socket {
        table.mistake(
            &table.place_in("operator", "socket"),
            "`operator.socket` and `workloads.socket` are equal: use two paths, because operators and workloads have \
             different rights",
        );
    }
}
