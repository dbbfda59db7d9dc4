//! Faults on which a replica must stop, and faults on which a replica must continue.

use allclear::consensus::{OpenError, RaftRole, RaftStatus, RequestError, SurvivingReplica};
use allclear::wire::pb::allclear::raft::v1 as pb;
use pb::raft_client::RaftClient;
use tonic::Code;

use crate::consensus::support::{Cluster, Ledger};

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_takes_no_proposal_that_its_program_could_not_apply() {
    let mut cluster = Cluster::formed().await;
    let leader = cluster.leader().await;
    for at in ["db-0", "db-1", "db-2"] {
        let refused = cluster.at(at).consensus.propose("unknown").await.unwrap_err();
        assert!(matches!(&refused, RequestError::Refused(why) if why.contains("from the future")), "{refused}");
    }
    cluster.propose(&leader, "known").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_with_an_older_program_takes_no_entry_that_it_cannot_read_and_goes_on_when_it_is_upgraded() {
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    cluster.newer = ["db-0".to_owned(), "db-1".to_owned()].into();
    cluster.start_all().await;
    if cluster.leader().await == "db-2" {
        let asked = cluster.at("db-0").consensus.on_behalf_of("a test");
        asked.transfer_leadership(Some("db-0")).await.unwrap();
    }
    cluster.propose("db-0", "known").await;
    cluster.at("db-2").until_lines(1).await;
    cluster.propose("db-0", "unknown").await;
    cluster.propose("db-0", "after").await;
    let says_so =
        |now: &RaftStatus| matches!(&now.role, RaftRole::Outside(why) if why.contains("this replica cannot read"));
    cluster.at("db-2").until("says that it cannot follow", says_so).await;
    assert_eq!(cluster.at("db-2").lines().len(), 1);
    cluster.stop("db-2").await;
    cluster.newer.insert("db-2".into());
    cluster.start("db-2").await;
    cluster.at("db-2").until_lines(3).await;
    cluster.stop_all().await;
}

/// A cluster of one replica, on a disk with an entry readable only by a newer program.
async fn from_the_future() -> Cluster {
    let mut cluster = Cluster::planned(&["db-0"]);
    cluster.newer = ["db-0".to_owned()].into();
    cluster.start_all().await;
    cluster.leader().await;
    for line in ["known", "unknown", "after"] {
        cluster.propose("db-0", line).await;
    }
    cluster.stop_all().await;
    cluster.newer.clear();
    cluster
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_does_not_skip_what_cannot_be_read_and_says_what_to_do() {
    let mut cluster = from_the_future().await;
    let Err(OpenError::Start(reason)) = cluster.start_with(cluster.options("db-0")).await else {
        panic!("it started");
    };
    for part in ["from the future", "the program version that wrote the data", "empty its data_dir", "member restore"] {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    cluster.newer = ["db-0".to_owned()].into();
    cluster.start_all().await;
    cluster.at("db-0").until_lines(3).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_stops_at_an_entry_is_restored_without_it_and_what_follows() {
    let mut cluster = from_the_future().await;
    let survivor = SurvivingReplica::open(&cluster.directory("db-0"), "orders", &Ledger::default()).unwrap();
    let held = survivor.holding();
    let (index, why) = held.unreadable.clone().expect("it was read");
    assert_eq!(why, "a kind of line from the future");
    assert_eq!((held.last + 1, held.committed + 1), (index, index), "{held:?}");
    survivor.restore().unwrap();
    cluster.start_all().await;
    cluster.leader().await;
    cluster.propose("db-0", "afterwards").await;
    assert_eq!(cluster.at("db-0").lines(), ["known by db-0", "afterwards by db-0"]);
    cluster.stop_all().await;
    // No part of the entry comes back.
    cluster.start_all().await;
    cluster.at("db-0").until_lines(2).await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn terms_and_positions_that_leap_are_refused_and_the_cluster_goes_on() {
    let mut cluster = Cluster::formed().await;
    let leader = cluster.leader().await;
    let term = cluster.at(&leader).now().term;
    let node = |name: &str| cluster.at(name).consensus.node_id();
    let from = cluster.replicas.keys().find(|name| **name != leader).unwrap();
    for at in cluster.replicas.keys() {
        let mut client = RaftClient::new(cluster.at(at).consensus.channel(at).unwrap());
        let to = Some(pb::Destination { cluster: "orders".into(), node: node(at) });
        let vote = |term, committed| Some(pb::Vote { term, node: node(from), committed });
        let position = |term, index| Some(pb::LogId { term, index });
        let next = term + 1;
        for (vote, last) in [
            (vote(u64::MAX, false), None),
            (vote(u64::MAX, true), position(1, 1)),
            (vote(1 << 40, true), None),
            (vote(next, true), position(next, u64::MAX)),
            (vote(next, true), position(u64::MAX, 1)),
        ] {
            let ask = pb::VoteRequest { to: to.clone(), vote, last, leadership_transfer: true };
            let append = pb::AppendRequest { to: to.clone(), vote, previous: last, ..Default::default() };
            let commit = pb::AppendRequest { to: to.clone(), vote, committed: last, ..Default::default() };
            let snapshot = Some(pb::SnapshotHead { last, membership_at: last, membership: None });
            let head = pb::InstallHead { to: to.clone(), vote, snapshot, size: 0 };
            let install = pb::InstallRequest { part: Some(pb::install_request::Part::Head(head)) };
            let transfer = pb::TransferLeaderRequest { to: to.clone(), from: vote, successor: node(at), last };
            let refusals = [
                client.vote(ask.clone()).await.map(drop),
                client.pre_vote(ask).await.map(drop),
                client.append(append).await.map(drop),
                client.append(commit).await.map(drop),
                client.install(tokio_stream::iter([install])).await.map(drop),
                client.transfer_leader(transfer).await.map(drop),
            ];
            for refused in refusals {
                assert_eq!(refused.unwrap_err().code(), Code::OutOfRange, "{vote:?} {last:?}");
            }
        }
        let entry = |index, payload| pb::Entry { id: position(next, index), payload: Some(payload) };
        let unreadable = pb::entry::Payload::Proposed(b"unknown".as_slice().into());
        let last = cluster.at(at).now().applied;
        let append = pb::AppendRequest {
            to,
            vote: vote(next, true),
            previous: position(term, last),
            entries: vec![entry(last + 1, unreadable)],
            ..Default::default()
        };
        let refused = client.append(append).await.unwrap_err();
        assert_eq!(refused.code(), Code::Unimplemented, "{refused}");
        assert!(refused.message().contains("and does not accept the message"), "{refused}");
    }
    assert_eq!((cluster.leader().await, cluster.at(&leader).now().term), (leader, term));
    cluster.propose("db-0", "unharmed").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_for_somebody_else_are_refused_with_who_this_is() {
    let mut cluster = Cluster::formed().await;
    let follower = cluster.at(&cluster.follower().await).consensus.clone();
    let channel = follower.channel("db-0").unwrap();
    let node = cluster.at("db-0").consensus.node_id();
    let term = cluster.at("db-0").now().term;
    let vote = pb::Vote { term: 1_000_000, node: 1, committed: true };
    for to in [("payments", node), ("orders", node + 1)] {
        let to = Some(pb::Destination { cluster: to.0.into(), node: to.1 });
        let append = pb::AppendRequest { to: to.clone(), vote: Some(vote), ..Default::default() };
        let refused = RaftClient::new(channel.clone()).append(append).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
        assert!(refused.message().contains("this is replica db-0 of cluster orders"), "{}", refused.message());
        let request = pb::VoteRequest { to, vote: Some(vote), leadership_transfer: true, ..Default::default() };
        let refused = RaftClient::new(channel.clone()).vote(request).await.unwrap_err();
        assert_eq!(refused.code(), Code::FailedPrecondition);
    }
    assert_eq!(cluster.at("db-0").now().term, term);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_that_contradict_themselves_are_refused_and_change_nothing() {
    let mut cluster = Cluster::formed().await;
    let replica = cluster.at("db-0");
    let mut client = RaftClient::new(replica.consensus.channel("db-0").unwrap());
    let to = Some(pb::Destination { cluster: "orders".into(), node: replica.consensus.node_id() });
    let vote = Some(pb::Vote { term: 1_000_000, node: 1, committed: true });
    let entry = |index| pb::Entry {
        id: Some(pb::LogId { term: 1_000_000, index }),
        payload: Some(pb::entry::Payload::Blank(pb::Blank {})),
    };
    let hostile = [
        pb::AppendRequest { to: to.clone(), ..Default::default() },
        pb::AppendRequest { to: to.clone(), vote, entries: vec![pb::Entry::default()], ..Default::default() },
        pb::AppendRequest { to: to.clone(), vote, entries: vec![entry(7), entry(9)], ..Default::default() },
        pb::AppendRequest { vote, ..Default::default() },
    ];
    for request in hostile {
        assert_eq!(client.append(request).await.unwrap_err().code(), Code::InvalidArgument);
    }
    let head = pb::InstallHead { to, vote, snapshot: None, size: u64::MAX };
    let head = pb::InstallRequest { part: Some(pb::install_request::Part::Head(head)) };
    for parts in [vec![], vec![pb::InstallRequest::default()], vec![head]] {
        let refused = client.install(tokio_stream::iter(parts)).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    cluster.propose("db-0", "unharmed").await;
    cluster.stop_all().await;
}
