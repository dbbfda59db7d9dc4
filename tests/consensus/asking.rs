//! Replicas without a leader ask their peers whether any peer has a leader.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use allclear::consensus::{self, Consensus, Environment, Options};
use allclear::core::model::document::Document;
use allclear::core::model::id::VmName;
use allclear::core::model::isolation::ImdsHealth;
use allclear::core::model::isolation::{IsolatedView, PeerAnswer};
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::version::VERSION;
use allclear::core::observation::Patience;
use allclear::core::ownership::Grants;
use allclear::core::planning_input::Timing;
use allclear::core::policy::Policy;
use allclear::fake_cloud;
use allclear::grpc;
use allclear::imds::poll_schedule::PollSchedule;
use allclear::imds::{ApiVersion, Endpoint, Timeouts};
use allclear::replica::SharedParts;
use allclear::replica::clock::ClusterClock;
use allclear::replica::cluster::{ClusterHandle, NodeFacts};
use allclear::replica::journal::ApprovalJournal;
use allclear::replica::metrics::Metrics;
use allclear::replica::poller::ImdsPoller;
use allclear::replica::state_machine::CoreStateMachine;
use allclear::replica::view::View;
use allclear::wire::pb::allclear::cluster::v1 as wire;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use wire::contact_client::ContactClient;

use crate::consensus::support::{Cluster, LIMIT};
use crate::consensus::wire::Wire;

/// A replica limited to consensus, status reports and peer queries. Its metadata endpoint has answered once.
struct Asking {
    shared: SharedParts,
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

impl Asking {
    async fn start(options: Options, address: &str) -> Self {
        let name = VmName::new(&options.replica);
        let members = options.replicas.iter().map(|(name, _)| VmName::new(name)).collect();
        let time = Arc::new(ClusterClock::default());
        let journal = ApprovalJournal::open(&options.data_dir, Environment::default()).unwrap();
        let (state_machine, committed) = CoreStateMachine::new(time.clone(), VERSION);
        let cluster = options.cluster.clone();
        let (consensus, routes) = Consensus::open(options, state_machine).await.unwrap();
        let node = NodeFacts {
            name: name.clone(),
            cluster,
            configured: members,
            policy: Policy::default(),
            fingerprint: String::new(),
            timing: Timing::default(),
            grants: Grants { trusted: vec![0], ..Grants::default() },
            endpoint: None,
            doctor: String::new(),
        };
        let metrics = Arc::new(Metrics::new().unwrap());
        let shared = SharedParts::new(ClusterHandle { node, consensus, committed, time }, journal, metrics, VERSION);
        let inputs = &shared.inputs;
        let observer = Arc::new(observer(name.as_str()).await);
        let stop = CancellationToken::new();
        let routes = routes.add_service(grpc::contact_service(inputs.clone(), observer.clone()));
        let listener = TcpListener::bind(address).await.unwrap();
        let mut tasks = JoinSet::new();
        let serving = consensus::serve(listener, None, routes, stop.clone());
        tasks.spawn(async move { serving.await.unwrap() });
        tasks.spawn(grpc::report_status(inputs.clone(), observer, shared.watchdog.clone(), stop.clone()));
        Self { shared, stop, tasks }
    }

    async fn stop(self) {
        self.stop.cancel();
        self.tasks.join_all().await;
        assert!(self.shared.inputs.cluster.consensus.shutdown().await, "the data directory was not let go");
    }

    async fn until_peers(&self, what: &str, holds: impl Fn(&BTreeMap<VmName, PeerAnswer>) -> bool) {
        let began = Instant::now();
        while !holds(&self.shared.inputs.peers.recent_answers()) {
            let peers = self.shared.inputs.peers.recent_answers();
            assert!(began.elapsed() < LIMIT, "{}: {what}; peers {peers:?}", self.shared.inputs.cluster.node.name);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn leader(&self) -> Option<String> {
        let status = self.shared.inputs.cluster.consensus.status_now();
        status.leader.filter(|_| status.quorum)
    }
}

async fn observer(vm: &str) -> ImdsPoller {
    let cloud = fake_cloud::serve(fake_cloud::Options::new([vm])).await.unwrap();
    let endpoint = Endpoint::new(&cloud.endpoint(vm).unwrap(), ApiVersion::newest(), Timeouts::default());
    let pace = PollSchedule::new(Duration::from_secs(1));
    let observer = ImdsPoller::new(
        Arc::new(endpoint.unwrap()),
        pace,
        Patience::default(),
        LIMIT * 4,
        Arc::new(Metrics::new().unwrap()),
    );
    observer.fetch_now(&State::default()).await.unwrap();
    observer
}

/// The leader followed by all replicas.
async fn leader(replicas: &BTreeMap<String, Asking>) -> String {
    let began = Instant::now();
    loop {
        let mut leaders: Vec<_> = replicas.values().map(Asking::leader).collect();
        leaders.dedup();
        if let [Some(leader)] = leaders.as_slice() {
            return leader.clone();
        }
        assert!(began.elapsed() < LIMIT, "no leader: {leaders:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn start(cluster: &Cluster, names: &[&str]) -> BTreeMap<String, Asking> {
    let mut replicas = BTreeMap::new();
    for name in names {
        let address = &cluster.addresses.iter().find(|(other, _)| other == name).unwrap().1;
        replicas.insert((*name).to_owned(), Asking::start(cluster.options(name), address).await);
    }
    replicas
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_without_a_leader_know_each_other_until_there_is_one() {
    let names = ["db-0", "db-1", "db-2", "db-3"];
    let cluster = Cluster::planned(&names);
    let mut replicas = start(&cluster, &names).await;
    let led_by = leader(&replicas).await;
    for replica in replicas.values() {
        // There was no leader before the first election.
        replica.until_peers("nobody is asked while a leader is heard", BTreeMap::is_empty).await;
    }
    // Both stop at once, so no leader is elected in between.
    let gone = names.into_iter().find(|name| *name != led_by).unwrap();
    let (leader_gone, other_gone) = (replicas.remove(&led_by).unwrap(), replicas.remove(gone).unwrap());
    tokio::join!(leader_gone.stop(), other_gone.stop());
    let alone = PeerAnswer { leader: None, channel: ImdsHealth::Healthy };
    for name in replicas.keys() {
        let other = replicas.keys().find(|other| *other != name).unwrap();
        let expected = BTreeMap::from([(VmName::new(other), alone.clone())]);
        replicas[name].until_peers("only the other answers", |peers| *peers == expected).await;
    }
    replicas.extend(start(&cluster, &[gone]).await);
    leader(&replicas).await;
    for replica in replicas.values() {
        replica.until_peers("nobody is asked any more", BTreeMap::is_empty).await;
    }
    for replica in replicas.into_values() {
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_replica_saw_alone_counts_as_long_as_it_hears_no_leader() {
    let names = ["db-0", "db-1", "db-2"];
    let cluster = Cluster::planned(&names);
    let mut replicas = start(&cluster, &names).await;
    let led_by = leader(&replicas).await;
    let seen = IsolatedView {
        since: Timestamp(0),
        voters: Vec::new(),
        reached: BTreeMap::new(),
        document: Some(Document::default()),
        seen_since: BTreeMap::new(),
        log_time: Timestamp(0),
        tail: Vec::new(),
        readiness: BTreeMap::new(),
        journal: Vec::new(),
    };
    for Asking { shared, .. } in replicas.values() {
        // The isolation check runs at intervals, and an election ends sooner.
        shared.inputs.isolated.send_replace(Some(seen.clone()));
        assert_eq!(shared.inputs.planning_input().isolated, None);
        let committed = shared.inputs.cluster.state();
        assert!(Arc::ptr_eq(&View::new(shared).state(), &committed), "it tells what the log says");
    }
    let kept = replicas.remove(names.into_iter().find(|name| *name != led_by).unwrap()).unwrap();
    for replica in replicas.into_values() {
        replica.stop().await;
    }
    let mut raft_status = kept.shared.inputs.cluster.consensus.status();
    tokio::time::timeout(LIMIT, raft_status.wait_for(|raft_status| !raft_status.quorum)).await.unwrap().unwrap();
    assert_eq!(kept.shared.inputs.planning_input().isolated, Some(seen));
    kept.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_lost_its_quorum_is_nobodys_leader_to_itself() {
    let names = ["db-0", "db-1", "db-2", "db-3"];
    let cluster = Cluster::planned(&names);
    let mut replicas = start(&cluster, &names).await;
    let led_by = leader(&replicas).await;
    let kept = names.into_iter().find(|name| *name != led_by).unwrap();
    let gone = names.into_iter().filter(|name| ![led_by.as_str(), kept].contains(name));
    for name in gone {
        replicas.remove(name).unwrap().stop().await;
    }
    let expected = BTreeMap::from([(VmName::new(kept), PeerAnswer { leader: None, channel: ImdsHealth::Healthy })]);
    replicas[&led_by].until_peers("the one that is left hears only this one", |peers| *peers == expected).await;
    for replica in replicas.into_values() {
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_is_cut_off_from_the_leader_learns_of_it_from_another() {
    let cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    let addresses: Vec<_> = cluster.addresses.iter().map(|(_, address)| address.clone()).collect();
    let (mut wires, mut replicas) = (BTreeMap::new(), BTreeMap::new());
    for from in 0..3 {
        let name = format!("db-{from}");
        let mut options = cluster.options(&name);
        for to in (0..3).filter(|to| *to != from) {
            let wire = Wire::to(addresses[to].clone()).await;
            options.replicas[to].1.clone_from(&wire.address);
            wires.insert((name.clone(), format!("db-{to}")), wire);
        }
        replicas.insert(name, Asking::start(options, &addresses[from]).await);
    }
    let led_by = leader(&replicas).await;
    let cut = replicas.keys().find(|name| **name != led_by).unwrap();
    let between = replicas.keys().find(|name| **name != led_by && *name != cut).unwrap();
    wires[&(led_by.clone(), cut.clone())].block();
    wires[&(cut.clone(), led_by.clone())].block();
    let expected = BTreeMap::from([(
        VmName::new(between),
        PeerAnswer { leader: Some(led_by.clone()), channel: ImdsHealth::Healthy },
    )]);
    replicas[cut].until_peers("the one between hears the leader", |peers| *peers == expected).await;
    for replica in replicas.into_values() {
        replica.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_members_of_the_cluster_are_answered() {
    let cluster = Cluster::planned(&["db-0"]);
    let mut replicas = start(&cluster, &["db-0"]).await;
    let led_by = leader(&replicas).await;
    let mut client = ContactClient::new(replicas["db-0"].shared.inputs.cluster.consensus.channel("db-0").unwrap());
    let question = |cluster: &str, replica: &str| wire::AskRequest { cluster: cluster.into(), replica: replica.into() };
    let answer = client.ask(question("orders", "DB-0")).await.unwrap().into_inner();
    assert_eq!(answer.leader, Some(led_by));
    assert_eq!(answer.channel.unwrap().word, "healthy");
    for (cluster, replica) in [("payments", "db-0"), ("orders", "db-9"), ("", "")] {
        let refused = client.ask(question(cluster, replica)).await.unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{cluster} {replica}");
    }
    replicas.remove("db-0").unwrap().stop().await;
}
