//! The options of consensus, and bounds common to all replicas.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use super::environment::Environment;
use super::failure::OpenError;
use crate::net::tls::Credentials;

/// The largest accepted proposal.
pub const MAX_PROPOSAL_BYTES: usize = 1 << 20;
/// The largest entry: a proposal and the leader's stamp.
pub(super) const MAX_ENTRY_BYTES: usize = MAX_PROPOSAL_BYTES + (64 << 10);
/// The largest message: a batch of entries, the entry that overfilled the batch, and the framing.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The largest snapshot sent or accepted. `core::model::bytes` bounds the state: at most 16 MiB of documents, as much
/// of open events, and half as much of closed events, beside registrations and records.
pub(super) const MAX_SNAPSHOT_BYTES: usize = 64 << 20;
/// A log with more bytes on the disk is replaced by a snapshot, regardless of the number of entries.
pub(super) const MAX_LOG_BYTES: usize = 16 << 20;
/// The bytes of log kept then for replicas with a small lag.
pub(super) const KEPT_LOG_BYTES: usize = 8 << 20;
/// More voters only make every decision slower; further replicas are learners.
pub const MAX_VOTERS: usize = 7;
/// The number of entries per snapshot, unless a replica is opened with fewer.
pub const SNAPSHOT_EVERY: u64 = 1000;
/// As many machines as a placement group holds.
pub const MAX_REPLICAS: usize = 100;

/// The timing: detection of a lost leader, and waiting of callers.
#[derive(Debug, Clone)]
pub struct RaftTiming {
    pub heartbeat: Duration,
    /// Minimum and maximum; the maximum is also the leader's lease.
    pub election_timeout: (Duration, Duration),
    /// The deadline of one `propose` or `ensure_linearizable`.
    pub deadline: Duration,
}

impl Default for RaftTiming {
    fn default() -> Self {
        Self {
            heartbeat: Duration::from_millis(250),
            election_timeout: (Duration::from_millis(375), Duration::from_millis(750)),
            deadline: Duration::from_secs(5),
        }
    }
}

/// The options of a replica.
#[derive(Debug, Clone)]
pub struct Options {
    pub cluster: String,
    /// This replica's name.
    pub replica: String,
    /// Name and address of every replica, this one too, in the order of the configuration.
    pub replicas: Vec<(String, String)>,
    /// The number of replicas, from the start of the list, that form the cluster; at most so many vote; from 1 to
    /// `MAX_VOTERS`.
    pub max_voters: usize,
    /// A voter gone for this long is replaced by an up-to-date learner.
    pub replace_after: Duration,
    /// A voter out of contact for this long loses its vote to a new disk under its name. By then the other replicas
    /// know of possible isolated approvals of the voter.
    pub rejoin_after: Duration,
    pub data_dir: PathBuf,
    pub timing: RaftTiming,
    /// The number of entries per snapshot; half as many are kept for replicas with a small lag.
    pub snapshot_every: u64,
    pub environment: Environment,
    /// The identities of this replica and of the others; `None` means plain text.
    pub tls: Option<Arc<Credentials>>,
}

impl Options {
    pub(super) fn check(&self) -> Result<(), OpenError> {
        let names: BTreeSet<&str> = self.replicas.iter().map(|(name, _)| name.as_str()).collect();
        let mistake = if !names.contains(self.replica.as_str()) {
            format!("replica {:?} is not in the list of replicas; add the replica with its address", self.replica)
        } else if names.len() != self.replicas.len() {
            "a replica is listed twice; list every name once".into()
        } else if names.len() > MAX_REPLICAS {
            format!("{} replicas are listed; the limit of a cluster is {MAX_REPLICAS}", names.len())
        } else if !(1..=MAX_VOTERS).contains(&self.max_voters) {
            format!("the number of voters is {}; the range is 1 to {MAX_VOTERS}", self.max_voters)
        } else {
            return Ok(());
        };
        Err(OpenError::Options(mistake))
    }

    /// Whether this replica sends hello to `name` until this replica is formed: the replica that forms the cluster
    /// needs all answers, and the other replicas learn from the founders whether a cluster exists. In a large cluster,
    /// connections of all to all would cost more than everything else.
    pub(super) fn greets(&self, name: &str) -> bool {
        let is_first = self.replicas.first().is_some_and(|(first, _)| *first == self.replica);
        is_first || self.founders().any(|founder| founder == name)
    }

    pub(super) fn address_of(&self, replica: &str) -> Option<&str> {
        self.replicas.iter().find(|(name, _)| name == replica).map(|(_, address)| address.as_str())
    }

    /// The names of the replicas that form the cluster.
    pub(super) fn founders(&self) -> impl Iterator<Item = &str> {
        self.replicas.iter().take(self.max_voters).map(|(name, _)| name.as_str())
    }

    pub(super) fn raft(&self) -> Result<Arc<Config>, OpenError> {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let config = Config {
            cluster_name: self.cluster.clone(),
            heartbeat_interval: millis(self.timing.heartbeat),
            election_timeout_min: millis(self.timing.election_timeout.0),
            election_timeout_max: millis(self.timing.election_timeout.1),
            enable_pre_vote: Some(true),
            // A restart is visible as a new term, and starts from the knowledge of a quorum.
            enable_leader_restore: Some(false),
            install_snapshot_timeout: 30_000,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_every),
            max_in_snapshot_log_to_keep: self.snapshot_every / 2,
            // A replica with a larger lag receives a snapshot, so a snapshot must exist by then.
            replication_lag_threshold: self.snapshot_every.saturating_mul(5),
            backoff: "50ms 100ms 200ms ...500ms".into(),
            ..Config::default()
        };
        config.validate().map(Arc::new).map_err(|error| OpenError::Options(format!("cluster timing: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(names: &[&str]) -> Options {
        Options {
            cluster: "orders".into(),
            replica: "a".into(),
            replicas: names.iter().map(|name| ((*name).into(), "127.0.0.1:1".into())).collect(),
            max_voters: MAX_VOTERS,
            replace_after: Duration::from_mins(10),
            rejoin_after: Duration::from_mins(1),
            data_dir: PathBuf::new(),
            timing: RaftTiming::default(),
            snapshot_every: SNAPSHOT_EVERY,
            environment: Environment::default(),
            tls: None,
        }
    }

    #[test]
    fn only_who_forms_the_cluster_greets_those_who_will_not_vote() {
        let names = ["a", "b", "c", "d"];
        let of = |replica: &str| {
            let options = Options { replica: replica.into(), max_voters: 2, ..options(&names) };
            names.into_iter().filter(|name| *name != replica && options.greets(name)).collect::<String>()
        };
        assert_eq!(names.map(of), ["bcd", "a", "ab", "ab"]);
    }

    #[test]
    fn a_list_without_this_replica_or_with_a_name_twice_is_refused() {
        assert!(options(&["a", "b"]).check().is_ok());
        assert!(options(&["b", "c"]).check().is_err());
        assert!(options(&["a", "b", "b"]).check().is_err());
    }

    #[test]
    fn more_replicas_than_a_cluster_has_and_more_voters_than_can_be_are_refused() {
        let names: Vec<String> = (0..101).map(|number| format!("r{number}")).collect();
        let mut all: Vec<&str> = ["a"].into_iter().chain(names.iter().map(String::as_str)).collect();
        all.truncate(100);
        assert!(options(&all).check().is_ok());
        all.push("one-more");
        assert!(options(&all).check().is_err());
        for voters in [0, 8] {
            assert!(Options { max_voters: voters, ..options(&["a"]) }.check().is_err());
        }
    }

    #[test]
    fn election_timeouts_below_the_heartbeat_are_refused() {
        let mut wrong = options(&["a"]);
        assert!(wrong.raft().is_ok());
        wrong.timing.election_timeout = (Duration::from_millis(50), Duration::from_millis(90));
        assert!(wrong.raft().is_err());
    }
}
