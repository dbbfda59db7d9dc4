//! What replicas cost between two moments: processor time, memory, requests to the metadata service, and what they write.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::time::ClockId;
use nix::unistd::Pid;

use crate::local_cluster::LocalCluster;
use allclear_server::grpc::client::OperatorConnection;

const KIB: f64 = 1024.0;

pub(super) struct Meter {
    began: Instant,
    /// The place of the replica that led.
    leader: usize,
    costs: Vec<Cost>,
    requests: f64,
}

pub(super) struct Metered {
    /// Of the leader, in percent of a core.
    pub(super) leads: Vec<f64>,
    /// Of the others.
    pub(super) follows: Vec<f64>,
    /// Of each replica in MiB, the leader first; nothing where only root is told.
    pub(super) memory: Vec<f64>,
    /// By each replica, in KiB per hour; nothing where only root is told.
    pub(super) written: Vec<f64>,
    /// To the metadata service, by each replica, per second.
    pub(super) requests: f64,
}

/// What one process has cost so far.
struct Cost {
    pid: u32,
    /// By all of its threads, those among them that have ended.
    busy: Duration,
    written: Option<f64>,
}

impl Meter {
    pub(super) async fn begin(stage: &LocalCluster) -> anyhow::Result<Self> {
        let status = OperatorConnection::connect(&stage.replicas[0].socket).await?.status().await?;
        let leader = stage.replicas.iter().position(|replica| Some(&replica.name) == status.leader.as_ref());
        let pids = stage.replicas.iter().map(|replica| replica.process.id().context("a replica does not run"));
        Ok(Self {
            leader: leader.context("nobody leads")?,
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
        // Whoever is not root is told of none.
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

/// Resident pages, those that are shared with others in proportion, in MiB.
pub(super) fn memory(pid: u32) -> Option<f64> {
    Some(line(&format!("/proc/{pid}/smaps_rollup"), "Pss:")? / KIB)
}

/// Keys are in a replica's memory, so only root looks into it.
fn line(path: &str, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// How many the cloud received of all replicas.
fn requests(stage: &LocalCluster) -> anyhow::Result<f64> {
    let log = std::fs::read_to_string(stage.folder.join("requests.jsonl"))?;
    Ok(f64::from(u32::try_from(log.lines().count())?))
}
