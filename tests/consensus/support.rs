//! A cluster for tests, and a fold that remembers every applied line.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allclear::consensus::{
    self, Consensus, Environment, MAX_VOTERS, NotUnderstood, OpenError, Options, RaftRole, RaftStatus, RaftTiming,
    SNAPSHOT_EVERY, StateMachine,
};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

/// Far beyond the duration of any operation on a loaded machine; only a failing test waits this long.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// The lines applied so far, as readers of a replica see them.
pub(crate) type Lines = Arc<Mutex<Shown>>;

#[derive(Default, Clone)]
pub(crate) struct Shown {
    pub(crate) lines: Vec<String>,
    /// The number of restores from a snapshot.
    pub(crate) restored: usize,
}

/// Applies lines of text. `unknown` is a line understood only by a newer program; `unstamped` is a line that no leader
/// accepts.
#[derive(Default)]
pub(crate) struct Ledger {
    pub(crate) is_newer: bool,
    now: Shown,
    shown: Lines,
}

impl StateMachine for Ledger {
    fn stamp_entry(&self, proposal: &[u8], by: &str) -> Result<Vec<u8>, NotUnderstood> {
        if proposal == b"unstamped" {
            return Err(NotUnderstood("not a line".into()));
        }
        Ok([proposal, b" by ", by.as_bytes()].concat())
    }

    fn understands(&self, entry: &[u8]) -> Result<(), NotUnderstood> {
        let is_unknown = entry.starts_with(b"unknown") && !self.is_newer;
        if is_unknown { Err(NotUnderstood("a kind of line from the future".into())) } else { Ok(()) }
    }

    fn understands_snapshot(&self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        snapshot.split(|byte| *byte == b'\n').try_for_each(|line| self.understands(line))
    }

    fn apply(&mut self, index: u64, entry: &[u8]) -> Result<Vec<u8>, NotUnderstood> {
        self.understands(entry)?;
        self.now.lines.push(String::from_utf8_lossy(entry).into());
        Ok(format!("line {} at {index}", self.now.lines.len()).into())
    }

    fn published(&mut self) {
        *self.shown.lock().unwrap() = self.now.clone();
    }

    fn snapshot(&self) -> Vec<u8> {
        self.now.lines.join("\n").into()
    }

    fn restore(&mut self, snapshot: &[u8]) -> Result<(), NotUnderstood> {
        self.now.restored += 1;
        self.now.lines = String::from_utf8_lossy(snapshot).lines().map(Into::into).collect();
        Ok(())
    }
}

pub(crate) struct Replica {
    pub(crate) consensus: Consensus,
    shown: Lines,
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

impl Replica {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.shown.lock().unwrap().lines.clone()
    }

    pub(crate) fn restored(&self) -> usize {
        self.shown.lock().unwrap().restored
    }

    pub(crate) fn now(&self) -> RaftStatus {
        self.consensus.status().borrow().clone()
    }

    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&RaftStatus) -> bool) -> RaftStatus {
        let mut raft_status = self.consensus.status();
        match timeout(LIMIT, raft_status.wait_for(|now| holds(now))).await {
            Ok(Ok(now)) => now.clone(),
            _ => panic!("waited for: {what}; standing {:?}", self.now()),
        }
    }

    /// Waits until `count` lines are applied on this replica. `RaftStatus` shows the lines a moment later.
    pub(crate) async fn until_lines(&self, count: usize) {
        self.until(&format!("{count} lines"), |_| self.lines().len() >= count).await;
    }

    /// Stops listening and taking part, and frees the data directory.
    pub(crate) async fn stop(self) {
        self.stop.cancel();
        assert!(self.consensus.shutdown().await, "the data directory was not let go");
        self.served.await.unwrap().unwrap();
    }
}

pub(crate) struct Cluster {
    pub(crate) root: TempDir,
    pub(crate) addresses: Vec<(String, String)>,
    pub(crate) snapshot_every: u64,
    pub(crate) timing: RaftTiming,
    pub(crate) max_voters: usize,
    pub(crate) replace_after: Duration,
    pub(crate) rejoin_after: Duration,
    /// Names of the replicas that run a newer program.
    pub(crate) newer: BTreeSet<String>,
    pub(crate) replicas: BTreeMap<String, Replica>,
}

impl Cluster {
    /// A cluster of named replicas with addresses; no replica is started.
    pub(crate) fn planned(names: &[&str]) -> Self {
        let mut addresses = Vec::new();
        for name in names {
            addresses.push(((*name).to_owned(), free_address()));
        }
        Self {
            root: TempDir::new().unwrap(),
            addresses,
            snapshot_every: SNAPSHOT_EVERY,
            timing: patient(),
            max_voters: MAX_VOTERS,
            replace_after: Duration::from_mins(10),
            rejoin_after: Duration::from_mins(1),
            newer: BTreeSet::new(),
            replicas: BTreeMap::new(),
        }
    }

    /// A formed cluster of three replicas.
    pub(crate) async fn formed() -> Self {
        let mut cluster = Self::planned(&["db-0", "db-1", "db-2"]);
        cluster.start_all().await;
        cluster.leader().await;
        cluster
    }

    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn options(&self, name: &str) -> Options {
        Options {
            cluster: "orders".into(),
            replica: name.into(),
            replicas: self.addresses.clone(),
            max_voters: self.max_voters,
            replace_after: self.replace_after,
            rejoin_after: self.rejoin_after,
            data_dir: self.directory(name),
            timing: self.timing.clone(),
            snapshot_every: self.snapshot_every,
            environment: Environment::default(),
            tls: None,
        }
    }

    pub(crate) async fn start(&mut self, name: &str) {
        self.start_with(self.options(name)).await.unwrap();
    }

    pub(crate) async fn start_with(&mut self, options: Options) -> Result<(), OpenError> {
        let name = options.replica.clone();
        let address = self.addresses.iter().find(|(other, _)| *other == name).unwrap().1.clone();
        let (is_newer, shown) = (self.newer.contains(&name), Lines::default());
        // A process that another test starts holds all open files for a moment, the lock of the directory too.
        let began = Instant::now();
        let (consensus, routes) = loop {
            let state_machine = Ledger { is_newer, shown: shown.clone(), ..Ledger::default() };
            match Consensus::open(options.clone(), state_machine).await {
                Err(OpenError::InUse { .. }) if began.elapsed() < LIMIT => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                opened => break opened?,
            }
        };
        let stop = CancellationToken::new();
        let served = tokio::spawn(consensus::serve(bind(&address).await, None, routes, stop.clone()));
        self.replicas.insert(name, Replica { consensus, shown, stop, served });
        Ok(())
    }

    /// Opens the data directory once, without waiting for whoever has it.
    pub(crate) async fn open_once(&self, options: Options) -> Result<(), OpenError> {
        Consensus::open(options, Ledger::default()).await.map(drop)
    }

    pub(crate) async fn start_all(&mut self) {
        for (name, _) in self.addresses.clone() {
            self.start(&name).await;
        }
    }

    pub(crate) async fn stop(&mut self, name: &str) {
        self.replicas.remove(name).unwrap().stop().await;
    }

    pub(crate) async fn stop_all(&mut self) {
        for (name, _) in self.addresses.clone() {
            if self.replicas.contains_key(&name) {
                self.stop(&name).await;
            }
        }
    }

    pub(crate) fn at(&self, name: &str) -> &Replica {
        &self.replicas[name]
    }

    /// The replica that leads with a quorum and is followed by every running replica.
    pub(crate) async fn leader(&self) -> String {
        let started = Instant::now();
        loop {
            let standings: Vec<_> = self.replicas.values().map(Replica::now).collect();
            let leader = standings.iter().find(|now| now.role == RaftRole::Leader && now.quorum);
            if let Some(leader) = leader.and_then(|now| now.leader.clone())
                && standings.iter().all(|now| now.leader.as_ref() == Some(&leader))
            {
                return leader;
            }
            assert!(started.elapsed() < LIMIT, "no leader: {standings:?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    pub(crate) async fn follower(&self) -> String {
        let leader = self.leader().await;
        self.replicas.keys().find(|name| **name != leader).unwrap().clone()
    }

    /// Waits for a condition without a notification.
    pub(crate) async fn until_true(&self, what: &str, holds: impl AsyncFn(&Self) -> bool) {
        let began = Instant::now();
        while !holds(self).await {
            assert!(began.elapsed() < LIMIT, "waited for: {what}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn propose(&self, at: &str, line: &str) -> String {
        let verdict = self.at(at).consensus.propose(line.to_owned()).await.unwrap();
        String::from_utf8(verdict.to_vec()).unwrap()
    }
}

thread_local! {
    /// Sockets held for as long as the test runs.
    static HELD: RefCell<Vec<TcpSocket>> = RefCell::default();
}

/// An address of this test alone, even without a listener. The socket is held without listening: the kernel does not
/// assign the port to a caller asking for any port, and a caller asking for exactly this port may share the port.
pub(crate) fn free_address() -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind((Ipv4Addr::new(127, 0, 0, 3), 0).into()).unwrap();
    let address = socket.local_addr().unwrap().to_string();
    HELD.with_borrow_mut(|held| held.push(socket));
    address
}

/// A loaded machine must neither cost a leader its followers in the middle of a test, nor a proposal its answer: with more
/// time, an entry that was appended is either applied or replaced.
fn patient() -> RaftTiming {
    let election_timeout = (Duration::from_secs(2), Duration::from_secs(4));
    RaftTiming { election_timeout, deadline: LIMIT / 2, ..RaftTiming::default() }
}

/// The address was free a moment ago; a connection being torn down may still hold the address.
async fn bind(address: &str) -> TcpListener {
    let started = Instant::now();
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => assert!(started.elapsed() < LIMIT, "cannot listen on {address}: {error}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}
