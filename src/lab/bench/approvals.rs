//! How long an event waits for the cluster: from the announcement, and from the end of the last hook.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::figure::{Figure, ms};
use super::{EVENT_WITHIN, LOOK_EVERY, bare, led, span, until_ready};
use crate::fake_cloud::{CloudScenario, Post};
use crate::local_cluster::{LocalCluster, workloads_socket};
use allclear_client::{ConnectionState, Handle, Hook, Outcome, Phase, Workload};
use allclear_core::model::id::EventId;
use allclear_core::model::time::Timestamp;
use allclear_server::exit::say;
use allclear_server::grpc::client::OperatorConnection;
use allclear_server::replica::clock;

/// Distance of announcements within a second: any number of announcements is spread evenly over the second.
const SPREAD_MS: i64 = 618;

/// An event so brief that no hook of the sample workload is required.
pub(super) const UNPREPARED: &str = "type = \"Freeze\"\nduration_s = 0";
const PREPARED: &str = "type = \"Reboot\"\nsource = \"User\"";
/// More than a poll, so every replica has seen the event when the hook ends.
const HOOK_TAKES: Duration = Duration::from_millis(1_200);

pub(super) async fn measure(stage: &LocalCluster, events: u32) -> anyhow::Result<Vec<Figure>> {
    until_ready(stage).await?;
    let (mut unprepared, mut first_polls) = (Vec::new(), Vec::new());
    for number in 0..events {
        // Every third event names the leader's own VM, as on average in production.
        let vm = leader(stage).await? + number as usize;
        let id = play(stage, spread(number), vm, UNPREPARED).await?;
        unprepared.push(waited(stage, &id)?);
        first_polls.push(first_poll(stage, &id)?);
        say(format_args!("{} of {events} events", number + 1));
    }
    let prepared = outcomes_told(stage, events).await?;
    let synced = bare::synced_and_answered(&stage.folder, events).await?;
    let (first_poll, floor) =
        ("the first poll after the announcement", "one synced write and two round trips on loopback");
    Ok(vec![
        Figure::of("announcement to POST, nothing to prepare", "ms", unprepared, first_polls, first_poll),
        Figure::of("last hook's outcome to POST", "ms", prepared, synced, floor),
    ])
}

/// A workload that connects to the replica at `place`; the receiver gets the time since 1970 at which the hook ends
/// each time.
async fn dial_in(stage: &LocalCluster, place: usize) -> anyhow::Result<(Handle, mpsc::Receiver<Duration>)> {
    let socket = workloads_socket(&stage.folder, &stage.replicas[place].name);
    let (tell, told) = mpsc::channel(1);
    let drain = Hook::new(Phase::Drain, move |_| {
        let tell = tell.clone();
        async move {
            sleep(HOOK_TAKES).await;
            // A send error means that the measurement is over.
            let _ = tell.send(clock::since_1970()).await;
            Outcome::Done
        }
    });
    let workload = Workload::new("bench", socket).lease(EVENT_WITHIN).hook(drain).start()?;
    let mut connection = workload.connection();
    let connected = connection.wait_for(|now| matches!(now, ConnectionState::Connected { .. }));
    timeout(EVENT_WITHIN, connected).await.context("no replica accepted the workload in time")??;
    Ok((workload, told))
}

/// Milliseconds from the last outcome reported by a session workload.
async fn outcomes_told(stage: &LocalCluster, events: u32) -> anyhow::Result<Vec<f64>> {
    let mut dialled = Vec::new();
    for place in 0..stage.replicas.len() {
        dialled.push(dial_in(stage, place).await?);
    }
    let mut spans = Vec::new();
    for number in 0..events {
        let vm = (leader(stage).await? + number as usize) % stage.replicas.len();
        let told = &mut dialled[vm].1;
        ensure!(told.is_empty(), "a workload received a step more than once");
        let id = play(stage, spread(number), vm, PREPARED).await?;
        let told = told.recv().await.context("a workload has disconnected")?;
        let posted = Duration::from_micros(u64::try_from(post(stage, &id)?.at_us)?);
        spans.push(ms(posted.checked_sub(told).context("the wall clock was changed")?));
    }
    for (workload, _) in dialled {
        workload.leave().await?;
    }
    Ok(spans)
}

/// The leader's position.
async fn leader(stage: &LocalCluster) -> anyhow::Result<usize> {
    let leader = led(stage, |_| true).await?;
    stage.replicas.iter().position(|replica| replica.name == leader).context("an unknown replica leads")
}

/// The wait before announcement `number`. The announcements spread over all phases of the polls, which follow the
/// wall clock.
pub(super) fn spread(number: u32) -> Duration {
    let phase = i64::from(number) * SPREAD_MS;
    Duration::from_millis((phase - clock::now().0).rem_euclid(1_000).unsigned_abs())
}

/// Plays one event from the announcement until the cluster has closed the event.
pub(super) async fn play(stage: &LocalCluster, after: Duration, vm: usize, what: &str) -> anyhow::Result<EventId> {
    let id = announce(stage, after, vm, what)?;
    until_closed(stage, &id).await?;
    Ok(id)
}

/// Announces an event of one VM; `vm` counts modulo the number of VMs.
pub(super) fn announce(stage: &LocalCluster, after: Duration, vm: usize, what: &str) -> anyhow::Result<EventId> {
    let (at, vm) = (after.as_millis(), vm % stage.replicas.len());
    let text = format!(
        "about = \"a benchmark\"\n[[event]]\nat = {at}\nvm = {vm}\nnotice = \"15m\"\nstart_delay = 0\nimpact = 100\n\
         linger = 0\n{what}\n"
    );
    stage.cloud.play(&CloudScenario::parse("bench", &text)?)?;
    stage.cloud.scenario_events().into_iter().next().context("the fake cloud announced no event")
}

pub(super) async fn until_closed(stage: &LocalCluster, id: &EventId) -> anyhow::Result<()> {
    let runs = stage.replicas.iter().find(|replica| replica.process.runs()).context("no replica runs")?;
    let mut asking = OperatorConnection::connect(&runs.socket).await?;
    let limit = clock::monotonic().plus(EVENT_WITHIN);
    while !asking.event(id.as_str()).await.is_ok_and(|event| event.stage == "closed") {
        if clock::monotonic() > limit {
            bail!("event {id} is not closed after {} s", EVENT_WITHIN.as_secs());
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Milliseconds from the event's announcement to its only approval.
pub(super) fn waited(stage: &LocalCluster, id: &EventId) -> anyhow::Result<f64> {
    Ok(span(announced(stage, id)?, posted(stage, id)?))
}

/// Milliseconds from the event's announcement until any replica polls.
pub(super) fn first_poll(stage: &LocalCluster, id: &EventId) -> anyhow::Result<f64> {
    let announced = announced(stage, id)?;
    let polled = stage.cloud.polled_after(&clock::rfc3339(announced)).and_then(|at| clock::from_rfc3339(&at));
    Ok(span(announced, polled.context("no replica polled")?))
}

fn announced(stage: &LocalCluster, id: &EventId) -> anyhow::Result<Timestamp> {
    let events = stage.cloud.events();
    Ok(events.iter().find(|event| event.id == *id).context("the fake cloud no longer knows the event")?.announced_at)
}

/// Time at which the event's only approval arrived.
pub(super) fn posted(stage: &LocalCluster, id: &EventId) -> anyhow::Result<Timestamp> {
    clock::from_rfc3339(&post(stage, id)?.at).context("the fake cloud's log has no time")
}

fn post(stage: &LocalCluster, id: &EventId) -> anyhow::Result<Post> {
    let mut posts: Vec<_> = stage.cloud.posts().into_iter().filter(|post| post.event == *id).collect();
    match posts.pop() {
        Some(post) if posts.is_empty() => Ok(post),
        more => bail!("{} POSTs for event {id}, where there should be one", posts.len() + usize::from(more.is_some())),
    }
}
