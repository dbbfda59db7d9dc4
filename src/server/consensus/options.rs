//! The options of consensus, and bounds that are the same for every replica.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use openraft::{Config, SnapshotPolicy};

use super::environment::Environment;
use super::failure::OpenError;
use crate::net::tls::Credentials;

/// The largest proposal that is taken.
pub const MAX_PROPOSAL_BYTES: usize = 1 << 20;
/// The largest entry: a proposal and what the leader stamps onto it.
pub(super) const MAX_ENTRY_BYTES: usize = MAX_PROPOSAL_BYTES + (64 << 10);
/// The largest message: a batch of entries, the entry that overfilled it, and their framing.
pub(super) const MAX_MESSAGE_BYTES: usize = 4 << 20;
/// The largest snapshot that is sent or taken in. `core::model::bytes` bounds what is in the state: at most 16 MiB of documents,
/// as much of open events, and half of that of closed ones, beside what is registered and recorded.
pub(super) const MAX_SNAPSHOT_BYTES: usize = 64 << 20;
/// A log that takes more on the disk is folded into a snapshot, however few entries it has.
pub(super) const MAX_LOG_BYTES: usize = 16 << 20;
/// So much of it is kept then for replicas that lag a little.
pub(super) const KEPT_LOG_BYTES: usize = 8 << 20;
/// More voters only make every decision slower; further replicas are learners.
pub const MAX_VOTERS: usize = 7;
/// So many entries are folded into a snapshot, unless somebody opens a replica with fewer.
pub const SNAPSHOT_EVERY: u64 = 1000;
/// As many machines as a placement group holds.
pub const MAX_REPLICAS: usize = 100;

/// How fast a lost leader is noticed, and how long callers wait.
#[derive(Debug, Clone)]
pub struct RaftTiming {
    pub heartbeat: Duration,
    /// The longer one is also the leader's lease.
    pub election_timeout: (Duration, Duration),
    /// Of one `propose` or `confirm`.
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

/// What a replica is opened with.
#[derive(Debug, Clone)]
pub struct Options {
    pub cluster: String,
    /// This replica's name.
    pub replica: String,
    /// Name and address of every replica, this one too, in the order of the configuration.
    pub replicas: Vec<(String, String)>,
    /// The first so many of the list form the cluster, and no more vote in it; from 1 to `MAX_VOTERS`.
    pub max_voters: usize,
    /// A voter that is gone for this long is replaced by a learner that is up to date.
    pub replace_after: Duration,
    /// A voter that is out of contact for this long gives its vote to a new disk under its name. By then the others know
    /// that it may have acted alone.
    pub rejoin_after: Duration,
    pub data_dir: PathBuf,
    pub timing: RaftTiming,
    /// So many entries are folded into a snapshot, and half as many are kept for replicas that lag a little.
    pub snapshot_every: u64,
    pub environment: Environment,
    /// Whom the others are, and what they take this replica for; without them everything goes as plain text.
    pub tls: Option<Arc<Credentials>>,
}

impl Options {
    pub(super) fn check(&self) -> Result<(), OpenError> {
        let names: BTreeSet<&str> = self.replicas.iter().map(|(name, _)| name.as_str()).collect();
        let mistake = if !names.contains(self.replica.as_str()) {
            format!("replica {:?} is not in the list of replicas; add it with its address", self.replica)
        } else if names.len() != self.replicas.len() {
            "a replica is listed twice; every name once".into()
        } else if names.len() > MAX_REPLICAS {
            format!("{} replicas are listed; a cluster has at most {MAX_REPLICAS}", names.len())
        } else if !(1..=MAX_VOTERS).contains(&self.max_voters) {
            format!("{} replicas are to vote; from 1 to {MAX_VOTERS} can", self.max_voters)
        } else {
            return Ok(());
        };
        Err(OpenError::Options(mistake))
    }

    /// Whether this replica greets that one until it is formed: who is to form the cluster needs everybody's word, and the
    /// others hear from those who are to vote whether there is one. Connections of everybody to everybody would cost more
    /// than all the rest where there are many.
    pub(super) fn greets(&self, name: &str) -> bool {
        let is_first = self.replicas.first().is_some_and(|(first, _)| *first == self.replica);
        is_first || self.founders().any(|founder| founder == name)
    }

    pub(super) fn address_of(&self, replica: &str) -> Option<&str> {
        self.replicas.iter().find(|(name, _)| name == replica).map(|(_, address)| address.as_str())
    }

    /// Those who form the cluster, by name.
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
            // A restart shows as a new term, and starts from what a quorum knows.
            enable_leader_restore: Some(false),
            install_snapshot_timeout: 30_000,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(self.snapshot_every),
            max_in_snapshot_log_to_keep: self.snapshot_every / 2,
            // Whoever lags further gets a snapshot, so one must exist by then.
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
