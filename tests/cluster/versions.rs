//! Replicas of two versions in one cluster: from an older program to this program and back, replica by replica, with an
//! event open all the while. `ALLCLEAR_OLDER` names the older program; `tests/deploy/older COMMIT` builds an older
//! program. And the cluster version, by a program that differs from this program in the known versions.

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use allclear::core::model::version::VERSION;
use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use allclear::{app, config};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio_util::sync::CancellationToken;

use super::cluster::Cluster;
use super::evidence::measured_by;
use super::workload::hook;

fn older() -> PathBuf {
    let older = std::env::var_os("ALLCLEAR_OLDER").map(PathBuf::from);
    older.expect("ALLCLEAR_OLDER names no program: ALLCLEAR_OLDER=$(tests/deploy/older COMMIT)")
}

fn this() -> PathBuf {
    env!("CARGO_BIN_EXE_allclear").into()
}

/// Restarts the replicas with `program` in turn, each once the previous replica is ready.
async fn all_run(cluster: &mut Cluster, program: &Path) {
    for place in 0..3 {
        let (_, status) = cluster.stop(place);
        assert!(status.success(), "replica {place} did not stop in order: {status}");
        cluster.replica_runs(place, program);
        cluster.start(place);
        cluster.ready().await;
    }
}

/// Returns the id of the open event.
async fn goes_on(cluster: &mut Cluster, program: &Path, gate: &str) -> String {
    let before = cluster.hooks.begun().len();
    let posts = cluster.cloud.posts().await.len();
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 1 })).await;
    cluster.seen_by_all(&id).await;
    cluster.until_true("the drain", async || cluster.hooks.begun().len() == before + 1).await;
    all_run(cluster, program).await;
    let waits = |event: &Event| event.stage == "preparing" && event.approvals.is_empty();
    cluster.until_event(0, &id, "still waiting for its hook", waits).await;
    cluster.hooks.open(gate);
    cluster.until_stage(2, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), posts + 1);
    assert_eq!(cluster.hooks.begun().len(), before + 2, "the drain and the restore, once each");
    id
}

async fn cluster_of(program: &Path) -> Cluster {
    let hooks = vec![hook("drain").waits_for("gate"), hook("restore")];
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).cold().await;
    for place in 0..3 {
        cluster.replica_runs(place, program);
    }
    cluster.start_all();
    cluster.ready().await;
    cluster
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another version: ALLCLEAR_OLDER"]
async fn replicas_are_upgraded_one_by_one_without_losing_an_open_event() {
    let mut cluster = cluster_of(&older()).await;
    goes_on(&mut cluster, &this(), "gate").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another version that knows every kind of entry of this one: ALLCLEAR_OLDER"]
async fn replicas_are_taken_back_and_upgraded_again_without_losing_an_open_event() {
    let mut cluster = cluster_of(&this()).await;
    goes_on(&mut cluster, &older(), "gate").await;
    cluster.hooks.shut("gate");
    goes_on(&mut cluster, &this(), "gate").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs another version that does not know every kind of entry of this one: ALLCLEAR_OLDER"]
async fn an_older_replica_skips_nothing_that_it_cannot_read_and_goes_on_when_it_is_upgraded() {
    let mut cluster = cluster_of(&older()).await;
    let id = goes_on(&mut cluster, &this(), "gate").await;
    // an entry of a kind unknown to older versions
    measured_by(&cluster, 2, &id).await;
    cluster.stop(0);
    cluster.replica_runs(0, &older());
    cluster.start(0);
    let says_why = async || cluster.log(0).contains("it was written by a newer version of allclear");
    cluster.until_true("it says why it cannot go on", says_why).await;
    assert_eq!(cluster.waits_for_the_end(0).code(), Some(1));
    cluster.replica_runs(0, &this());
    cluster.start(0);
    cluster.ready().await;
    cluster.hooks.shut("gate");
    goes_on(&mut cluster, &this(), "gate").await;
}

/// The highest version that the next program knows.
const NEXT: u64 = VERSION + 1;

/// A replica that runs the next program, on threads of this process.
struct Newer {
    stop: CancellationToken,
    runs: JoinHandle<Result<(), String>>,
}

impl Newer {
    fn start(cluster: &Cluster, place: usize) -> Self {
        let config = config::load(&cluster.configuration(place), []).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let stop = CancellationToken::new();
        let until = stop.clone();
        let runs = std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            let handle = runtime.handle().clone();
            runtime.block_on(app::run_until(config, NEXT, until, &handle)).map_err(|error| error.to_string())
        });
        Self { stop, runs }
    }

    fn stop(self) {
        self.stop.cancel();
        self.runs.join().unwrap().unwrap();
    }
}

fn known(status: &Status) -> Vec<Option<u32>> {
    status.replicas.iter().map(|replica| replica.known_version).collect()
}

/// Waits until an old program has logged the reason for its end.
async fn ends(cluster: &mut Cluster, place: usize) {
    let why = format!("the cluster was raised to version {NEXT}, and this program knows versions up to {VERSION}");
    cluster.until_true("why it ends", async || cluster.log(place).matches(&why).count() > 0).await;
    assert_eq!(cluster.waits_for_the_end(place).code(), Some(1));
    assert!(cluster.log(place).contains("upgrade this replica"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cluster_version_rises_when_every_program_knows_it_and_an_old_program_takes_no_part() {
    let mut cluster = Cluster::of(&["db-0", "db-1", "db-2"]).also("cluster.replace_after", "1s").cold().await;
    let new = [Newer::start(&cluster, 0), Newer::start(&cluster, 1)];
    cluster.start(2);
    let (old, next) = (u32::try_from(VERSION).unwrap(), u32::try_from(NEXT).unwrap());
    for place in 0..3 {
        let told = |status: &Status| known(status) == [Some(next), Some(next), Some(old)];
        let status = cluster.until(place, "told of all programs", told).await;
        assert_eq!(status.cluster_version, old);
    }
    cluster.a_few_polls_later().await;
    let (code, out, _) = cluster.says(0, &["status", "--json"]);
    let status: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &status["cluster_version"]), (0, &json!(old)));
    let text = cluster.says(0, &["status"]).1;
    assert!(text.contains("TWO VERSIONS") && text.contains("the program of db-2"), "{text}");

    cluster.stop(2);
    let upgraded = Newer::start(&cluster, 2);
    for place in 0..3 {
        cluster.until(place, "raised", |status| status.cluster_version == next).await;
    }
    assert!(!cluster.says(0, &["status"]).1.contains("TWO VERSIONS"));

    upgraded.stop();
    cluster.start(2);
    ends(&mut cluster, 2).await;
    // Nor does the old program take part on an empty disk.
    cluster.lose_disk(2);
    cluster.start(2);
    let cannot_follow = |status: &Status| {
        let why = status.outside_because.as_deref().unwrap_or_default();
        status.role == "outside" && why.contains("this replica cannot read") && why.ends_with("upgrade this replica")
    };
    cluster.until(2, "told what to do", cannot_follow).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 2 })).await;
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    new.into_iter().for_each(Newer::stop);
}
