//! Obstacles to the work of etcd's hooks are found in advance, and reported.

use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::json;

use super::super::hook::{DONE, Ended, FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{VMS, is_installed, until};
use super::super::writers::Writers;
use super::Etcd;
use super::client::Connection;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_the_hooks_would_stumble_over_is_found_by_the_check_before_it() {
    if !is_installed::<Etcd>() {
        return;
    }
    let stage = Stage::<Etcd>::bare().await;
    let trio = &stage.trio;
    until("all to be well", || match Hook::run::<Etcd>(trio, 0, "check", &[]) {
        Ended { status: DONE, .. } => Ok(()),
        ended => Err(ended.said),
    });
    let members = trio.members(0);
    let two = members.rsplit_once(' ').unwrap().0;
    let swapped = format!(
        "db-0={} other={} db-2={}",
        trio.vms[0].addresses[0], trio.vms[1].addresses[1], trio.vms[2].addresses[0]
    );
    let empty = trio.vms[0].folder.join("empty");
    fs::create_dir(&empty).unwrap();
    let (empty, fstab) = (empty.to_str().unwrap(), trio.vms[0].folder.join("fstab"));
    fs::write(&fstab, format!("/dev/sdz {} ext4 defaults 0 2\n", trio.vms[0].folder.display())).unwrap();
    let wrong: [((&str, &str), &str); 8] = [
        (("MEMBERS", two), "which MEMBERS does not name"),
        // The peer address, where clients are not served.
        (("MEMBERS", &swapped), "its JSON gateway is off"),
        (("DATA_DIR", empty), "has no data of the etcd that serves"),
        (("DATA_DIR", empty), "etcd has its data in "),
        (("FSTAB", fstab.to_str().unwrap()), "is not mounted"),
        (("STATE_DIR", "/proc/nowhere"), "cannot be written by the user of the hooks"),
        (("START", "no-such-program start etcd"), "which is not installed"),
        (("START", ""), "STOP is set without START"),
    ];
    for (setting, reason) in wrong {
        let ended = Hook::run::<Etcd>(trio, 0, "check", &[setting]);
        assert!(ended.status == FAILED && ended.said.contains(reason), "not {reason:?}: {ended:?}");
    }
    let ended = Hook::run::<Etcd>(trio, 0, "drain", &[("STOP", "true")]);
    assert!(ended.status == FAILED && ended.said.contains("db-0 still serves after STOP"), "{ended:?}");
    // With access control, an event waits for a person: no wait helps. The member serves all the same.
    let mut server = Connection::open(&trio.vms[0].addresses[0], Duration::from_secs(20)).unwrap();
    for (path, body) in [
        ("auth/user/add", json!({ "name": "root", "password": "open" })),
        ("auth/role/add", json!({ "name": "root" })),
        ("auth/user/grant", json!({ "user": "root", "role": "root" })),
        ("auth/enable", json!({})),
    ] {
        server.ask(path, &body).unwrap_or_else(|error| panic!("{path}: {error}"));
    }
    for (phase, status) in [("failover", FAILED), ("ready", DONE), ("check", FAILED)] {
        let ended = Hook::run::<Etcd>(trio, 0, phase, &[]);
        assert!(ended.status == status && ended.said.contains("user name is empty"), "{phase}: {ended:?}");
    }
}

/// A leader takes no writes while asked to transfer the leadership. Both possible targets hang.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_leader_that_cannot_go_is_asked_once_with_the_reasons_of_both_it_could_go_to() {
    if !is_installed::<Etcd>() {
        return;
    }
    let stage = Stage::<Etcd>::bare().await;
    let writers = Writers::start::<Etcd>(&stage.trio);
    let leader = stage.primary();
    let told = [("ALLCLEAR_EVENT_ID", "event")];
    let others: Vec<_> = (0..VMS.len()).filter(|place| *place != leader).collect();
    let point = "maintenance/transfer-leadership";
    let hook = Hook::stopped_where::<Etcd>(&stage.trio, leader, "failover", point, &told);
    for place in &others {
        stage.trio.freeze(*place);
    }
    hook.signal(Signal::SIGCONT);
    let ended = hook.end();
    for place in &others {
        stage.trio.thaw(*place);
    }
    let is_told =
        others.iter().all(|place| ended.said.contains(&format!("{} did not become the leader (", VMS[*place])));
    assert!(ended.status == FAILED && is_told, "{ended:?}");
    writers.go_on();
    if stage.primary() == leader {
        let ended = Hook::run::<Etcd>(&stage.trio, leader, "failover", &told);
        assert!(ended.status == FAILED && ended.said.contains("stopped once in vain"), "{ended:?}");
        Hook::until_done::<Etcd>(&stage.trio, leader, "failover", &[("ALLCLEAR_EVENT_ID", "another")]);
        assert_ne!(stage.primary(), leader);
    }
    stage.all_is_there(writers);
}
