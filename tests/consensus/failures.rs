//! What must stop a replica, and what must not.

use allclear::consensus::{AskError, OpenError};
use allclear::wire::pb::allclear::raft::v1 as pb;
use pb::raft_client::RaftClient;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::Code;

use crate::support::{Cluster, LIMIT};

#[tokio::test(flavor = "multi_thread")]
async fn an_entry_that_cannot_be_decoded_stops_whoever_learns_that_it_is_committed() {
    let mut cluster = Cluster::formed().await;
    let leader = cluster.leader().await;
    cluster.propose(&leader, "known").await;
    let mut stopped = JoinSet::new();
    for replica in cluster.replicas.values() {
        // Who learns of both at once applies neither.
        replica.until_lines(1).await;
        let consensus = replica.consensus.clone();
        stopped.spawn(async move { consensus.fatal().await });
    }
    let unknown = cluster.at(&leader).consensus.propose("unknown").await;
    assert!(matches!(unknown, Err(AskError::Unknown(_))), "{unknown:?}");
    // The leader, and the one that leads after it: then no quorum is left to tell the third.
    for _ in 0..2 {
        let fatal = timeout(LIMIT, stopped.join_next()).await.expect("nobody stopped").unwrap().unwrap();
        assert!(fatal.contains("a kind of line from the future; nothing is skipped"), "{fatal}");
    }
    for replica in cluster.replicas.values() {
        assert_eq!(replica.lines(), [format!("known by {leader}")]);
    }
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_does_not_skip_what_cannot_be_decoded() {
    let mut cluster = Cluster::planned(&["db-0"]);
    cluster.start_all().await;
    cluster.leader().await;
    cluster.at("db-0").consensus.propose("unknown").await.unwrap_err();
    timeout(LIMIT, cluster.at("db-0").consensus.fatal()).await.unwrap();
    assert!(matches!(cluster.at("db-0").consensus.propose("after").await, Err(AskError::Stopped(_))));
    assert!(matches!(cluster.at("db-0").consensus.confirm().await, Err(AskError::Stopped(_))));
    cluster.stop_all().await;
    match cluster.start_with(cluster.options("db-0")).await {
        Err(OpenError::Start(reason)) => assert!(reason.contains("from the future"), "{reason}"),
        Err(error) => panic!("{error}"),
        // Whether it was committed may not have reached the disk: then it stops once that is known again.
        Ok(()) => {
            timeout(LIMIT, cluster.at("db-0").consensus.fatal()).await.unwrap();
            assert!(cluster.at("db-0").lines().is_empty());
            cluster.stop_all().await;
        }
    }
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
