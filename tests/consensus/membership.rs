//! Members are added and removed; a replica with a lost disk comes back as a new node.

use allclear::consensus::{RaftRole, RequestError};

use crate::consensus::support::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_lost_its_disk_returns_once_it_is_removed_and_added() {
    let mut cluster = Cluster::formed().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    cluster.propose(&leader, "before").await;
    cluster.stop(&lost).await;
    std::fs::remove_dir_all(cluster.directory(&lost)).unwrap();
    cluster.start(&lost).await;
    cluster.at(&lost).until("it learns", |now| now.role == RaftRole::Learner && now.quorum).await;

    let consensus = cluster.at(&leader).consensus.clone();
    let address = cluster.options(&lost).replicas.iter().find(|(name, _)| *name == lost).unwrap().1.clone();
    let added = consensus.add_member(&lost, &address).await;
    assert!(
        matches!(&added, Err(RequestError::Refused(why)) if why.contains("the old vote must not return")),
        "{added:?}"
    );
    consensus.remove_member(&lost).await.unwrap();
    assert_eq!((consensus.members().voters.len(), consensus.members().learners), (2, Vec::new()));
    consensus.add_member(&lost, &address).await.unwrap();
    consensus.add_member(&lost, &address).await.unwrap();
    assert_eq!(consensus.members().voters, ["db-0", "db-1", "db-2"]);

    cluster.propose(&lost, "after").await;
    cluster.at(&lost).consensus.ensure_linearizable().await.unwrap();
    assert_eq!(cluster.at(&lost).lines(), [format!("before by {leader}"), format!("after by {lost}")]);
    // The new vote counts: without the leader, the lost replica is one of the two electors of the next leader.
    cluster.stop(&leader).await;
    let next = cluster.leader().await;
    cluster.propose(&next, "elected").await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_of_one_grows_to_two_and_shrinks_again() {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]);
    let mut first = cluster.options("db-0");
    first.replicas.truncate(1);
    cluster.start_with(first).await.unwrap();
    cluster.at("db-0").until("it leads", |now| now.role == RaftRole::Leader && now.quorum).await;
    cluster.propose("db-0", "alone").await;
    let (consensus, address) = (cluster.at("db-0").consensus.clone(), cluster.addresses[1].1.clone());
    let silent = consensus.add_member("db-1", &address).await;
    assert!(matches!(&silent, Err(RequestError::Refused(why)) if why.ends_with("start db-1 first")), "{silent:?}");
    let last = "db-0 is the only voter; without db-0 there would be no quorum";
    assert_eq!(consensus.remove_member("db-0").await, Err(RequestError::Refused(last.into())));
    let nobody = "db-1 is not a member of this cluster";
    assert_eq!(consensus.remove_member("db-1").await, Err(RequestError::Refused(nobody.into())));

    cluster.start("db-1").await;
    consensus.add_member("db-1", &address).await.unwrap();
    cluster.propose("db-1", "together").await;
    let refused = cluster.at("db-1").consensus.remove_member("db-1").await;
    assert_eq!(refused, Err(RequestError::NoLeader));
    consensus.remove_member("db-1").await.unwrap();
    cluster.stop("db-1").await;
    cluster.propose("db-0", "alone again").await;
    assert_eq!(cluster.at("db-0").lines(), ["alone by db-0", "together by db-1", "alone again by db-0"]);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_replica_may_be_asked_and_the_leader_hands_over_before_it_is_removed() {
    let mut cluster = Cluster::formed().await;
    let (leader, asked) = (cluster.leader().await, cluster.follower().await);
    cluster.propose(&asked, "before").await;
    let wish = cluster.at(&asked).consensus.on_behalf_of("a test");
    wish.remove_member(&leader).await.unwrap();
    let next = cluster.at(&asked).until("another leads", |now| now.quorum && now.leader.is_some()).await;
    assert_ne!(next.leader.as_ref(), Some(&leader));
    let members = cluster.at(&asked).consensus.members();
    assert_eq!(members.voters.len(), 2);
    assert!(!members.voters.contains(&leader), "{members:?}");
    let told = |role: &RaftRole| matches!(role, RaftRole::Outside(why) if why.contains("member add"));
    cluster.at(&leader).until("it knows that it was removed", |now| told(&now.role)).await;

    // The removed replica asks for its own addition, and finds the leader though the replica has no leader itself.
    let address = address_of(&cluster, &leader);
    let wish = cluster.at(&leader).consensus.on_behalf_of("a test");
    assert_eq!(wish.add_member(&leader, &address).await, Ok(true));
    cluster.at(&leader).until("it takes part", |now| now.role == RaftRole::Follower && now.quorum).await;
    cluster.propose(&leader, "after").await;
    assert_eq!(cluster.at(&asked).consensus.members().voters.len(), 3);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_would_lose_the_quorum_is_refused_and_a_dead_member_can_be_removed() {
    let mut cluster = Cluster::formed().await;
    let (leader, dead) = (cluster.leader().await, cluster.follower().await);
    let alive = cluster.replicas.keys().find(|name| **name != leader && **name != dead).unwrap().clone();
    cluster.stop(&dead).await;
    let wish = cluster.at(&alive).consensus.on_behalf_of("a test");
    for leaves in [&alive, &leader] {
        let refused = wish.remove_member(leaves).await;
        let names_it = |error: &RequestError| error.is_refusal() && error.to_string().contains(&format!("({dead})"));
        assert!(refused.as_ref().is_err_and(names_it), "{refused:?}");
    }
    assert_eq!(cluster.at(&leader).consensus.members().voters.len(), 3);
    assert_eq!(cluster.leader().await, leader, "leadership moved for a change that was refused");
    wish.remove_member(&dead).await.unwrap();
    let nobody = wish.remove_member(&dead).await;
    assert_eq!(nobody, Err(RequestError::Refused(format!("{dead} is not a member of this cluster"))));

    // The dead replica was offline, so its own log still lists its vote; the other replicas correct this.
    cluster.start(&dead).await;
    let told = |role: &RaftRole| matches!(role, RaftRole::Outside(why) if why.contains("was removed"));
    cluster.at(&dead).until("it is told", |now| told(&now.role)).await;
    assert_eq!(wish.add_member(&dead, &address_of(&cluster, &dead)).await, Ok(true));
    cluster.leader().await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_nothing_is_changed() {
    let mut cluster = Cluster::formed().await;
    let leader = cluster.leader().await;
    for (name, _) in cluster.addresses.clone() {
        if name != leader {
            cluster.stop(&name).await;
        }
    }
    let other = cluster.addresses.iter().find(|(name, _)| *name != leader).unwrap().0.clone();
    let wish = cluster.at(&leader).consensus.on_behalf_of("a test");
    for refused in [wish.remove_member(&other).await, wish.transfer_leadership(None).await.map(drop)] {
        assert!(refused.as_ref().is_err_and(RequestError::is_refusal), "{refused:?}");
    }
    assert_eq!(cluster.at(&leader).consensus.members().voters.len(), 3);
    let unreachable = cluster.at(&leader).consensus.roster().await;
    assert_eq!(unreachable.iter().filter(|seat| seat.unreachable.is_some()).count(), 2);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_goes_to_the_named_voter_or_to_any_that_is_up_to_date() {
    let mut cluster = Cluster::formed().await;
    let (leader, asked) = (cluster.leader().await, cluster.follower().await);
    let wish = cluster.at(&asked).consensus.on_behalf_of("a test");
    let next = wish.transfer_leadership(None).await.unwrap();
    assert_ne!(next, leader);
    assert_eq!(cluster.leader().await, next);
    assert_eq!(wish.transfer_leadership(Some(&leader)).await, Ok(leader.clone()));
    assert_eq!(wish.transfer_leadership(Some(&leader)).await, Ok(leader.clone()));
    assert_eq!(cluster.leader().await, leader);
    // A leader to be removed gives up leadership before any change of members.
    let handed_over = cluster.at(&leader).consensus.remove_member(&leader).await;
    let next = cluster.leader().await;
    assert_ne!(next, leader);
    assert_eq!(handed_over, Err(RequestError::NoLeader));
    assert_eq!(cluster.at(&leader).consensus.members().voters.len(), 3);
    assert_eq!(wish.transfer_leadership(Some(&leader)).await, Ok(leader.clone()));
    let refused = wish.transfer_leadership(Some("db-9")).await;
    assert_eq!(refused, Err(RequestError::Refused("db-9 is not a voter of this cluster".into())));
    cluster.stop(&asked).await;
    let wish = cluster.at(&leader).consensus.on_behalf_of("a test");
    let refused = wish.transfer_leadership(Some(&asked)).await;
    assert!(refused.as_ref().is_err_and(RequestError::is_refusal), "{refused:?}");
    let third = wish.transfer_leadership(None).await.unwrap();
    assert!(third != asked && third != leader, "{third}");
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_eighth_replica_follows_as_a_learner_and_votes_when_there_is_room() {
    let names = ["db-0", "db-1", "db-2", "db-3", "db-4", "db-5", "db-6", "db-7"];
    let mut cluster = Cluster::planned(&names);
    for name in &names[..7] {
        let mut options = cluster.options(name);
        options.replicas.truncate(7);
        cluster.start_with(options).await.unwrap();
    }
    cluster.leader().await;
    // Only the configuration of db-7 names db-7; this configuration names db-7 and one other replica.
    let mut options = cluster.options("db-7");
    options.replicas.drain(1..7);
    cluster.start_with(options).await.unwrap();
    let told = |role: &RaftRole| matches!(role, RaftRole::Outside(why) if why.contains("member add db-7 127.0.0.3:"));
    cluster.at("db-7").until("it is told what to do", |now| told(&now.role)).await;
    let wish = cluster.at("db-3").consensus.on_behalf_of("a test");
    let address = address_of(&cluster, "db-7");
    assert_eq!(wish.add_member("db-7", &address).await, Ok(false));
    cluster.at("db-7").until("it learns", |now| now.role == RaftRole::Learner && now.quorum).await;
    assert_eq!(cluster.at("db-3").consensus.members().learners, ["db-7"]);

    let removed = cluster.follower().await;
    let removed = if removed == "db-7" { "db-1".to_owned() } else { removed };
    cluster.at("db-7").consensus.on_behalf_of("a test").remove_member(&removed).await.unwrap();
    assert_eq!(wish.add_member("db-7", &address).await, Ok(true));
    assert_eq!(cluster.at("db-7").consensus.members().voters.len(), 7);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_names_everybody_and_says_who_came_back_without_its_disk() {
    let mut cluster = Cluster::formed().await;
    let (leader, lost) = (cluster.leader().await, cluster.follower().await);
    let seats = cluster.at(&lost).consensus.roster().await;
    let names: Vec<_> = seats.iter().map(|seat| seat.replica.as_str()).collect();
    assert_eq!(names, ["db-0", "db-1", "db-2"]);
    assert!(seats.iter().all(|seat| seat.voter && seat.unreachable.is_none()), "{seats:?}");
    assert!(seats.iter().all(|seat| seat.leads == (seat.replica == leader)), "{seats:?}");
    cluster.stop(&lost).await;
    std::fs::remove_dir_all(cluster.directory(&lost)).unwrap();
    cluster.start(&lost).await;
    cluster.at(&lost).until("it learns", |now| now.role == RaftRole::Learner && now.quorum).await;
    for asked in [leader.clone(), lost.clone()] {
        let seats = cluster.at(&asked).consensus.roster().await;
        let seat = seats.iter().find(|seat| seat.replica == lost && seat.voter).unwrap();
        assert!(
            seats.iter().any(|seat| seat.replica == lost && !seat.voter && seat.unreachable.is_none()),
            "{seats:?}"
        );
        let why = seat.unreachable.as_deref().unwrap_or_default();
        assert!(why.contains("its disk was lost"), "{asked} says {seats:?}");
        assert!(seats.iter().any(|seat| seat.leads && seat.replica == leader), "{asked} says {seats:?}");
    }

    // The two commands also bring the lost replica back if the waiting replica itself receives the commands.
    let wish = cluster.at(&lost).consensus.on_behalf_of("a test");
    let address = address_of(&cluster, &lost);
    let refused = wish.add_member(&lost, &address).await;
    assert!(refused.as_ref().is_err_and(RequestError::is_refusal), "{refused:?}");
    wish.remove_member(&lost).await.unwrap();
    assert_eq!(wish.add_member(&lost, "nowhere").await.map_err(|error| error.is_refusal()), Err(true));
    assert_eq!(wish.add_member(&lost, &address).await, Ok(true));
    cluster.stop_all().await;
}

fn address_of(cluster: &Cluster, name: &str) -> String {
    cluster.addresses.iter().find(|(other, _)| other == name).unwrap().1.clone()
}
