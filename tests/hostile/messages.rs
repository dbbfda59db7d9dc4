//! Every method of a replica, called with invented messages: each call is answered or refused in a line, and the
//! replica keeps running, answers the next call, and does not grow. The replica is a process with all its listeners.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use allclear::wire::pb::allclear::cluster::v1::consensus_client::ConsensusClient;
use allclear::wire::pb::allclear::cluster::v1::{self as cluster, GreetRequest, Greeting};
use allclear::wire::pb::allclear::operator::v1 as operator;
use allclear::wire::pb::allclear::raft::v1 as raft;
use prost::Message as _;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};

use crate::hostile::calls::{Door, call, methods};
use crate::hostile::dice::{Dice, rounds};
use crate::hostile::message::{change, parse, write};

const LIMIT: Duration = Duration::from_mins(2);
/// Time to wait for answers of a call that may stay open without end.
const LISTENED: Duration = Duration::from_millis(150);
const LONGEST_REFUSAL: usize = 4_000;
const MOST_MEMORY_KB: usize = 300 << 10;

/// Plain text between replicas, so that every message gets as far as possible.
struct Replica {
    folder: tempfile::TempDir,
    child: Child,
    doors: [Channel; 3],
}

impl Replica {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let free = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (listen, page, nobody) = (free(), free(), free());
        let toml = format!(
            "[replica]\nname = \"db-0\"\ndata_dir = {:?}\n[cluster]\nname = \"tests\"\nlisten = \"{listen}\"\n\
             replicas = {{ db-0 = \"{listen}\" }}\ninsecure = true\n[metadata]\nendpoint = \"http://{nobody}\"\n\
             [status]\nlisten = \"{page}\"\n[operator]\nsocket = {:?}\n[workloads]\nsocket = {:?}\n",
            path("data"),
            path("operator"),
            path("workloads"),
        );
        std::fs::write(path("toml"), toml).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_allclear"))
            .args(["run", "--config"])
            .arg(path("toml"))
            .env("ALLCLEAR_LOG", "error")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(path("log")).unwrap())
            .spawn()
            .unwrap();
        let doors = [
            format!("http://{listen}"),
            format!("unix://{}", path("operator")),
            format!("unix://{}", path("workloads")),
        ];
        let doors = doors.map(|address| Endpoint::from_shared(address).unwrap().connect_lazy());
        Self { folder, child, doors }
    }

    fn door(&self, door: Door) -> Channel {
        self.doors[door as usize].clone()
    }

    /// Waits until the replica answers with its node id.
    async fn node(&self) -> u64 {
        let mut client = ConsensusClient::new(self.door(Door::Cluster));
        let greeting = Greeting { cluster: "tests".into(), ..Greeting::default() };
        loop {
            let answer = client.greet(GreetRequest { greeting: Some(greeting.clone()) }).await;
            if let Ok(answer) = answer
                && let Some(leader) = answer.into_inner().leader
            {
                return leader;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    fn memory_kb(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
        line.trim().strip_suffix(" kB").unwrap().parse().unwrap()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Valid messages, from which all other messages are made.
fn corpus(node: u64) -> Vec<Vec<u8>> {
    let to = || Some(raft::Destination { cluster: "tests".into(), node });
    let vote = Some(raft::Vote { term: 7, node: 9, committed: true });
    let member = raft::Member { node: 9, replica: "db-1".into(), address: "127.0.0.1:1".into(), lineage: 0 };
    let membership = raft::Membership { voters: vec![raft::Voters { nodes: vec![9, node] }], members: vec![member] };
    let id = raft::LogId { term: 7, index: 3 };
    let entry = |payload| raft::Entry { id: Some(id), payload: Some(payload) };
    let entries = vec![
        entry(raft::entry::Payload::Blank(raft::Blank {})),
        entry(raft::entry::Payload::Membership(membership.clone())),
        entry(raft::entry::Payload::Proposed(vec![8, 1].into())),
    ];
    let snapshot = raft::SnapshotHead { last: Some(id), membership_at: Some(id), membership: Some(membership) };
    let head = raft::InstallHead { to: to(), vote, snapshot: Some(snapshot), size: 3 };
    let greeting = Some(Greeting {
        cluster: "tests".into(),
        replica: "db-1".into(),
        node: 9,
        replicas: vec!["db-0".into()],
        signs_off: true,
    });
    let add = cluster::AddMember { replica: "db-1".into(), address: "127.0.0.1:1".into() };
    let change = cluster::change_request::Change::Add(add);
    let by = "db-0".to_owned();
    vec![
        raft::AppendRequest { to: to(), vote, previous: Some(id), entries, committed: Some(id) }.encode_to_vec(),
        raft::VoteRequest { to: to(), vote, last: Some(id), leadership_transfer: true }.encode_to_vec(),
        raft::InstallRequest { part: Some(raft::install_request::Part::Head(head)) }.encode_to_vec(),
        raft::TransferLeaderRequest { to: to(), from: vote, successor: node, last: Some(id) }.encode_to_vec(),
        GreetRequest { greeting }.encode_to_vec(),
        cluster::ProposeRequest { to: to(), by: by.clone(), proposal: vec![8, 1].into(), within_ms: 100 }
            .encode_to_vec(),
        cluster::ConfirmRequest { to: to(), within_ms: 100 }.encode_to_vec(),
        cluster::ChangeRequest { to: to(), by, on_behalf_of: "uid 0".into(), within_ms: 100, change: Some(change) }
            .encode_to_vec(),
        operator::GetEventRequest { id: "e1".into() }.encode_to_vec(),
        Vec::new(),
    ]
}

fn message(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
    let bytes = dice.one(corpus).clone();
    let other = parse(&corpus[dice.below(4)], 0).unwrap();
    let Some(mut fields) = parse(&bytes, 0).filter(|_| !dice.once_in(12)) else { return bytes };
    for _ in 0..dice.below(4) {
        change(dice, &mut fields, &other);
    }
    let mut message = write(&fields);
    if dice.once_in(8) {
        message.truncate(dice.below(message.len() + 1));
    }
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_with_any_message_is_answered_or_refused_and_the_replica_lives() {
    let (methods, mut dice) = (methods(), Dice::of(8));
    let mut replica = Replica::start();
    let mut corpus = corpus(timeout(LIMIT, replica.node()).await.expect("it did not start"));
    let (rounds, mut refused, mut stopped) = (rounds(1_200), 0, 0);
    for round in 0..rounds {
        let (door, path) = dice.one(&methods);
        let messages: Vec<Vec<u8>> = (0..=dice.below(3)).map(|_| message(&mut dice, &corpus)).collect();
        if let Some(status) = call(replica.door(*door), path, messages, LISTENED).await {
            refused += 1;
            let told = status.message();
            let is_fit = told.len() <= LONGEST_REFUSAL && !told.contains("panicked");
            assert!(is_fit, "round {round}, {path}: {status:.3000?}");
        }
        if round % 100 == 99 || replica.child.try_wait().unwrap().is_some() {
            let log = replica.log();
            assert!(!log.contains("panicked"), "round {round}, {path}: {log}");
            assert!(replica.memory_kb() < MOST_MEMORY_KB, "{} kB after round {round}", replica.memory_kb());
        }
        if let Some(status) = replica.child.try_wait().unwrap() {
            // A caller that acts as leader may have the replica apply an unknown entry: the replica reports and stops.
            assert_eq!(status.code(), Some(1), "round {round}, {path}: {}", replica.log());
            stopped += 1;
            replica = Replica::start();
            corpus = self::corpus(timeout(LIMIT, replica.node()).await.expect("it did not start again"));
        }
    }
    println!("{refused} refused, the replica stopped {stopped} times");
    assert!(refused > rounds / 4, "only {refused} were refused");
    let mut client = ConsensusClient::new(replica.door(Door::Cluster));
    let greeting = Greeting { cluster: "tests".into(), ..Greeting::default() };
    client.greet(GreetRequest { greeting: Some(greeting) }).await.expect("it still answers");
}
