//! The figures of three replicas twice, with nothing open and then with as much as they take: many open events, a long
//! history and many workloads. The first are the floor of the second.

use std::fmt::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::time::sleep;

use super::approvals::{UNPREPARED, play, spread, until_closed, waited};
use super::figure::{Figure, ms};
use super::meter::Meter;
use super::{Bench, idle, leaders, requests, sessions, until_ready};
use crate::cli::say;
use crate::cli::stage::{Hooks, Stage, Workload};
use crate::fake_cloud::Scenario;
use crate::machine::id::EventId;
use crate::rpc::client::Asking;

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// As many as a scenario has.
const AT_ONCE: u32 = 100;
/// With one more, which is approved, as many as a document may have.
const MOST_OPEN: u32 = 999;
/// Every replica polls at least twice until then.
const SHOWN_FOR: &str = "cancel_after = \"3s\"";
const FOR_LONG: &str = "notice = \"24h\"";
const WITHIN: Duration = Duration::from_mins(1);
const RESTARTS: u32 = 5;
const ASKED: u32 = 20;

#[derive(clap::Args)]
pub(super) struct Load {
    /// How many events are open while the load is measured
    #[arg(long, value_name = "N", default_value_t = MOST_OPEN, value_parser = clap::value_parser!(u32).range(0..=i64::from(MOST_OPEN)))]
    open: u32,
    /// How many events have come and gone before the load is measured
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    history: u32,
}

pub(super) async fn measure(folder: &Path, options: &Bench) -> anyhow::Result<Vec<Figure>> {
    let folder = folder.join("load");
    std::fs::create_dir(&folder)?;
    let hooks = Workload::Hooks(Hooks::Instant);
    let mut stage = Stage::set_up(folder, NonZeroU32::MIN, &hooks).await?;
    let figures = figures(&mut stage, options).await;
    stage.strike().await;
    figures
}

async fn figures(stage: &mut Stage, options: &Bench) -> anyhow::Result<Vec<Figure>> {
    let Load { open, history } = options.load;
    say("three replicas with nothing open");
    let bare = Weighed::of(stage, options, 0).await?;
    for round in 0..history.div_ceil(MOST_OPEN) {
        let begun = round * MOST_OPEN;
        let last = announce(stage, begun..history.min(begun + MOST_OPEN), SHOWN_FOR)?;
        until_closed(stage, &last).await?;
        until_open(stage, 0).await?;
        say(format_args!("{} of {history} events have come and gone", history.min(begun + MOST_OPEN)));
    }
    let _dialled = sessions::dial_in(stage, 0, options.workloads, Duration::ZERO).await?;
    if open > 0 {
        announce(stage, history..history + open, FOR_LONG)?;
    }
    until_open(stage, open).await?;
    say(format_args!("{open} events are open"));
    let laden = Weighed::of(stage, options, open).await?;
    Ok(laden.beside(bare))
}

/// What the same replicas cost and how soon they answer.
struct Weighed {
    approvals: Vec<f64>,
    leads: Vec<f64>,
    follows: Vec<f64>,
    memory: Vec<f64>,
    starts: Vec<f64>,
    /// Of its status, and of a server that sends the same bytes.
    answers: [Vec<f64>; 2],
}

impl Weighed {
    async fn of(stage: &mut Stage, options: &Bench, open: u32) -> anyhow::Result<Self> {
        until_ready(stage).await?;
        sleep(idle::SETTLES_WITHIN).await;
        let meter = Meter::begin(stage).await?;
        sleep(Duration::from_secs(options.seconds.into())).await;
        let still = meter.end(stage)?;
        let mut approvals = Vec::new();
        for number in 0..options.events {
            // Not on the first VM: the workloads that dialled in are there, and some of them have hooks.
            let id = play(stage, spread(number), 1 + number as usize % 2, UNPREPARED).await?;
            approvals.push(waited(stage, &id)?);
        }
        let answers = requests::in_turn(&stage.replicas[0].status.to_string(), ASKED).await?;
        let mut starts = Vec::new();
        for _ in 0..RESTARTS {
            starts.push(started(stage, open).await?);
            until_ready(stage).await?;
        }
        Ok(Self { approvals, leads: still.leads, follows: still.follows, memory: still.memory, starts, answers })
    }

    fn beside(self, bare: Self) -> Vec<Figure> {
        let same = "the same with nothing open";
        let [answers, same_bytes] = self.answers;
        let of = |what, unit, values, bare| Figure::of(format!("under load, {what}"), unit, values, bare, same);
        let mut figures = vec![
            of("announcement to POST", "ms", self.approvals, bare.approvals),
            of("idle leader", "% of a core", self.leads, bare.leads),
            of("idle follower", "% of a core", self.follows, bare.follows),
            of("started until it tells what is open", "ms", self.starts, bare.starts),
            Figure::of(
                "under load, status, asked by one",
                "ms",
                answers,
                same_bytes,
                "a server that sends the same bytes",
            ),
        ];
        if !self.memory.is_empty() {
            figures.push(of("replica, resident", "MiB", self.memory, bare.memory));
        }
        figures
    }
}

/// Events about VMs that are not in the cluster, as in a scale set with others beside it: they are watched until they are
/// gone. Tells the last of them.
fn announce(stage: &Stage, numbers: std::ops::Range<u32>, until: &str) -> anyhow::Result<EventId> {
    let numbers: Vec<u32> = numbers.collect();
    for some in numbers.chunks(AT_ONCE as usize) {
        let mut text = "about = \"other VMs\"\n".to_owned();
        for number in some {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "[[event]]\nat = 0\nvm = \"vm-{number}\"\ntype = \"Freeze\"\nduration_s = 5\n\
                 description = \"Host server is undergoing maintenance.\"\n{until}"
            );
        }
        stage.cloud.play(&Scenario::parse("others", &text)?)?;
    }
    stage.cloud.scenario_events().pop().context("the cloud plays no event")
}

/// Until every replica knows of so many open events.
async fn until_open(stage: &Stage, count: u32) -> anyhow::Result<()> {
    let limit = Instant::now() + WITHIN;
    for replica in &stage.replicas {
        let mut asking = Asking::connect(&replica.socket).await?;
        while asking.status().await?.events.len() != count as usize {
            if Instant::now() > limit {
                bail!("{} does not know {count} open events after {} s", replica.name, WITHIN.as_secs());
            }
            sleep(LOOK_EVERY * 20).await;
        }
    }
    Ok(())
}

/// From the start of a follower that was killed until it tells who leads and all that is open.
async fn started(stage: &mut Stage, open: u32) -> anyhow::Result<f64> {
    let leader = leaders::led(stage, |_| true).await?;
    // The workloads dialled in at the first one.
    let place = stage.replicas.iter().rposition(|replica| replica.name != leader).context("nobody follows")?;
    stage.replicas[place].process.kill().await?;
    let name = stage.replicas[place].name.clone();
    let began = Instant::now();
    stage.start(&name)?;
    loop {
        if let Ok(mut asking) = Asking::connect(&stage.replicas[place].socket).await
            && let Ok(status) = asking.status().await
            && status.leader.is_some()
            && status.events.len() >= open as usize
        {
            return Ok(ms(began.elapsed()));
        }
        if began.elapsed() > WITHIN {
            bail!("{name} does not tell what is open {} s after its start", WITHIN.as_secs());
        }
        sleep(LOOK_EVERY).await;
    }
}
