//! What replicas cost while nothing happens: memory, processor time, requests to the metadata service, and what they
//! write.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike as _;
use tokio::time::sleep;

use super::bare::Line;
use super::figure::Figure;
use crate::cli::say;
use crate::cli::stage::Stage;
use crate::consensus::Timing;
use crate::rpc::client::Asking;

/// As the kernel counts processor time for everybody (`man 5 proc_pid_stat`).
const TICKS_PER_SECOND: f64 = 100.0;
/// After the start and the election, so that what was made for them is let go.
const SETTLES_WITHIN: Duration = Duration::from_secs(5);
const TRIPS: u32 = 200;
/// What comes after a pause costs several times as much: nothing is in the caches any more.
const PAUSE: Duration = Duration::from_millis(10);
const KIB: f64 = 1024.0;

/// What one process has cost so far.
#[derive(Clone, Copy)]
struct Cost {
    ticks: f64,
    /// Nothing where only root is told.
    written: Option<f64>,
}

pub(super) async fn measure(stage: &Stage, seconds: u32) -> anyhow::Result<Vec<Figure>> {
    sleep(SETTLES_WITHIN).await;
    say(format_args!("nothing happens for {seconds} s"));
    let leader = Asking::connect(&stage.replicas[0].socket).await?.status().await?.leader.context("nobody leads")?;
    let pids: Vec<u32> = stage
        .replicas
        .iter()
        .map(|replica| replica.process.id().context("a replica does not run"))
        .collect::<Result<_, _>>()?;
    let costs = |pids: &[u32]| pids.iter().map(|pid| cost(*pid)).collect::<anyhow::Result<Vec<_>>>();
    let (began, before, asked) = (Instant::now(), costs(&pids)?, requests(stage)?);
    sleep(Duration::from_secs(seconds.into())).await;
    let (passed, after, answered) = (began.elapsed().as_secs_f64(), costs(&pids)?, requests(stage)?);
    let memory: Vec<f64> = pids.iter().filter_map(|pid| memory(*pid)).collect();
    let (mut leads, mut follows, mut written) = (Vec::new(), Vec::new(), Vec::new());
    for (replica, (before, after)) in stage.replicas.iter().zip(before.iter().zip(after)) {
        let busy = (after.ticks - before.ticks) / TICKS_PER_SECOND / passed * 100.0;
        if replica.name == leader { &mut leads } else { &mut follows }.push(busy);
        written
            .extend(after.written.zip(before.written).map(|(after, before)| (after - before) / KIB / passed * 3600.0));
    }
    let polls = (answered - asked) / passed / f64::from(u32::try_from(pids.len())?);
    let bare = bare_share().await?;
    let (of_a_leader, of_a_follower) = (bare * f64::from(u32::try_from(pids.len() - 1)?), bare);
    let floor = "as many round trips on loopback as it has heartbeats, each after a pause";
    let mut figures = vec![
        Figure::of("idle leader, processor time", "% of a core", leads, vec![of_a_leader], floor),
        Figure::of("idle follower, processor time", "% of a core", follows, vec![of_a_follower], floor),
        Figure::of(
            "idle replica, requests to the metadata service",
            "per s",
            vec![polls],
            vec![1.0],
            "one poll each second",
        ),
    ];
    if memory.is_empty() || written.is_empty() {
        say("what replicas hold in memory and what they write is told to root only, and left out");
    } else {
        let floor = "a program of this kind that does nothing";
        let nothing = vec![nothing().await?];
        figures.push(Figure::of("idle replica, resident in proportion", "MiB", memory, nothing, floor));
        figures.push(Figure::of("idle replica, written", "KiB per h", written, vec![0.0], "nothing that is new"));
    }
    Ok(figures)
}

fn cost(pid: u32) -> anyhow::Result<Cost> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name before it may hold anything.
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |place: usize| fields.get(place).and_then(|field| field.parse::<f64>().ok());
    let (user, system) = ticks(11).zip(ticks(12)).context("the kernel tells processor time in another way")?;
    Ok(Cost { ticks: user + system, written: line(&format!("/proc/{pid}/io"), "write_bytes:") })
}

/// Resident pages, those that are shared with others in proportion, in MiB.
fn memory(pid: u32) -> Option<f64> {
    Some(line(&format!("/proc/{pid}/smaps_rollup"), "Pss:")? / KIB)
}

/// Keys are in a replica's memory, so only root looks into it.
fn line(path: &str, name: &str) -> Option<f64> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// How many the cloud received of all replicas.
fn requests(stage: &Stage) -> anyhow::Result<f64> {
    let log = std::fs::read_to_string(stage.folder.join("requests.jsonl"))?;
    Ok(f64::from(u32::try_from(log.lines().count())?))
}

/// The memory of this program when it only waits, in MiB.
async fn nothing() -> anyhow::Result<f64> {
    let mut program = tokio::process::Command::new(std::env::current_exe()?);
    program.args(["demo-hook", "--takes", "1h", "--log", "/dev/null"]).stdout(std::process::Stdio::null());
    let mut program = program.kill_on_drop(true).spawn()?;
    sleep(Duration::from_secs(1)).await;
    let memory = program.id().and_then(memory);
    program.kill().await?;
    memory.context("nobody may look into a process of this user")
}

/// The share of a core, in percent, that as many round trips cost as one follower has heartbeats.
async fn bare_share() -> anyhow::Result<f64> {
    let mut line = Line::new().await?;
    let before = busy()?;
    for _ in 0..TRIPS {
        sleep(PAUSE).await;
        line.there_and_back().await?;
    }
    // Half of it is the other side's.
    let each = (busy()? - before) / f64::from(TRIPS) / 2.0;
    Ok(each / Timing::default().heartbeat.as_secs_f64() * 100.0)
}

/// Processor time of this process, in seconds.
fn busy() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_SELF)?;
    let micros = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    Ok(Duration::from_micros(u64::try_from(micros)?).as_secs_f64())
}
