//! The cost of a cluster as large as a scale set, and whether such a cluster answers as fast as a small cluster: few
//! replicas vote, all other replicas only follow.

use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use tokio::time::sleep;

use super::approvals::{UNPREPARED, first_poll, play, spread, waited};
use super::figure::Figure;
use super::meter::Meter;
use super::{idle, led, until_ready};
use crate::local_cluster::{HookSpeed, LocalCluster, SampleWorkload};
use allclear_server::exit::say;
use allclear_server::replica::clock;

/// Distance between the VMs of consecutive events, so that events name both voters and learners.
const STRIDE: usize = 7;
/// Number of killed replicas besides the leader.
const LOST: usize = 4;

pub(super) async fn measure(folder: &Path, replicas: u8, events: u32, seconds: u32) -> anyhow::Result<Vec<Figure>> {
    let folder = folder.join("many");
    std::fs::create_dir(&folder)?;
    let vms: Vec<String> = (0..replicas).map(|place| format!("db-{place}")).collect();
    say(format_args!("{replicas} replicas start"));
    let mut stage =
        LocalCluster::beside(vms, folder, NonZeroU32::MIN, &SampleWorkload::Hooks(HookSpeed::Instant)).await?;
    let figures = figures(&mut stage, events, seconds).await;
    stage.strike().await;
    figures
}

async fn figures(stage: &mut LocalCluster, events: u32, seconds: u32) -> anyhow::Result<Vec<Figure>> {
    let began = clock::monotonic();
    until_ready(stage).await?;
    let ready = clock::monotonic().since(began).as_secs_f64();
    say(format_args!("all replicas are ready after {ready:.1} s; the replicas stay idle for {seconds} s"));
    sleep(idle::SETTLES_WITHIN).await;
    let meter = Meter::begin(stage).await?;
    sleep(Duration::from_secs(seconds.into())).await;
    let still = meter.end(stage)?;
    let (mut waits, mut first_polls) = (Vec::new(), Vec::new());
    let meter = Meter::begin(stage).await?;
    for number in 0..events {
        let id = play(stage, spread(number), number as usize * STRIDE, UNPREPARED).await?;
        waits.push(waited(stage, &id)?);
        first_polls.push(first_poll(stage, &id)?);
        say(format_args!("{} of {events} events", number + 1));
    }
    let moved = meter.end(stage)?;
    // Leadership moves to VMs without an event.
    let busiest = moved.leads.iter().chain(&moved.follows).copied().fold(0.0, f64::max);
    let (lost, polls_then) = without_one(stage).await?;
    let trip = idle::bare_share().await?;
    let others = f64::from(u32::try_from(stage.replicas.len())?) - 1.0;
    let of = |what: &str| format!("{} replicas, {what}", stage.replicas.len());
    let trips = "as many round trips on loopback as the replica has heartbeats, each after a pause";
    let poll = "the first poll after the announcement";
    let share = "% of a core";
    let mut figures = vec![
        Figure::of(of("announcement to POST"), "ms", waits, first_polls, poll),
        Figure::of(of("the same while one is lost"), "ms", lost, polls_then, poll),
        Figure::of(of("idle leader"), share, still.leads, vec![trip * others], trips),
        Figure::of(of("busiest in these events"), share, vec![busiest], vec![trip * others], trips),
        Figure::of(of("idle follower"), share, still.follows, vec![trip], trips),
    ];
    let mut memory = moved.memory.into_iter();
    if let Some(leads) = memory.next() {
        let nothing = || async { anyhow::Ok(vec![idle::nothing().await?]) };
        let floor = "an idle program of this kind";
        figures.push(Figure::of(of("leader, resident"), "MiB", vec![leads], nothing().await?, floor));
        figures.push(Figure::of(of("follower, resident"), "MiB", memory.collect(), nothing().await?, floor));
    }
    Ok(figures)
}

/// Time from an announcement to the POST just after a kill of one replica: first of some followers, and then of the
/// leader.
async fn without_one(stage: &mut LocalCluster) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let (mut waits, mut first_polls) = (Vec::new(), Vec::new());
    let n = stage.replicas.len();
    for place in (0..n).step_by(n.div_ceil(LOST)).map(Some).chain([None]) {
        until_ready(stage).await?;
        // Leadership moves with each event that names the leader's VM.
        let leader = led(stage, |_| true).await?;
        let leads = || stage.replicas.iter().position(|replica| replica.name == leader);
        let place = place.or_else(leads).context("an unknown replica leads")?;
        let name = stage.replicas[place].name.clone();
        stage.replicas[place].process.kill().await?;
        let id = play(stage, spread(u32::try_from(place)?), place + 1, UNPREPARED).await?;
        waits.push(waited(stage, &id)?);
        first_polls.push(first_poll(stage, &id)?);
        let which = if name == leader { "the leader" } else { "a follower" };
        say(format_args!("{name}, {which}, is killed, and an event is approved"));
        stage.start(&name)?;
    }
    Ok((waits, first_polls))
}
