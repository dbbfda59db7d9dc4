//! Workloads that dial in, and what many of them cost: a thousand at one replica, a tenth of which are given something
//! to do at once.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;

use super::approvals::play;
use super::figure::{Figure, ms};
use super::{bare, moment, span};
use crate::cli::run::allow_many_connections;
use crate::cli::say;
use crate::cli::stage::Stage;
use crate::replica::clock;
use crate::rpc::client::Asking;
use crate::wire::pb::allclear::workload::v1 as pb;
use crate::wire::pb::allclear::workload::v1::from_workload::Message as Says;
use crate::wire::pb::allclear::workload::v1::outcome::Variant;
use crate::wire::pb::allclear::workload::v1::report::News;
use crate::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use crate::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;

/// One of so many has a hook.
const ONE_OF: u32 = 10;
/// As many dial at the same moment.
const DIAL_AT_ONCE: usize = 50;
const BEAT_EVERY: Duration = Duration::from_secs(10);
const LEASE: Duration = Duration::from_mins(1);
const WITHIN: Duration = Duration::from_mins(3);

/// What one workload saw of its step, since 1970.
pub(super) struct Seen {
    workload: String,
    /// When it told the outcome.
    pub(super) told: Duration,
    acknowledged: Duration,
}

/// Dials with so many, and has one event prepared by some of them.
pub(super) async fn measure(stage: &Stage, count: u32) -> anyhow::Result<Vec<Figure>> {
    let Dialled { workloads: _workloads, mut seen, .. } = dial_in(stage, 0, count, Duration::ZERO).await?;
    let id = play(stage, Duration::ZERO, 0, "type = \"Reboot\"\nsource = \"User\"").await?;
    let mut all = BTreeMap::new();
    while let Ok(Some(one)) = timeout(Duration::from_secs(1), seen.recv()).await {
        ensure!(all.insert(one.workload.clone(), one).is_none(), "a workload was given its step twice");
    }
    ensure!(all.len() == count.div_ceil(ONE_OF) as usize, "{} steps were acknowledged", all.len());
    let mut asking = Asking::connect(&stage.replicas[0].socket).await?;
    let event = asking.event(id.as_str()).await?;
    let mut whole = Vec::new();
    for hook in event.hooks.iter().filter(|hook| all.contains_key(&hook.workload)) {
        ensure!(hook.outcome.as_deref() == Some("done"), "{} is not done", hook.workload);
        // Both are the cluster's time, which may be another than the wall clock's.
        let (start, end) = (moment::read(&hook.started_at), hook.ended_at.as_deref().and_then(moment::read));
        whole.push(span(start.context("a hook has no time")?, end.context("a hook has no end")?));
    }
    ensure!(whole.len() == all.len(), "{} attempts for {} steps", whole.len(), all.len());
    let waited = |one: &Seen| one.acknowledged.checked_sub(one.told).map(ms).context("a wall clock was set");
    let acknowledged = all.values().map(waited).collect::<anyhow::Result<_>>()?;
    let bare = bare::synced_and_answered(&stage.folder, count.div_ceil(ONE_OF), 1, bare::PAUSE).await?;
    let floor = "one synced write and one round trip on loopback";
    Ok(vec![
        Figure::of("attempt in the log to its outcome there", "ms", whole, bare.clone(), floor),
        Figure::of("outcome told to acknowledged", "ms", acknowledged, bare, floor),
    ])
}

/// Workloads that take part until this is dropped.
pub(super) struct Dialled {
    door: String,
    workloads: JoinSet<anyhow::Result<()>>,
    pub(super) seen: mpsc::Receiver<Seen>,
}

/// So many dial in at one replica, by its place; their hooks take so long.
pub(super) async fn dial_in(stage: &Stage, place: usize, count: u32, takes: Duration) -> anyhow::Result<Dialled> {
    allow_many_connections();
    let name = &stage.replicas.get(place).context("there is no such replica")?.name;
    let door = format!("unix://{}", stage.folder.join(format!("{name}.workloads")).display());
    let began = clock::steady();
    let (here, mut arrivals) = mpsc::channel(1);
    let (seeing, seen) = mpsc::channel(count as usize);
    let dialling = Arc::new(Semaphore::new(DIAL_AT_ONCE));
    let mut workloads = JoinSet::new();
    for number in 0..count {
        let one = take_part(door.clone(), number, takes, dialling.clone(), here.clone(), seeing.clone());
        workloads.spawn(one);
    }
    // Theirs alone hold the channels open, so that they end when something goes wrong.
    drop((here, seeing));
    for number in 0..count {
        let arrived = timeout(WITHIN, arrivals.recv()).await.ok().flatten();
        if arrived.is_none() {
            bail!("{number} of {count} workloads were taken in: {}", failure(&mut workloads).await);
        }
    }
    say(format_args!("{count} workloads were taken in within {} ms", span(began, clock::steady())));
    Ok(Dialled { door, workloads, seen })
}

impl Dialled {
    /// Nobody waits for them any more.
    pub(super) async fn leave(mut self) -> anyhow::Result<()> {
        let count = self.workloads.len();
        self.workloads.shutdown().await;
        let mut asking = WorkloadsClient::connect(self.door).await?;
        for number in 0..count {
            asking.unregister(pb::UnregisterRequest { workload: named(number), force: false }).await?;
        }
        Ok(())
    }
}

fn named(number: impl std::fmt::Display) -> String {
    format!("bench-{number}")
}

async fn failure(workloads: &mut JoinSet<anyhow::Result<()>>) -> String {
    while let Some(Ok(ended)) = workloads.join_next().await {
        if let Err(error) = ended {
            return format!("{error:#}");
        }
    }
    "nobody says why".to_owned()
}

/// One workload, until it is dropped.
async fn take_part(
    door: String,
    number: u32,
    takes: Duration,
    dialling: Arc<Semaphore>,
    here: mpsc::Sender<()>,
    seeing: mpsc::Sender<Seen>,
) -> anyhow::Result<()> {
    let workload = named(number);
    let hook = pb::Hook { phase: pb::Phase::Drain.into(), can_confirm: true, ..pb::Hook::default() };
    let hello = pb::Hello {
        versions: vec![1],
        workload: workload.clone(),
        boot: "bench".into(),
        hooks: if number.is_multiple_of(ONE_OF) { vec![hook] } else { Vec::new() },
        lease_ms: Some(u64::try_from(LEASE.as_millis())?),
        ..pb::Hello::default()
    };
    let (say, said) = mpsc::channel(16);
    say.send(pb::FromWorkload { message: Some(Says::Hello(hello)) }).await?;
    let turn = dialling.acquire().await?;
    let mut heard = WorkloadsClient::connect(door).await?.session(ReceiverStream::new(said)).await?.into_inner();
    let welcome = heard.message().await?.and_then(|first| first.message);
    ensure!(matches!(welcome, Some(Told::Welcome(_))), "{workload} was not welcomed");
    drop(turn);
    here.send(()).await?;
    let mut beats = interval(BEAT_EVERY);
    let mut told = Duration::ZERO;
    loop {
        let message = tokio::select! {
            message = heard.message() => message?.context("the session ended")?.message,
            _ = beats.tick() => {
                say.send(pb::FromWorkload { message: Some(Says::Heartbeat(pb::Heartbeat { role: 0 })) }).await?;
                continue;
            }
        };
        match message {
            Some(Told::Step(step)) => {
                sleep(takes).await;
                told = clock::since_1970();
                let done = pb::Outcome { variant: Some(Variant::Done(pb::Nothing {})) };
                let report = pb::Report { attempt: step.attempt, news: Some(News::Outcome(done)) };
                say.send(pb::FromWorkload { message: Some(Says::Report(report)) }).await?;
            }
            Some(Told::Acknowledged(_)) => {
                let acknowledged = clock::since_1970();
                seeing.send(Seen { workload: workload.clone(), told, acknowledged }).await?;
            }
            _ => {}
        }
    }
}
