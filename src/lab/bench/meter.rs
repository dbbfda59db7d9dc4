//! The cost of replicas between two times: processor time, memory, requests to the metadata service, and disk writes.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::time::ClockId;
use nix::unistd::Pid;

use crate::local_cluster::LocalCluster;
use allclear_server::grpc::client::OperatorConnection;

const KIB: f64 = 1024.0;

pub(super) struct Meter {
    began: Instant,
    /// The position of the leader.
    leader: usize,
    costs: Vec<Cost>,
    requests: f64,
}

pub(super) struct Metered {
    /// Processor time of the leader, in percent of a core.
    pub(super) leads: Vec<f64>,
    /// Processor time of the followers, in percent of a core.
    pub(super) follows: Vec<f64>,
    /// Memory of each replica in MiB, the leader first; empty without root rights.
    pub(super) memory: Vec<f64>,
    /// Disk writes of each replica, in KiB per hour; empty without root rights.
    pub(super) written: Vec<f64>,
    /// Requests of each replica to the metadata service, per second.
    pub(super) requests: f64,
}

/// The cost of one process so far.
struct Cost {
    pid: u32,
    /// Processor time of all threads of the process, ended threads included.
    busy: Duration,
    written: Option<f64>,
}

impl Meter {
    pub(super) async fn begin(stage: &LocalCluster) -> anyhow::Result<Self> {
        let status = OperatorConnection::connect(&stage.replicas[0].socket).await?.status().await?;
        let leader = stage.replicas.iter().position(|replica| Some(&replica.name) == status.leader.as_ref());
        let pids = stage.replicas.iter().map(|replica| replica.process.id().context("a replica does not run"));
        Ok(Self {
            leader: leader.context("no replica leads")?,
            costs: pids.map(|pid| cost(pid?)).collect::<Result<_, _>>()?,
            requests: requests(stage)?,
            began: Instant::now(),
        })
    }

    pub(super) fn end(self, stage: &LocalCluster) -> anyhow::Result<Metered> {
        let passed = self.began.elapsed().as_secs_f64();
        let replicas = f64::from(u32::try_from(self.costs.len())?);
        let requests = (requests(stage)? - self.requests) / passed / replicas;
        let (mut busy, mut written, mut memories) = (Vec::new(), Vec::new(), Vec::new());
        for before in &self.costs {
            let now = cost(before.pid)?;
            busy.push(now.busy.saturating_sub(before.busy).as_secs_f64() / passed * 100.0);
            written.extend(now.written.zip(before.written).map(|(now, before)| (now - before) / KIB / passed * 3600.0));
            memories.extend(memory(before.pid));
        }
        // Without root rights no memory figures are available.
        if memories.len() == self.costs.len() {
            memories.swap(0, self.leader);
        }
        let leads = vec![busy.remove(self.leader)];
        Ok(Metered { leads, follows: busy, memory: memories, written, requests })
    }
}

fn cost(pid: u32) -> anyhow::Result<Cost> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(pid)?))?;
    Ok(Cost { pid, busy: clock.now()?.into(), written: line(&format!("/proc/{pid}/io"), "write_bytes:") })
}

/// Resident memory in MiB; each shared page counts in proportion to the processes that share the page.
pub(super) fn memory(pid: u32) -> Option<f64> {
    Some(line(&format!("/proc/{pid}/smaps_rollup"), "Pss:")? / KIB)
}

/// A line of a file in `/proc`. A replica's memory has keys, so only root may read the file.
fn line(path: &str, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// Number of requests that the cloud received from all replicas.
fn requests(stage: &LocalCluster) -> anyhow::Result<f64> {
    let log = std::fs::read_to_string(stage.folder.join("requests.jsonl"))?;
    Ok(f64::from(u32::try_from(log.lines().count())?))
}
