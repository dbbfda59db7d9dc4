//! A workload that dials in, does what it is given, and tells when it was done.

use std::time::Duration;

use anyhow::{Context as _, ensure};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt as _};

use crate::cli::stage::Stage;
use crate::replica::clock;
use crate::wire::pb::allclear::workload::v1 as pb;
use crate::wire::pb::allclear::workload::v1::from_workload::Message as Says;
use crate::wire::pb::allclear::workload::v1::outcome::Variant;
use crate::wire::pb::allclear::workload::v1::report::News;
use crate::wire::pb::allclear::workload::v1::to_workload::Message as Told;
use crate::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;

const NAME: &str = "bench";
const BEAT_EVERY: Duration = Duration::from_secs(10);
const LEASE: Duration = Duration::from_mins(1);
const WITHIN: Duration = Duration::from_mins(1);

/// Takes part until this is dropped.
pub(super) struct Dialled {
    door: String,
    workload: JoinSet<anyhow::Result<()>>,
    /// When it told each outcome, since 1970.
    pub(super) told: mpsc::Receiver<Duration>,
}

/// Dials in at one replica, by its place; its hook takes so long.
pub(super) async fn dial_in(stage: &Stage, place: usize, takes: Duration) -> anyhow::Result<Dialled> {
    let name = &stage.replicas.get(place).context("there is no such replica")?.name;
    let door = format!("unix://{}", stage.folder.join(format!("{name}.workloads")).display());
    let hook = pb::Hook { phase: pb::Phase::Drain.into(), can_confirm: true, ..pb::Hook::default() };
    let hello = pb::Hello {
        versions: vec![1],
        workload: NAME.into(),
        boot: NAME.into(),
        hooks: vec![hook],
        lease_ms: Some(u64::try_from(LEASE.as_millis())?),
        ..pb::Hello::default()
    };
    let (say, said) = mpsc::channel(16);
    say.send(pb::FromWorkload { message: Some(Says::Hello(hello)) }).await?;
    let mut heard =
        WorkloadsClient::connect(door.clone()).await?.session(ReceiverStream::new(said)).await?.into_inner();
    let welcome = timeout(WITHIN, heard.message()).await??.and_then(|first| first.message);
    ensure!(matches!(welcome, Some(Told::Welcome(_))), "the workload was not welcomed");
    let (telling, told) = mpsc::channel(1);
    let mut workload = JoinSet::new();
    workload.spawn(take_part(say, heard, takes, telling));
    Ok(Dialled { door, workload, told })
}

impl Dialled {
    /// Nobody waits for it any more.
    pub(super) async fn leave(mut self) -> anyhow::Result<()> {
        self.workload.shutdown().await;
        let mut asking = WorkloadsClient::connect(self.door).await?;
        asking.unregister(pb::UnregisterRequest { workload: NAME.into(), force: false }).await?;
        Ok(())
    }
}

async fn take_part<E: std::error::Error + Send + Sync + 'static>(
    say: mpsc::Sender<pb::FromWorkload>,
    mut heard: impl Stream<Item = Result<pb::ToWorkload, E>> + Unpin,
    takes: Duration,
    telling: mpsc::Sender<Duration>,
) -> anyhow::Result<()> {
    let mut beats = interval(BEAT_EVERY);
    let mut told = Duration::ZERO;
    loop {
        let message = tokio::select! {
            message = heard.next() => message.context("the session ended")??.message,
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
            Some(Told::Acknowledged(_)) => telling.send(told).await?,
            _ => {}
        }
    }
}
