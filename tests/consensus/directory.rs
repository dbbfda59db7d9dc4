//! A data directory serves one replica of one cluster, in one process.

use allclear::consensus::OpenError;

use crate::consensus::support::Cluster;

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_of_somebody_else_is_refused_and_left_alone() {
    let mut cluster = Cluster::planned(&["db-0", "db-1"]);
    cluster.start("db-0").await;
    let node = cluster.at("db-0").consensus.node_id();

    let again = cluster.open_once(cluster.options("db-0")).await;
    assert!(matches!(again, Err(OpenError::InUse { .. })), "{again:?}");
    cluster.stop("db-0").await;

    let mut foreign = cluster.options("db-0");
    foreign.cluster = "payments".into();
    let refused = cluster.start_with(foreign).await.unwrap_err().to_string();
    assert!(refused.contains("belongs to cluster \"orders\", not \"payments\""), "{refused}");

    let mut other = cluster.options("db-1");
    other.data_dir = cluster.directory("db-0");
    let refused = cluster.start_with(other).await.unwrap_err().to_string();
    assert!(refused.contains("belongs to replica \"db-0\", not \"db-1\""), "{refused}");

    cluster.start("db-0").await;
    assert_eq!(cluster.at("db-0").consensus.node_id(), node);
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_crash_left_of_an_unfinished_directory_is_replaced() {
    let mut cluster = Cluster::planned(&["db-0"]);
    std::fs::create_dir_all(cluster.directory("db-0")).unwrap();
    std::fs::write(cluster.directory("db-0").join("consensus.new"), b"half a file").unwrap();
    cluster.start("db-0").await;
    cluster.leader().await;
    cluster.stop_all().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_database_is_refused_with_what_to_do() {
    let mut cluster = Cluster::planned(&["db-0"]);
    std::fs::create_dir_all(cluster.directory("db-0")).unwrap();
    std::fs::write(cluster.directory("db-0").join("consensus.redb"), vec![7; 8192]).unwrap();
    let refused = cluster.start_with(cluster.options("db-0")).await.unwrap_err().to_string();
    assert!(refused.contains("consensus.redb"), "{refused}");
    assert!(refused.contains("remove the directory and add this replica as a new replica"), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_its_own_list_does_not_name_is_refused() {
    let mut cluster = Cluster::planned(&["db-0"]);
    let mut options = cluster.options("db-0");
    options.replicas = vec![("db-7".into(), "127.0.0.1:1".into())];
    let refused = cluster.start_with(options).await.unwrap_err().to_string();
    assert!(refused.contains("\"db-0\" is not in the list of replicas"), "{refused}");
}
