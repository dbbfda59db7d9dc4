//! How long an event waits for the cluster: from its announcement, from the end of its last hook, and each hook for its
//! beginning.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use tokio::process::Command;
use tokio::time::sleep;

use super::figure::{Figure, ms};
use super::leaders::led;
use super::{EVENT_WITHIN, LOOK_EVERY, bare, sessions, span, until_ready};
use crate::cli::demo_hook::{self, Note};
use crate::cli::say;
use crate::cli::stage::{Stage, moment};
use crate::fake_cloud::{Post, Scenario};
use crate::machine::id::EventId;
use crate::machine::time::Timestamp;
use crate::replica::clock;
use crate::rpc::client::Asking;

/// Announcements are this much apart within a second: however many there are, no part of it has more than another.
const SPREAD_MS: i64 = 618;

/// So brief that no hook of the sample workload is worth it.
pub(super) const UNPREPARED: &str = "type = \"Freeze\"\nduration_s = 0";
const PREPARED: &str = "type = \"Reboot\"\nsource = \"User\"";
/// More than a poll, so every replica has seen the event when it ends.
const HOOK_TAKES: Duration = Duration::from_millis(1_200);

pub(super) async fn measure(stage: &Stage, events: u32) -> anyhow::Result<Vec<Figure>> {
    until_ready(stage).await?;
    let (mut unprepared, mut first_polls, mut prepared, mut begun) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for number in 0..events {
        // Every third event names the leader's own VM, as chance would have it.
        let vm = leader(stage).await? + number as usize;
        let id = play(stage, spread(number), vm, UNPREPARED).await?;
        unprepared.push(waited(stage, &id)?);
        first_polls.push(first_poll(stage, &id)?);
        let vm = leader(stage).await? + number as usize;
        let id = play(stage, spread(number), vm, PREPARED).await?;
        prepared.push(from_last_hook(stage, &id)?);
        begun.extend(beginnings(stage, &id).await?);
        say(format_args!("{} of {events} events", number + 1));
    }
    let told = outcomes_told(stage, events).await?;
    let floors = bare::synced_and_answered(&stage.folder, events, 2, bare::LONG_PAUSE).await?;
    let warm = bare::synced_and_answered(&stage.folder, events, 2, bare::PAUSE).await?;
    let floor = "one synced write and two round trips on loopback";
    let [calls, trips] = bare::called_and_answered(&stage.replicas[0].socket, events).await?;
    Ok(vec![
        Figure::of(
            "announcement to POST, nothing to prepare",
            "ms",
            unprepared,
            first_polls,
            "the first poll after the announcement",
        ),
        Figure::of("last hook's outcome to POST", "ms", told, floors, floor),
        Figure::of("last command's last act to POST", "ms", prepared, warm, floor),
        Figure::of(
            "hook assigned to a follower to its first act",
            "ms",
            begun,
            starts(stage, events).await?,
            "the same program started by nobody else",
        ),
        Figure::of("a call that a replica answers from memory", "ms", calls, trips, "a round trip on loopback"),
    ])
}

/// From when a workload that dialled in told the last outcome.
async fn outcomes_told(stage: &Stage, events: u32) -> anyhow::Result<Vec<f64>> {
    let mut dialled = Vec::new();
    for place in 0..stage.replicas.len() {
        dialled.push(sessions::dial_in(stage, place, HOOK_TAKES).await?);
    }
    let mut spans = Vec::new();
    for number in 0..events {
        let vm = (leader(stage).await? + number as usize) % stage.replicas.len();
        ensure!(dialled[vm].told.is_empty(), "a workload was given a step more than once");
        let id = play(stage, spread(number), vm, PREPARED).await?;
        let told = dialled[vm].told.recv().await.context("a workload has gone")?;
        let posted = Duration::from_micros(u64::try_from(post(stage, &id)?.at_us)?);
        spans.push(ms(posted.checked_sub(told).context("a wall clock was set")?));
    }
    for dialled in dialled {
        dialled.leave().await?;
    }
    Ok(spans)
}

/// The place of the replica that leads.
async fn leader(stage: &Stage) -> anyhow::Result<usize> {
    let leader = led(stage, |_| true).await?;
    stage.replicas.iter().position(|replica| replica.name == leader).context("an unknown replica leads")
}

/// How long to wait with one of many announcements, so that they meet the polls, which go by the wall clock, at all
/// moments.
pub(super) fn spread(number: u32) -> Duration {
    let phase = i64::from(number) * SPREAD_MS;
    Duration::from_millis((phase - clock::now().0).rem_euclid(1_000).unsigned_abs())
}

/// One event from its announcement until the cluster has closed it.
pub(super) async fn play(stage: &Stage, after: Duration, vm: usize, what: &str) -> anyhow::Result<EventId> {
    let id = announce(stage, after, vm, what)?;
    until_closed(stage, &id).await?;
    Ok(id)
}

/// About one VM; they are counted round.
pub(super) fn announce(stage: &Stage, after: Duration, vm: usize, what: &str) -> anyhow::Result<EventId> {
    let (at, vm) = (after.as_millis(), vm % stage.replicas.len());
    let text = format!(
        "about = \"a benchmark\"\n[[event]]\nat = {at}\nvm = {vm}\nnotice = \"15m\"\nstart_delay = 0\nimpact = 100\n\
         linger = 0\n{what}\n"
    );
    stage.cloud.play(&Scenario::parse("bench", &text)?)?;
    stage.cloud.scenario_events().into_iter().next().context("the cloud plays no event")
}

pub(super) async fn until_closed(stage: &Stage, id: &EventId) -> anyhow::Result<()> {
    let runs = stage.replicas.iter().find(|replica| replica.process.runs()).context("no replica runs")?;
    let mut asking = Asking::connect(&runs.socket).await?;
    let limit = clock::steady().plus(EVENT_WITHIN);
    while !asking.event(id.as_str()).await.is_ok_and(|event| event.stage == "closed") {
        if clock::steady() > limit {
            bail!("event {id} is not closed after {} s", EVENT_WITHIN.as_secs());
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// From its announcement to its one approval.
pub(super) fn waited(stage: &Stage, id: &EventId) -> anyhow::Result<f64> {
    Ok(span(announced(stage, id)?, posted(stage, id)?))
}

/// From its announcement until any replica asks what there is.
pub(super) fn first_poll(stage: &Stage, id: &EventId) -> anyhow::Result<f64> {
    let announced = announced(stage, id)?;
    let polled = stage.cloud.polled_after(&clock::rfc3339(announced)).and_then(|at| moment::read(&at));
    Ok(span(announced, polled.context("nobody polled")?))
}

fn announced(stage: &Stage, id: &EventId) -> anyhow::Result<Timestamp> {
    let events = stage.cloud.events();
    Ok(events.iter().find(|event| event.id == *id).context("the cloud forgot an event")?.announced_at)
}

/// When its one approval arrived.
pub(super) fn posted(stage: &Stage, id: &EventId) -> anyhow::Result<Timestamp> {
    moment::read(&post(stage, id)?.at).context("the cloud's log has no time")
}

fn post(stage: &Stage, id: &EventId) -> anyhow::Result<Post> {
    let mut posts: Vec<_> = stage.cloud.posts().into_iter().filter(|post| post.event == *id).collect();
    match posts.pop() {
        Some(post) if posts.is_empty() => Ok(post),
        more => bail!("{} POSTs for event {id}, where there should be one", posts.len() + usize::from(more.is_some())),
    }
}

fn notes(stage: &Stage, id: &EventId) -> anyhow::Result<Vec<Note>> {
    let notes = demo_hook::notes(&stage.hook_log())?;
    Ok(notes.into_iter().filter(|note| EventId::new(&note.event) == *id).collect())
}

/// From when the last hook that prepares said that it was done.
fn from_last_hook(stage: &Stage, id: &EventId) -> anyhow::Result<f64> {
    let notes = notes(stage, id)?;
    let prepared = notes.iter().filter(|note| note.done && note.phase != "restore");
    let done = prepared.map(|note| note.at_us).max().context("no hook ran")?;
    let span = u64::try_from(post(stage, id)?.at_us - done).context("a wall clock was set")?;
    Ok(ms(Duration::from_micros(span)))
}

/// From each entry that gave a follower a hook to run until the hook did something.
async fn beginnings(stage: &Stage, id: &EventId) -> anyhow::Result<Vec<f64>> {
    let mut asking = Asking::connect(&stage.replicas[0].socket).await?;
    let leader = asking.status().await?.leader.context("nobody leads")?;
    let begun = notes(stage, id)?.into_iter().filter(|note| !note.done);
    let mut spans = Vec::new();
    let hooks = asking.event(id.as_str()).await?.hooks;
    for note in begun {
        let hook = hooks.iter().find(|hook| hook.attempt == note.attempt).context("a hook ran that is in no log")?;
        if hook.on != leader {
            let assigned = moment::read(&hook.started_at).context("a hook has no time")?;
            spans.push(span(assigned, note.at()));
        }
    }
    Ok(spans)
}

/// How long a hook takes to begin when this process starts it.
async fn starts(stage: &Stage, times: u32) -> anyhow::Result<Vec<f64>> {
    let log = stage.folder.join("alone.jsonl");
    let mut spans = Vec::new();
    for _ in 0..times {
        let began = Instant::now();
        let mut hook = Command::new(std::env::current_exe()?);
        hook.args(["demo-hook", "--takes", "0s", "--log"]).arg(&log).stdout(Stdio::null());
        hook.status().await?;
        spans.push(ms(began.elapsed()));
    }
    Ok(spans)
}
