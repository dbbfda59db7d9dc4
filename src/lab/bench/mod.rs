//! `allclear bench`: how fast the cluster answers and the cost, each figure beside its lower bound.
//!
//! Three replicas as processes, a fake cloud, one event after another, announced at different times of the polls.

mod approvals;
mod bare;
mod claims;
mod figure;
mod idle;
mod leaders;
mod many;
mod meter;

use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use clap::ValueEnum;
use tokio::time::sleep;

use self::figure::{Figure, table};
use crate::local_cluster::{HookSpeed, LocalCluster, SampleWorkload, folder};
use allclear_core::model::time::Timestamp;
use allclear_server::exit::{Exit, runtime, say};
use allclear_server::grpc::client::OperatorConnection;
use allclear_server::replica::clock;
use allclear_server::signals::asked_to_stop;
use allclear_wire::pb::allclear::operator::v1::Status;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// An election takes a fraction of a second, and is measured.
const LEADER_LOOK_EVERY: Duration = Duration::from_millis(5);
const READY_WITHIN: Duration = Duration::from_mins(5);
const EVENT_WITHIN: Duration = Duration::from_mins(5);

/// Measures the latency and the cost of a cluster, and prints each figure beside a lower bound
#[derive(clap::Args)]
pub struct Bench {
    /// Measures only this part; you may give the option several times
    #[arg(long, value_name = "WHAT")]
    only: Vec<Part>,
    /// The number of events for each figure
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    events: u32,
    /// The time in seconds for which idle replicas are measured
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// The number of replicas of the large cluster
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u8).range(3..=100))]
    replicas: u8,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The cost of idle replicas
    Idle,
    /// The time from the announcement, and from the last hook, to the POST
    Approvals,
    /// The time to the next leader, after a kill of the leader
    Leaders,
    /// The time to the POST of another replica, after a kill of the leader
    Claims,
    /// A large cluster
    Many,
}

impl Bench {
    pub fn run(self) -> Exit {
        let folder = match folder::make() {
            Ok(folder) => folder,
            Err(error) => {
                say(format_args!("cannot make a folder for the benchmark: {error}"));
                return Exit::Failed;
            }
        };
        let measured = match runtime() {
            Ok(runtime) => runtime.block_on(self.measure(&folder)),
            Err(exit) => return exit,
        };
        folder::end_leftovers(&folder);
        // The rest of the folder is only a nuisance.
        let _ = std::fs::remove_dir_all(&folder);
        match measured {
            Ok(figures) => self.tell(&figures),
            Err(error) => {
                say(format_args!("the benchmark failed: {error:#}"));
                Exit::Failed
            }
        }
    }

    async fn measure(&self, folder: &Path) -> anyhow::Result<Vec<Figure>> {
        let stop = asked_to_stop()?;
        let mut stage =
            LocalCluster::set_up(folder.into(), NonZeroU32::MIN, &SampleWorkload::Hooks(HookSpeed::Instant)).await?;
        let measured = tokio::select! {
            figures = self.figures(&mut stage) => figures,
            () = stop => Err(anyhow::anyhow!("a signal stopped the benchmark")),
        };
        stage.strike().await;
        measured
    }

    async fn figures(&self, stage: &mut LocalCluster) -> anyhow::Result<Vec<Figure>> {
        let mut figures = Vec::new();
        for part in Part::value_variants() {
            if !self.only.is_empty() && !self.only.contains(part) {
                continue;
            }
            until_ready(stage).await?;
            figures.extend(match part {
                Part::Idle => idle::measure(stage, self.seconds).await?,
                Part::Approvals => approvals::measure(stage, self.events).await?,
                Part::Leaders => leaders::measure(stage, self.events).await?,
                Part::Claims => claims::measure(stage, self.events).await?,
                Part::Many => many::measure(&stage.folder, self.replicas, self.events, self.seconds).await?,
            });
        }
        Ok(figures)
    }

    fn tell(&self, figures: &[Figure]) -> Exit {
        let text = if self.json { serde_json::to_string(figures).unwrap_or_default() + "\n" } else { table(figures) };
        match std::io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Failed,
        }
    }
}

/// Milliseconds from one time to the other.
fn span(from: Timestamp, to: Timestamp) -> f64 {
    Duration::from_millis((to.0 - from.0).unsigned_abs()).as_secs_f64() * if to < from { -1e3 } else { 1e3 }
}

async fn until_ready(stage: &LocalCluster) -> anyhow::Result<()> {
    let limit = clock::monotonic().plus(READY_WITHIN);
    for replica in &stage.replicas {
        loop {
            if let Ok(mut asking) = OperatorConnection::connect(&replica.socket).await
                && let Ok(status) = asking.status().await
                && status.replicas.iter().all(|each| each.reachable && each.metadata == "healthy")
                && status.workloads.len() >= stage.replicas.len()
            {
                break;
            }
            if clock::monotonic() > limit {
                bail!("{} is not ready after {} s", replica.name, READY_WITHIN.as_secs());
            }
            sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

/// The leader, as soon as a running replica names the leader in a status for which `counts` is true.
async fn led(stage: &LocalCluster, counts: impl Fn(&Status) -> bool) -> anyhow::Result<String> {
    let limit = clock::monotonic().plus(READY_WITHIN);
    while clock::monotonic() < limit {
        for replica in stage.replicas.iter().filter(|replica| replica.process.runs()) {
            if let Ok(mut asking) = OperatorConnection::connect(&replica.socket).await
                && let Ok(status) = asking.status().await
                && status.quorum
                && counts(&status)
                && let Some(leader) = status.leader
            {
                return Ok(leader);
            }
        }
        sleep(LEADER_LOOK_EVERY).await;
    }
    bail!("no replica leads after {} s", READY_WITHIN.as_secs())
}
