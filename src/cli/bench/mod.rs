//! `allclear bench`: how long the cluster takes to answer, each figure beside what it cannot get below.
//!
//! Three replicas as processes, a fake cloud, one event after another, announced at different moments of the polls.

mod leaders;
mod sessions;

use std::io::Write as _;
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use serde::Serialize;
use tokio::time::sleep;

use super::demo_hook;
use super::signals::asked_to_stop;
use super::stage::{Hooks, Stage, VMS, Workload, folder, moment};
use super::{Exit, runtime, say};
use crate::consensus::Timing;
use crate::fake_cloud::Scenario;
use crate::machine::id::EventId;
use crate::machine::time::Timestamp;
use crate::metadata::{ApiVersion, Endpoint, Options, Timeouts};
use crate::replica::clock;
use crate::rpc::client::Asking;

const LOOK_EVERY: Duration = Duration::from_millis(100);
const READY_WITHIN: Duration = Duration::from_mins(1);
const EVENT_WITHIN: Duration = Duration::from_mins(1);
/// Announcements are this much apart within a second, so that they meet the polls at all moments.
const SPREAD_MS: u64 = 370;
/// About one entry of the log.
const ENTRY_BYTES: usize = 200;

/// Measures how long the cluster takes to answer, each figure beside what it cannot get below
#[derive(clap::Args)]
pub(super) struct Bench {
    /// How many events for each figure
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    events: u32,
    /// How many workloads dial in at once
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=1000))]
    workloads: u32,
    /// Prints JSON
    #[arg(long)]
    json: bool,
}

/// One figure with its floor, in milliseconds.
#[derive(Serialize)]
struct Figure {
    name: &'static str,
    median_ms: i64,
    /// One of a hundred takes longer.
    p99_ms: i64,
    worst_ms: i64,
    floor_ms: i64,
    /// What the floor is.
    floor: &'static str,
}

impl Bench {
    pub(super) fn run(self) -> Exit {
        let folder = match folder::make() {
            Ok(folder) => folder,
            Err(error) => {
                say(format_args!("the benchmark has no folder: {error}"));
                return Exit::Failed;
            }
        };
        let measured = match runtime() {
            Ok(runtime) => runtime.block_on(self.measure(&folder)),
            Err(exit) => return exit,
        };
        folder::end_leftovers(&folder);
        // What is left of it is only a nuisance.
        let _ = std::fs::remove_dir_all(&folder);
        match measured {
            Ok(figures) => self.tell(&figures),
            Err(error) => {
                say(format_args!("nothing was measured: {error:#}"));
                Exit::Failed
            }
        }
    }

    async fn measure(&self, folder: &Path) -> anyhow::Result<Vec<Figure>> {
        let stop = asked_to_stop()?;
        let mut stage = Stage::set_up(folder.into(), NonZeroU32::MIN, &Workload::Hooks(Hooks::Instant)).await?;
        let measured = tokio::select! {
            figures = self.figures(&mut stage) => figures,
            () = stop => Err(anyhow::anyhow!("it was stopped before its end")),
        };
        stage.strike().await;
        measured
    }

    async fn figures(&self, stage: &mut Stage) -> anyhow::Result<Vec<Figure>> {
        until_ready(stage).await?;
        let (mut unprepared, mut first_polls, mut prepared) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..self.events {
            // So brief that no hook of the sample workload is worth it.
            let id = play(stage, number, "type = \"Freeze\"\nduration_s = 0").await?;
            let announced = announced(stage, &id)?;
            unprepared.push(span(announced, posted(stage, &id)?));
            let polled = stage.cloud.polled_after(&clock::rfc3339(announced)).and_then(|at| moment::read(&at));
            first_polls.push(span(announced, polled.context("nobody polled")?));
            let id = play(stage, number, "type = \"Reboot\"\nsource = \"User\"").await?;
            prepared.push(span(last_hook(stage, &id)?, posted(stage, &id)?));
            say(format_args!("{} of {} events", number + 1, self.events));
        }
        let bare = self.bare(stage).await?;
        say(format_args!("leadership is handed over {} times", self.events));
        let (handed_over, untouched) = leaders::handed_over(&stage.folder, self.events).await?;
        say(format_args!("the leader is killed {} times", self.events));
        let killed = leaders::killed(stage, self.events).await?;
        let dialled = sessions::measure(stage, self.workloads).await?;
        // The followers wait until its lease is over, and then for their own patience.
        let Timing { heartbeat, election_timeout: (shortest, lease), .. } = Timing::default();
        let patience = (lease + shortest).saturating_sub(heartbeat);
        let figures = vec![
            Figure::of(
                "announcement to POST, nothing to prepare",
                unprepared,
                first_polls,
                "the first poll after the announcement",
            ),
            Figure::of("last hook to POST", prepared, bare, "one poll, one POST and two synced writes by one process"),
            Figure::of(
                "leadership handed over, as a writer sees it",
                handed_over,
                untouched,
                "the longest of its pauses in a second without it",
            ),
            Figure::of(
                "leader killed to the next leader",
                killed,
                vec![i64::try_from(patience.as_millis())?],
                "its lease and the shortest election timeout, less a heartbeat",
            ),
        ];
        Ok(figures.into_iter().chain(dialled).collect())
    }

    /// What the way from the last hook to the post consists of at the least: its end and the claim are written down by
    /// a quorum, a fresh document is taken, and the approval is posted.
    async fn bare(&self, stage: &Stage) -> anyhow::Result<Vec<i64>> {
        let endpoint = Endpoint::new(Options {
            endpoint: stage.cloud.endpoint(VMS[0]).context("the first VM has an endpoint")?,
            version: ApiVersion::newest(),
            timeouts: Timeouts::default(),
            clock: clock::now,
        })?;
        let mut file = std::fs::File::create(stage.folder.join("floor"))?;
        let mut spans = Vec::new();
        for _ in 0..self.events {
            let began = clock::steady();
            for _ in 0..2 {
                file.write_all(&[0; ENTRY_BYTES])?;
                file.sync_data()?;
            }
            endpoint.poll().await?;
            endpoint.approve(&EventId::new("nobody's")).await;
            spans.push(span(began, clock::steady()));
            sleep(LOOK_EVERY).await;
        }
        Ok(spans)
    }

    fn tell(&self, figures: &[Figure]) -> Exit {
        let text = if self.json {
            serde_json::to_string(figures).unwrap_or_default() + "\n"
        } else {
            let line = |figure: &Figure| {
                format!(
                    "{:<43} median {:>4} ms, p99 {:>4} ms, worst {:>4} ms, floor {:>4} ms ({})\n",
                    figure.name, figure.median_ms, figure.p99_ms, figure.worst_ms, figure.floor_ms, figure.floor
                )
            };
            figures.iter().map(line).collect()
        };
        match std::io::stdout().lock().write_all(text.as_bytes()) {
            Ok(()) => Exit::Done,
            Err(_) => Exit::Failed,
        }
    }
}

impl Figure {
    fn of(name: &'static str, mut spans: Vec<i64>, floors: Vec<i64>, floor: &'static str) -> Self {
        spans.sort_unstable();
        let p99_ms = spans.get((spans.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default();
        let worst_ms = spans.last().copied().unwrap_or_default();
        Self { name, median_ms: median(spans), p99_ms, worst_ms, floor_ms: median(floors), floor }
    }
}

fn median(mut spans: Vec<i64>) -> i64 {
    spans.sort_unstable();
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

fn span(from: Timestamp, to: Timestamp) -> i64 {
    to.0 - from.0
}

async fn until_ready(stage: &Stage) -> anyhow::Result<()> {
    let limit = clock::steady().plus(READY_WITHIN);
    for replica in &stage.replicas {
        loop {
            if let Ok(mut asking) = Asking::connect(&replica.socket).await
                && let Ok(status) = asking.status().await
                && status.replicas.iter().all(|each| each.reachable && each.metadata == "healthy")
                && status.workloads.len() == VMS.len()
            {
                break;
            }
            if clock::steady() > limit {
                bail!("{} is not ready after {} s", replica.name, READY_WITHIN.as_secs());
            }
            sleep(LOOK_EVERY).await;
        }
    }
    Ok(())
}

/// One event from its announcement until the cluster has closed it.
async fn play(stage: &Stage, number: u32, what: &str) -> anyhow::Result<EventId> {
    let at = u64::from(number) * SPREAD_MS % 1000;
    let vm = number as usize % VMS.len();
    let text = format!(
        "about = \"a benchmark\"\n[[event]]\nat = {at}\nvm = {vm}\nnotice = \"15m\"\nstart_delay = 0\nimpact = 100\n\
         linger = 0\n{what}\n"
    );
    stage.cloud.play(&Scenario::parse("bench", &text)?)?;
    let id = stage.cloud.scenario_events().into_iter().next().context("the cloud plays no event")?;
    let mut asking = Asking::connect(&stage.replicas[0].socket).await?;
    let limit = clock::steady().plus(EVENT_WITHIN);
    while !asking.event(id.as_str()).await.is_ok_and(|event| event.stage == "closed") {
        if clock::steady() > limit {
            bail!("event {id} is not closed after {} s", EVENT_WITHIN.as_secs());
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(id)
}

fn announced(stage: &Stage, id: &EventId) -> anyhow::Result<Timestamp> {
    let events = stage.cloud.events();
    Ok(events.iter().find(|event| event.id == *id).context("the cloud forgot an event")?.announced_at)
}

/// When its one approval arrived.
fn posted(stage: &Stage, id: &EventId) -> anyhow::Result<Timestamp> {
    let posts: Vec<_> = stage.cloud.posts().into_iter().filter(|post| post.event == *id).collect();
    match posts.as_slice() {
        [post] => moment::read(&post.at).context("the cloud's log has no time"),
        posts => bail!("{} POSTs for event {id}, where there should be one", posts.len()),
    }
}

/// When the last hook that prepares said that it was done.
fn last_hook(stage: &Stage, id: &EventId) -> anyhow::Result<Timestamp> {
    let notes = demo_hook::notes(&stage.hook_log())?;
    let prepared = |note: &&demo_hook::Note| note.done && note.phase != "restore" && EventId::new(&note.event) == *id;
    let last = notes.iter().filter(prepared).map(|note| note.at_ms).max();
    last.map(Timestamp).context("no hook ran")
}
