//! etcd. Every member accepts writes and forwards them to the leader, which is called the primary here.

mod checks;
mod client;
mod lost;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::json;

use super::hook::{BLOCKED, Hook};
use super::record::Row;
use super::stage::Stage;
use super::trio::{System, ThreeNodeBed, VMS, is_installed, until};
use super::writers::Writers;
use client::{Connection, key, row};

pub(crate) struct Etcd;

const GLANCE: Duration = Duration::from_secs(1);
const READING: Duration = Duration::from_secs(20);
/// Rows in one answer.
const PAGE: usize = 10_000;

impl System for Etcd {
    const NAME: &'static str = "etcd";
    const TABLES: &'static [&'static str] = &["etcd.toml"];
    const PROGRAMS: &'static [&'static str] = &["etcd"];
    const USER: &'static str = "nobody";
    const FAILS_OVER: bool = true;
    type Client = Connection;

    fn found(trio: &ThreeNodeBed) {
        for place in 0..VMS.len() {
            fs::write(service(trio, place), unit(trio, place)).unwrap();
            fs::set_permissions(service(trio, place), fs::Permissions::from_mode(0o755)).unwrap();
            Self::boot(trio, place);
        }
        until("a leader", || Self::primary(trio).ok_or_else(|| "nobody leads".into()));
        for place in 0..VMS.len() {
            until("a member", || Self::rows(trio, place).map_err(|error| error.to_string()));
        }
    }

    /// Where the data are gone, etcd itself refuses to start.
    fn boot(trio: &ThreeNodeBed, place: usize) {
        trio.spawn(place, "sh", &[&service(trio, place)]).unwrap();
    }

    fn primary(trio: &ThreeNodeBed) -> Option<usize> {
        let leads = |place: &usize| {
            let ask = || open(trio, *place, GLANCE)?.ask("maintenance/status", &json!({}));
            ask().is_ok_and(|status| status["leader"] == status["header"]["member_id"])
        };
        (0..VMS.len()).find(leads)
    }

    fn settings(trio: &ThreeNodeBed, place: usize) -> Vec<(&'static str, String)> {
        let vm = &trio.vms[place];
        // The command returns when the member has ended, as `systemctl stop` does.
        let pid = vm.folder.join("etcd.pid").display().to_string();
        let stop = format!("sh -c 'pid=$(cat {pid}); kill $pid; while [ -e /proc/$pid/exe ]; do sleep 0.02; done'");
        vec![
            ("MEMBERS", trio.members(0)),
            ("STATE_DIR", vm.folder.join("state").display().to_string()),
            ("DATA_DIR", vm.data().display().to_string()),
            ("STOP", stop),
            ("START", format!("setsid --fork sh {}", service(trio, place))),
        ]
    }

    fn connect(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<Connection> {
        open(trio, place, patience)
    }

    /// Each member forwards writes to the leader, and consensus is etcd's own.
    fn takes_writes(_trio: &ThreeNodeBed, _place: usize) -> bool {
        false
    }

    fn rows(trio: &ThreeNodeBed, place: usize) -> io::Result<Vec<Row>> {
        let (mut connection, mut rows) = (open(trio, place, READING)?, Vec::new());
        let mut from = Row { client: 0, number: 0 };
        loop {
            // The rows of this member, whether or not the other members agree.
            let range = json!({
                "key": key(from), "range_end": "rowt", "limit": PAGE, "keys_only": true, "serializable": true,
            });
            let answer = connection.ask("kv/range", &range)?;
            let page = answer["kvs"].as_array().into_iter().flatten();
            let before = rows.len();
            rows.extend(page.map(|kv| row(kv["key"].as_str().unwrap())));
            if rows.len() - before < PAGE {
                return Ok(rows);
            }
            let last = rows[rows.len() - 1];
            from = Row { number: last.number + 1, ..last };
        }
    }
}

fn open(trio: &ThreeNodeBed, place: usize, patience: Duration) -> io::Result<Connection> {
    Connection::open(&trio.vms[place].addresses[0], patience)
}

fn service(trio: &ThreeNodeBed, place: usize) -> String {
    trio.vms[place].folder.join("etcd.sh").display().to_string()
}

/// The script of a systemd unit with `EnvironmentFile=-`.
fn unit(trio: &ThreeNodeBed, place: usize) -> String {
    let vm = &trio.vms[place];
    let peers: Vec<_> = trio.vms.iter().map(|vm| format!("{}=http://{}", vm.name, vm.addresses[1])).collect();
    format!(
        "exec >>{folder}/etcd.log 2>&1 </dev/null
         echo $$ > {folder}/etcd.pid
         export ETCD_INITIAL_CLUSTER={peers} ETCD_INITIAL_CLUSTER_STATE=new
         if [ -f {folder}/state/etcd.env ]; then set -a; . {folder}/state/etcd.env; fi
         exec etcd --name {name} --data-dir {data} --listen-client-urls http://{client} \
         --advertise-client-urls http://{client} --listen-peer-urls http://{peer} \
         --initial-advertise-peer-urls http://{peer}\n",
        folder = vm.folder.display(),
        peers = peers.join(","),
        name = vm.name,
        data = vm.data().display(),
        client = vm.addresses[0],
        peer = vm.addresses[1],
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn an_event_that_takes_the_majority_is_blocked_with_the_reason() {
    if !is_installed::<Etcd>() {
        return;
    }
    let stage = Stage::<Etcd>::bare().await;
    let writers = Writers::start::<Etcd>(&stage.trio);
    let leader = stage.primary();
    let both = [VMS[leader], VMS[(leader + 1) % VMS.len()]].join(" ");
    let ended = Hook::run::<Etcd>(&stage.trio, leader, "failover", &[("ALLCLEAR_EVENT_RESOURCES", &both)]);
    assert!(ended.status == BLOCKED && ended.said.contains("1 of 3 members"), "{ended:?}");
    let followers = [(leader + 1) % VMS.len(), (leader + 2) % VMS.len()];
    let both = followers.map(|place| VMS[place]).join(" ");
    let ended = Hook::run::<Etcd>(&stage.trio, followers[0], "drain", &[("ALLCLEAR_EVENT_RESOURCES", &both)]);
    assert!(ended.status == BLOCKED && ended.said.contains("1 of 3 members"), "{ended:?}");
    // A member that is down is not ready, and the others are.
    stage.trio.kill(followers[0]);
    let ended = Hook::run::<Etcd>(&stage.trio, followers[0], "ready", &[]);
    assert!(ended.status == BLOCKED && ended.said.contains("refused"), "{ended:?}");
    Hook::until_done::<Etcd>(&stage.trio, leader, "ready", &[]);
    Etcd::boot(&stage.trio, followers[0]);
    Hook::until_done::<Etcd>(&stage.trio, followers[0], "ready", &[]);
    stage.all_is_there(writers);
}
