//! A check reports success where all is well, finds faults, and changes nothing, in the cluster and in the cluster's
//! store.

use serde_json::{Value, json};

use super::super::stage::Stage;
use super::super::trio::{ThreeNodeBed, VMS, is_installed, until};
use super::adapter::{begin, end, hook, run};
use super::rest::{configure, get, until_cluster};
use super::secured::Secured;
use super::{Newest, Old, Patroni, Setup};

async fn a_check_finds_what_is_wrong_and_changes_nothing<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let stage = Stage::<Patroni<S>>::bare().await;
    let peers = json!({ "prefer_vms": [VMS[1], VMS[2]] });
    // `/cluster` shows new members as of Patroni's last loop.
    until("a check that finds nothing", || match run::<S>(&stage.trio, 0, "check", &peers) {
        ended if ended.status == Some(0) => Ok(()),
        ended => Err(ended.said),
    });
    let before = kept(&stage.trio);
    for (place, own) in VMS.into_iter().enumerate() {
        let others: Vec<&str> = VMS.into_iter().filter(|vm| *vm != own).collect();
        let ended = run::<S>(&stage.trio, place, "check", &json!({ "prefer_vms": others }));
        assert_eq!(ended.status, Some(0), "{ended:?}");
        assert!(ended.said.contains("a cluster of 3 with asynchronous replication"), "{ended:?}");
    }
    let ended = run::<S>(&stage.trio, 0, "failover", &json!({ "mode": "dry_run", "prefer_vms": [VMS[2]] }));
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.said.contains("would switch over from db-0 to db-2 or db-1"), "{ended:?}");
    let ended = run::<S>(&stage.trio, 0, "check", &json!({ "prefer_vms": [VMS[1], "db-7"] }));
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.said.contains("db-2 is on db-2, where no replica") && ended.said.contains("is on db-7"), "{ended:?}");
    assert_eq!(kept(&stage.trio), before);

    stage.trio.kill(2);
    until("a check that finds a dead member", || match run::<S>(&stage.trio, 0, "check", &json!({})) {
        ended if ended.status == Some(1) && ended.said.contains("db-2 does not answer") => Ok(()),
        ended => Err(ended.said),
    });
    configure(&stage.trio, "{\"pause\": true}");
    until_cluster(&stage.trio, "a pause", |cluster| cluster["pause"] == true);
    assert!(run::<S>(&stage.trio, 0, "check", &json!({})).said.contains("paused"));
}

/// All facts which a switchover would change: the leader, its timeline and start, the history, the shared
/// configuration, and the plans.
fn kept(trio: &ThreeNodeBed) -> Value {
    let leader = get(trio, 0, "/patroni").unwrap();
    let cluster = get(trio, 0, "/cluster").unwrap();
    let said = [&leader["postmaster_start_time"], &leader["timeline"], &leader["role"]];
    let planned = ["scheduled_switchover", "pause"].map(|key| cluster[key].clone());
    let store =
        trio.run(0, "etcdctl", &["--endpoints", &trio.elsewhere.addresses[0], "get", "/service/tests/failover"]);
    json!([said, planned, get(trio, 0, "/config").unwrap(), get(trio, 0, "/history").unwrap(), store.unwrap()])
}

/// A login unknown to Patroni is found before the login matters, and so is a missing login.
async fn a_login_that_patroni_refuses_is_found() {
    if !is_installed::<Patroni<Secured>>() {
        return;
    }
    let stage = Stage::<Patroni<Secured>>::bare().await;
    until("a check that finds nothing", || match run::<Secured>(&stage.trio, 0, "check", &json!({})) {
        ended if ended.status == Some(0) => Ok(()),
        ended => Err(ended.said),
    });
    let own = hook::<Secured>(&stage.trio, 0, "check");
    let mut anonymous = own.clone();
    anonymous.options.login = None;
    let mut faceless = own.clone();
    faceless.options.identity = None;
    let mut nameless = own;
    nameless.members = Vec::new();
    for (hook, what) in [(anonymous, "`password_file`"), (faceless, "Patroni cannot be asked"), (nameless, "`members`")]
    {
        let ended = end(begin(&hook, 0, "check", &json!({})));
        assert!(ended.status != Some(0) && ended.said.contains(what), "{what}: {ended:?}");
        let ended = end(begin(&hook, 0, "failover", &json!({ "prefer_vms": [VMS[1]] })));
        assert!(ended.status != Some(0), "{what}: {ended:?}");
    }
    assert_eq!(stage.primary(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn newest() {
    a_check_finds_what_is_wrong_and_changes_nothing::<Newest>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn old() {
    a_check_finds_what_is_wrong_and_changes_nothing::<Old>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn logins() {
    a_login_that_patroni_refuses_is_found().await;
}
