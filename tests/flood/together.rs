//! All attacks at once, for the requested time: a hostile program on the leader's machine at every listener, and at the
//! port for replicas a thief with the valid certificate of a removed replica. Meanwhile events are announced, and a
//! held event stays held.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use allclear::net::dial::DialTarget;
use allclear::net::tls::{self, Credentials};
use allclear::wire::pb::allclear::cluster::v1::consensus_client::ConsensusClient;
use allclear::wire::pb::allclear::cluster::v1::{GreetRequest, Greeting};
use allclear::wire::pb::allclear::raft::v1 as raft;
use raft::raft_client::RaftClient;
use serde_json::json;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};

use super::cluster::Cluster;
use super::memory;
use super::pki::{CLUSTER, Pki, address, credentials, refused};
use super::somebody::{Doors, STRANGER, Somebody};
use super::workload::hook;
use crate::machine_share::alone;

/// Duration in seconds; ten minutes by default.
const SECONDS: &str = "ALLCLEAR_TOGETHER";
const THIEVES: usize = 8;
/// Debug builds need more memory.
const MEMORY: u64 = if cfg!(debug_assertions) { 160 << 20 } else { 64 << 20 };

/// The attacks of a thief of this certificate on one replica.
struct Thief {
    shown: Arc<Credentials>,
    name: String,
    address: String,
    node: u64,
    asked: Arc<AtomicU64>,
}

impl Thief {
    fn dial(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).unwrap();
        tls::dial(&endpoint, &self.shown, &self.name, &DialTarget::to(&self.address))
    }

    /// Votes, leads, appends unreadable entries, and greets as a new disk, on one connection after the other.
    async fn goes_on(self) {
        loop {
            let channel = self.dial();
            let (mut client, mut greeter) = (RaftClient::new(channel.clone()), ConsensusClient::new(channel));
            for number in 0..200_u64 {
                let to = Some(raft::Destination { cluster: CLUSTER.into(), node: self.node });
                let (term, node) = (u64::MAX >> (number % 64), number + 1);
                let vote = Some(raft::Vote { term, node, committed: true });
                let entry = raft::Entry {
                    id: Some(raft::LogId { term, index: 1 }),
                    payload: Some(raft::entry::Payload::Proposed(vec![0xff; 64 << 10].into())),
                };
                let ask = raft::VoteRequest { to: to.clone(), vote, last: None, leadership_transfer: true };
                let append = raft::AppendRequest { to, vote, entries: vec![entry], ..Default::default() };
                let greeting = Greeting { cluster: CLUSTER.into(), replica: "db-2".into(), node, ..Default::default() };
                let taken = [
                    client.vote(ask.clone()).await.is_ok(),
                    client.pre_vote(ask).await.is_ok(),
                    client.append(append).await.is_ok(),
                ];
                assert_eq!(taken, [false; 3], "term {term}");
                // The answer may explain how to become a member.
                let _ = greeter.greet(GreetRequest { greeting: Some(greeting) }).await;
                self.asked.fetch_add(4, Ordering::Relaxed);
            }
        }
    }
}

async fn node_of(cluster: &Cluster, place: usize, shown: &Arc<Credentials>) -> u64 {
    let thief = Thief {
        shown: Arc::clone(shown),
        name: format!("db-{place}"),
        address: address(cluster, place),
        node: 0,
        asked: Arc::default(),
    };
    let greeting = Greeting { cluster: CLUSTER.into(), replica: "db-1".into(), ..Default::default() };
    let greeted = ConsensusClient::new(thief.dial()).greet(GreetRequest { greeting: Some(greeting) }).await.unwrap();
    greeted.into_inner().greeting.unwrap().node
}

/// Announces an event for this machine and holds it. A leader whose own machine has an event transfers leadership, so
/// another replica leads afterwards.
async fn held_on(cluster: &Cluster, vm: usize) -> String {
    let says = |arguments: &[&str]| assert_eq!(cluster.says(vm, arguments).0, 0, "{arguments:?}");
    says(&["pause", "--until", "2h", "--reason", "until it is held"]);
    let held = cluster.cloud.announce(json!({ "type": "Reboot", "vm": vm, "notice": "24h" })).await;
    cluster.until_event(vm, &held, "seen", |_| true).await;
    says(&["hold", &held, "--until", "2h", "--reason", "it stays"]);
    says(&["resume", "--reason", "it is held"]);
    cluster.until_true("a leader that no event names", async || cluster.leader(vm).await != vm).await;
    held
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes ten minutes"]
async fn everything_at_once_costs_no_leader_no_approval_and_little_memory() {
    let _alone = alone().await;
    let seconds = std::env::var(SECONDS).ok().map_or(600, |text| text.parse().expect("a number of seconds"));
    let pki = Pki::new();
    let plan = Cluster::of(&["db-0", "db-1", "db-2"])
        .tables(pki.tables(""))
        .also("metadata.poll_interval", "100ms")
        .also("workloads.allow_uids", "[64220]")
        .keeps_its_leader();
    assert_eq!(STRANGER, 64_220);
    let mut cluster = plan.workload("database", vec![hook("drain")]).start().await;
    let (stolen, member) = (credentials(&pki, "db-2"), credentials(&pki, "db-1"));
    cluster.stop(2);
    cluster.until_true("db-2 is removed", async || cluster.says(0, &["member", "remove", "db-2"]).0 == 0).await;
    let other = 0;
    let held = held_on(&cluster, other).await;
    let victim = cluster.leader(0).await;
    let term = cluster.status(victim).await.unwrap().term;

    let asked = Arc::new(AtomicU64::new(0));
    let mut thieves = JoinSet::new();
    for place in [victim, other] {
        let node = node_of(&cluster, place, &member).await;
        for _ in 0..THIEVES {
            let (shown, name, address) = (stolen.clone(), format!("db-{place}"), address(&cluster, place));
            thieves.spawn(Thief { shown, name, address, node, asked: asked.clone() }.goes_on());
        }
    }
    let [operators, workloads] =
        ["operator", "workloads"].map(|door| cluster.configuration(victim).with_extension(door));
    let somebody = Somebody::floods(&Doors {
        operators: &operators,
        workloads: &workloads,
        status: cluster.replicas[victim].page.trim_start_matches("http://"),
        replicas: &address(&cluster, victim),
    });

    let (began, mut approved) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(seconds) {
        let event = cluster.cloud.announce(json!({ "type": "Reboot", "vm": other })).await;
        cluster.until_true("an approval", async || !cluster.cloud.approvals(&event).is_empty()).await;
        cluster.cloud.finish(&event).await;
        cluster.until_stage(other, &event, "closed").await;
        assert_eq!(cluster.cloud.approvals(&event).len(), 1);
        approved += 1;
        if let Some(ended) = thieves.try_join_next() {
            ended.unwrap();
        }
    }
    for place in [victim, other] {
        let log = cluster.log(place);
        log.lines().filter(|line| line.contains("raft state changed")).for_each(|line| println!("db-{place}: {line}"));
    }
    println!("{}", somebody.told());
    println!("{approved} events approved in {:?}", began.elapsed());
    println!("thieves asked {} times", asked.load(Ordering::Relaxed));
    for place in [victim, other] {
        let peak = memory::peak(&cluster, place);
        println!("db-{place}: at the most {:.1} MiB", memory::mib(peak));
        assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
        assert!(refused(&cluster, place, "no_member").await > 0);
    }
    assert!(asked.load(Ordering::Relaxed) > 0 && approved > 0);
    assert!(cluster.cloud.approvals(&held).is_empty(), "the held event was approved");
    let after = cluster.until(victim, "led", |status| status.quorum && status.leader.is_some()).await;
    assert_eq!(after.term, term, "leadership was lost");
}
