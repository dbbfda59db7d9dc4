//! `[replica]` and `[cluster]`: the name of this replica, and its cluster.

use core::net::SocketAddr;
use core::time::Duration;
use std::path::PathBuf;

use super::reader::{Located, TomlTable};
use super::scalar;
use super::tls::{self, Tls};
use allclear_core::model::id::VmName;

/// The size of a placement group (`SPEC.md` 10.1).
const MAX_REPLICAS: usize = 100;
/// More voters only make every decision slower.
const MAX_VOTERS: u32 = 7;
const HOUR: Duration = Duration::from_hours(1);

/// The identity of this replica.
#[derive(Clone, PartialEq, Debug)]
pub struct ReplicaConfig {
    /// The VM's name as events list it; `None`: the name of the instance metadata.
    pub name: Option<VmName>,
    pub data_dir: PathBuf,
}

/// The cluster of this replica, and its time limits.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterConfig {
    /// Equal on every replica; a replica of another cluster is rejected.
    pub name: String,
    /// Absent only in a cluster of one, which then opens no port for other replicas.
    pub listen: Option<SocketAddr>,
    /// In the order of the configuration, which is the order of candidates. Empty: a cluster of one.
    pub replicas: Vec<PeerAddress>,
    /// Hooks of a user-initiated event's VM are waived after the VM was unreachable for this long. A replica of a pair
    /// that has had no leader for this long may approve such an event alone.
    pub takeover_after: Duration,
    pub heartbeat: Duration,
    /// The shortest election timeout; the longest is twice this value.
    pub election_timeout: Duration,
    /// An approver without a recorded outcome within this time loses the claim to the next.
    pub claim_lease: Duration,
    /// The first pause before an approval is posted again, after the platform accepted the approval without an effect.
    pub repost_after: Duration,
    /// From 1 to 7; further replicas follow as learners.
    pub max_voters: usize,
    /// A voter is replaced by a learner after this absence.
    pub replace_after: Duration,
    /// Replicas use plain text: any host with access to `listen` can impersonate a replica.
    pub insecure: bool,
    /// Absent with `insecure`, and in a cluster of one without `listen`.
    pub tls: Option<Tls>,
}

/// A replica with its address for other replicas.
#[derive(Clone, PartialEq, Debug)]
pub struct PeerAddress {
    pub name: VmName,
    /// `host:port`; the host may be a DNS name.
    pub address: String,
}

/// The values of `[replica]`, possibly incomplete: `[cluster]` is checked against the name.
pub(super) struct OwnConfig {
    name: Option<Located<VmName>>,
    data_dir: Option<PathBuf>,
}

impl OwnConfig {
    pub(super) fn into_replica(self) -> Option<ReplicaConfig> {
        Some(ReplicaConfig { name: self.name.map(|name| name.value), data_dir: self.data_dir? })
    }
}

pub(super) fn read_replica(table: &mut TomlTable<'_>) -> OwnConfig {
    let name = table.found("name", scalar::name);
    let why = "the directory for data that must survive a restart, as \"/var/lib/allclear\"";
    OwnConfig {
        name: name.map(|name| Located { value: VmName::new(&name.value), place: name.place }),
        data_dir: table.required("data_dir", scalar::path, why).map(|found| found.value),
    }
}

pub(super) fn read_cluster(table: &mut TomlTable<'_>, own: &OwnConfig) -> Option<ClusterConfig> {
    let name = read_name(table);
    let peers = read_peers(table, own);
    let listen = read_listen(table, own, peers.as_deref());
    let span = |from: u64, to: Duration| scalar::duration(Duration::from_millis(from)..=to);
    let minute = Duration::from_mins(1);
    let takeover_after = table.or("takeover_after", span(1_000, HOUR), Duration::from_secs(10));
    let heartbeat = table.optional("heartbeat", span(10, minute));
    let election_timeout = table.or("election_timeout", span(30, minute), Duration::from_millis(375));
    let most = Duration::from_millis(250).min(shortened(election_timeout));
    let heartbeat = heartbeat.unwrap_or_else(|| table.default("heartbeat", most));
    let claim_lease = table.or("claim_lease", span(100, minute), Duration::from_secs(5));
    let repost_after = table.or("repost_after", span(1_000, HOUR), minute);
    let max_voters = table.or("max_voters", scalar::number(1..=MAX_VOTERS), MAX_VOTERS);
    let replace_after = table.or("replace_after", span(1_000, 168 * HOUR), 10 * minute);
    let insecure = table.or("insecure", scalar::boolean, false);

    check_patience(table, heartbeat, election_timeout, takeover_after);
    let (has_tls, tls) = (table.has("tls"), table.table("tls", tls::read));
    check_secrecy(table, insecure);
    Some(ClusterConfig {
        name: name?,
        listen,
        replicas: peers?,
        takeover_after,
        heartbeat,
        election_timeout,
        claim_lease,
        repost_after,
        max_voters: usize::try_from(max_voters).unwrap_or(usize::MAX),
        replace_after,
        insecure,
        tls: match tls {
            Some(read) => Some(read?),
            None if has_tls => return None,
            None => None,
        },
    })
}

/// Reads the cluster's name; a cluster of one needs no name of its own.
fn read_name(table: &mut TomlTable<'_>) -> Option<String> {
    if table.has("replicas") {
        let name = table.required("name", scalar::name, "replicas refuse replicas of a cluster with another name");
        return Some(name?.value);
    }
    Some(table.or("name", scalar::name, "allclear".to_owned()))
}

/// Reads `listen`. The default is the replica's own address if the configuration contains an IP address, and none for a
/// cluster of one.
fn read_listen(table: &mut TomlTable<'_>, own: &OwnConfig, peers: Option<&[PeerAddress]>) -> Option<SocketAddr> {
    let written = table.optional("listen", scalar::listen);
    if table.has("listen") {
        return written;
    }
    // mistakes in the replicas are reported already
    let peers = peers?;
    if peers.is_empty() {
        return None;
    }
    let is_own = |peer: &&PeerAddress| own.name.as_ref().is_some_and(|name| name.value == peer.name);
    let told = peers.iter().find(is_own).and_then(|peer| peer.address.parse().ok());
    if told.is_none() {
        let message = "`cluster.listen` is missing: without an address, the other replicas cannot reach this replica";
        table.mistake(&table.place_of("listen"), message);
    }
    told.map(|told| table.default("listen", told))
}

fn read_peers(table: &mut TomlTable<'_>, own: &OwnConfig) -> Option<Vec<PeerAddress>> {
    let entries = table.entries("replicas", scalar::address).unwrap_or_default();
    if table.is_empty("replicas") {
        let message = "`cluster.replicas` is empty: leave the key out for a cluster of one";
        table.mistake(&table.place_of("replicas"), message);
    }
    if entries.len() > MAX_REPLICAS {
        let message = format!(
            "`cluster.replicas` names {} replicas: a cluster has at most {MAX_REPLICAS}; make several clusters",
            entries.len()
        );
        table.mistake(&table.place_of("replicas"), message);
    }
    let names: Vec<_> = entries.iter().map(|(name, _)| VmName::new(&name.value)).collect();
    for (at, (name, address)) in entries.iter().enumerate() {
        if let Some(other) = names[..at].iter().position(|other| *other == names[at]) {
            let message = format!("the replica {} is listed twice, the second time as {}", names[at], names[other]);
            table.mistake(
                &name.place,
                format!("{message}: upper and lower case count as equal, and one leading underscore is ignored"),
            );
        } else if let Some(other) = entries[..at].iter().position(|(_, other)| other == address && other.is_some()) {
            let message =
                format!("{} has the address of {}: every replica needs its own address", names[at], names[other]);
            table.mistake(&name.place, message);
        }
    }
    if let Some(own) = own.name.as_ref().filter(|own| !names.is_empty() && !names.contains(&own.value)) {
        let names: Vec<_> = names.iter().map(VmName::as_str).collect();
        let message = format!(
            "`replica.name` is {}, and `cluster.replicas` does not list this name: {}",
            own.value,
            names.join(", ")
        );
        table.mistake(&own.place, message);
    }
    entries
        .into_iter()
        .map(|(name, address)| Some(PeerAddress { name: VmName::new(&name.value), address: address? }))
        .collect()
}

/// Two thirds of the timeout, in whole milliseconds.
fn shortened(election_timeout: Duration) -> Duration {
    Duration::from_millis(u64::try_from(election_timeout.as_millis() * 2 / 3).unwrap_or(u64::MAX))
}

/// Checks the order of the timeouts: heartbeats must fail before an election, and elections before an isolated
/// approval.
fn check_patience(table: &TomlTable<'_>, heartbeat: Duration, election_timeout: Duration, takeover_after: Duration) {
    let shown = humantime::format_duration;
    // a lease is twice the election timeout
    if 2 * election_timeout < 3 * heartbeat {
        let message = format!(
            "`cluster.election_timeout` is {}, less than 1.5 times `cluster.heartbeat` ({}): one lost heartbeat and \
             one late heartbeat would end the leadership",
            shown(election_timeout),
            shown(heartbeat)
        );
        table.mistake(&table.place_of("election_timeout"), message);
    }
    // the longest election timeout twice: the vote may have to be repeated
    if takeover_after < 4 * election_timeout {
        let message = format!(
            "`cluster.takeover_after` is {}, less than 4 times `cluster.election_timeout` ({}): a quorum needs that \
             long to elect a leader",
            shown(takeover_after),
            shown(election_timeout)
        );
        table.mistake(&table.place_of("takeover_after"), message);
    }
}

/// Rejects plain text without an explicit key, or beside certificates. A cluster of one without a listener needs
/// neither key.
fn check_secrecy(table: &TomlTable<'_>, insecure: bool) {
    if table.has("tls") && insecure {
        let message = "`cluster.insecure` is true and `cluster.tls` is set: replicas use either TLS or plain text; \
                       remove one";
        table.mistake(&table.place_of("insecure"), message);
    }
    let Some(reached) = ["replicas", "listen"].into_iter().find(|key| table.has(key)) else { return };
    if !table.has("tls") && !insecure {
        let message = format!(
            "`cluster.{reached}` needs `[cluster.tls]`, the certificates that identify the replicas, also for \
             replicas on one machine: make certificates with `allclear certs`. The alternative `cluster.insecure = \
             true` is plain text: every program that reaches `cluster.listen` can act as any replica"
        );
        table.mistake(&table.place_of(reached), message);
    }
}
