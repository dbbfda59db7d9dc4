//! Killed processes: each line acknowledged by a killed process exists afterwards, exactly once.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

use crate::consensus::support::{Cluster, LIMIT};

const REPLICA: &str = "TEST_REPLICA";
const ROOT: &str = "TEST_ROOT";
const ADDRESSES: &str = "TEST_ADDRESSES";
const ROUND: &str = "TEST_ROUND";

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_survives_the_killing_of_all_replicas() {
    if let Ok(name) = std::env::var(REPLICA) {
        return one_process(&name).await;
    }
    let mut cluster = Cluster::planned(&["db-0", "db-1", "db-2"]);
    let mut acknowledged = BTreeSet::new();
    for round in 0..3 {
        let mut processes: Vec<_> = ["db-0", "db-1", "db-2"].map(|name| start(&cluster, name, round)).into();
        for (_, lines) in &mut processes {
            for _ in 0..20 {
                let next = timeout(LIMIT, acknowledged_line(lines)).await;
                acknowledged.insert(next.expect("nothing was acknowledged"));
            }
        }
        for (process, lines) in &mut processes {
            process.kill().await.unwrap();
            // Lines printed between the last read and the kill count, too.
            while let Ok(Some(line)) = lines.next_line().await {
                acknowledged.extend(line.split_once("acknowledged ").map(|(_, line)| line.to_owned()));
            }
        }
    }
    assert!(acknowledged.len() >= 180);
    cluster.start_all().await;
    cluster.leader().await;
    cluster.at("db-0").consensus.ensure_linearizable().await.unwrap();
    let lines = cluster.at("db-0").lines();
    let applied: BTreeSet<String> = lines.iter().cloned().collect();
    assert_eq!(applied.len(), lines.len(), "a line was applied twice");
    let missing: Vec<_> = acknowledged.difference(&applied).collect();
    assert!(missing.is_empty(), "lost: {missing:?}");
    cluster.stop_all().await;
}

fn start(cluster: &Cluster, name: &str, round: u32) -> (Child, Lines<BufReader<ChildStdout>>) {
    let addresses: Vec<_> = cluster.addresses.iter().map(|(name, address)| format!("{name}={address}")).collect();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", crate::own_test!(what_was_acknowledged_survives_the_killing_of_all_replicas), "--nocapture"])
        .env(REPLICA, name)
        .env(ROOT, cluster.root.path())
        // A killed process does not remove its own temporary folder.
        .env("TMPDIR", cluster.root.path())
        .env(ADDRESSES, addresses.join(","))
        .env(ROUND, round.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    (process, lines)
}

async fn acknowledged_line(lines: &mut Lines<BufReader<ChildStdout>>) -> String {
    loop {
        let line = lines.next_line().await.unwrap().expect("the process ended");
        if let Some((_, line)) = line.split_once("acknowledged ") {
            return line.to_owned();
        }
    }
}

/// The child process of this test: proposes until the process is killed, and prints the acknowledged lines.
async fn one_process(name: &str) {
    let [addresses, root, round] = [ADDRESSES, ROOT, ROUND].map(|variable| std::env::var(variable).unwrap());
    let mut cluster = Cluster::planned(&[]);
    let address = |pair: &str| pair.split_once('=').map(|(name, address)| (name.into(), address.into()));
    cluster.addresses = addresses.split(',').filter_map(address).collect();
    let mut options = cluster.options(name);
    options.data_dir = std::path::Path::new(&root).join(name);
    cluster.start_with(options).await.unwrap();
    let proposing = async {
        for count in 0.. {
            let line = format!("{round}-{count}");
            if cluster.at(name).consensus.propose(line.clone()).await.is_ok() {
                let mut out = std::io::stdout().lock();
                writeln!(out, "acknowledged {line} by {name}").unwrap();
                out.flush().unwrap();
            }
        }
    };
    // If the parent test was killed itself, the child process has no other end than this timeout.
    let _ = timeout(LIMIT * 4, proposing).await;
}
