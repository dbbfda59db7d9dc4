//! The cost of idle replicas: memory, processor time, requests to the metadata service, and disk writes.

use std::time::Duration;

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use tokio::time::sleep;

use super::bare::{EchoPeer, PAUSE};
use super::figure::Figure;
use super::meter::{Meter, Metered, memory};
use crate::local_cluster::LocalCluster;
use allclear_server::consensus::RaftTiming;
use allclear_server::exit::say;

/// Time after start and election until the memory of both is freed.
pub(super) const SETTLES_WITHIN: Duration = Duration::from_secs(5);
const TRIPS: u32 = 200;

pub(super) async fn measure(stage: &LocalCluster, seconds: u32) -> anyhow::Result<Vec<Figure>> {
    sleep(SETTLES_WITHIN).await;
    say(format_args!("the replicas stay idle for {seconds} s"));
    let meter = Meter::begin(stage).await?;
    sleep(Duration::from_secs(seconds.into())).await;
    let Metered { leads, follows, memory, written, requests } = meter.end(stage)?;
    let bare = bare_share().await?;
    let (of_a_leader, of_a_follower) = (bare * f64::from(u32::try_from(follows.len())?), bare);
    let floor = "as many round trips on loopback as the replica has heartbeats, each after a pause";
    let mut figures = vec![
        Figure::of("idle leader, processor time", "% of a core", leads, vec![of_a_leader], floor),
        Figure::of("idle follower, processor time", "% of a core", follows, vec![of_a_follower], floor),
        Figure::of(
            "idle replica, requests to the metadata service",
            "per s",
            vec![requests],
            vec![1.0],
            "one poll each second",
        ),
    ];
    if memory.is_empty() || written.is_empty() {
        say("only root can read the replicas' memory and writes: the figures are left out");
    } else {
        let floor = "an idle program of this kind";
        let nothing = vec![nothing().await?];
        figures.push(Figure::of("idle replica, resident in proportion", "MiB", memory, nothing, floor));
        figures.push(Figure::of("idle replica, written", "KiB per h", written, vec![0.0], "no new entries"));
    }
    Ok(figures)
}

/// The memory of this program while waiting, in MiB.
pub(super) async fn nothing() -> anyhow::Result<f64> {
    let mut program = tokio::process::Command::new(std::env::current_exe()?);
    program.args(["demo-hook", "--takes", "1h", "--log", "/dev/null"]).stdout(std::process::Stdio::null());
    let mut program = program.kill_on_drop(true).spawn()?;
    sleep(Duration::from_secs(1)).await;
    let memory = program.id().and_then(memory);
    program.kill().await?;
    memory.context("the memory of a process of this user cannot be read")
}

/// The share of a core, in percent, of as many round trips as a follower has heartbeats.
pub(super) async fn bare_share() -> anyhow::Result<f64> {
    let mut line = EchoPeer::new()?;
    let before = busy()?;
    for _ in 0..TRIPS {
        sleep(PAUSE).await;
        line.there_and_back()?;
    }
    // The other half is the peer's.
    let each = (busy()? - before) / f64::from(TRIPS) / 2.0;
    Ok(each / RaftTiming::default().heartbeat.as_secs_f64() * 100.0)
}

/// Processor time of this process, in seconds.
fn busy() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?).as_secs_f64())
}
