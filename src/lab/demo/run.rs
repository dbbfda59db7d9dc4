//! The run of a demo: waits for the cluster, lets the cloud announce, and follows every event to the end.

use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use tokio::time::sleep;

use super::checks;
use super::narration::Narration;
use super::primary::Primary;
use super::report::{DemoReport, EventReport};
use super::takeover::TakeoverDemo;
use super::writes::Writes;
use crate::demo_hook;
use crate::fake_cloud::CloudScenario;
use crate::local_cluster::members::{MemberPrograms, MemberReport};
use crate::local_cluster::snapshot::{ClusterSnapshot, StatusClients};
use crate::local_cluster::{LocalCluster, VMS};
use crate::testbed::writers::LatestWrite;
use allclear_server::replica::clock;

const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A busy machine takes as long as this until the servers' hooks have reported all roles.
const READY_WITHIN: Duration = Duration::from_mins(3);
/// Timeout of all events together, in notices.
const PLAY_WITHIN: u32 = 9;

/// One running demo.
pub(super) struct DemoRun<'a> {
    pub(super) stage: &'a mut LocalCluster,
    pub(super) scenario: &'a CloudScenario,
    pub(super) kills_leader: bool,
    /// Prints a line of the narration.
    pub(super) tell: &'a dyn Fn(&str),
    /// Shows the present wait on a terminal, below the narration.
    pub(super) progress: &'a dyn Fn(&str),
    pub(super) primary: Primary,
    /// The first write after each move of the servers' primary.
    pub(super) moves: Vec<LatestWrite>,
    pub(super) takeover: Option<TakeoverDemo>,
}

impl DemoRun<'_> {
    /// Runs from the forming of the cluster to the closing of the events. Faults are in the report, also when the run
    /// is aborted.
    pub(super) async fn run(mut self, speed: u32, notice: Duration) -> DemoReport {
        let mut sight = ClusterSnapshot::default();
        let lines = StatusClients::to(&self.stage.replicas);
        let mut missing = Vec::new();
        if let Err(error) = self.play(&lines, &mut sight, notice * PLAY_WITHIN).await {
            missing.push(format!("{error:#}"));
        }
        let writes = self.settle().await.unwrap_or_else(|error| {
            missing.push(format!("the writes cannot be compared: {error:#}"));
            None
        });
        self.report(speed, &sight, writes, missing)
    }

    async fn play(
        &mut self,
        lines: &StatusClients,
        sight: &mut ClusterSnapshot,
        within: Duration,
    ) -> anyhow::Result<()> {
        self.until_ready(lines, sight).await?;
        let mut story = Narration::default();
        let leader = sight.leader().map(|(leader, _)| leader.to_owned()).unwrap_or_default();
        let primary = self.primary.now().map_or_else(String::new, |vm| format!("; {vm} is the database's primary"));
        story.add_own(&format!("the replicas are ready, {leader} leads{primary}"));
        self.print(&story.all());
        self.stage.cloud.play(self.scenario)?;
        let limit = clock::monotonic().plus(within);
        let played = loop {
            if self.is_over(sight) {
                break Ok(());
            }
            if clock::monotonic() > limit {
                break Err(anyhow!("the events are not over after {} s", within.as_secs()));
            }
            sleep(LOOK_EVERY).await;
            if let Err(error) = self.observe(lines, sight, &mut story).await {
                break Err(error);
            }
            self.print(&story.settled(sight));
            (self.progress)(&progress(sight));
        };
        self.print(&story.all());
        played
    }

    fn print(&self, lines: &[String]) {
        for line in lines {
            (self.tell)(line);
        }
    }

    async fn observe(
        &mut self,
        lines: &StatusClients,
        sight: &mut ClusterSnapshot,
        story: &mut Narration,
    ) -> anyhow::Result<()> {
        let mut said = self.look(lines, sight)?;
        said.extend(self.stage.follow_the_cloud().await?);
        story.add(&self.stage.cloud.events(), &self.stage.cloud.posts(), sight, &said);
        if self.kills_leader {
            for what in self.take_over(sight).await? {
                story.add_own(&what);
            }
        }
        Ok(())
    }

    async fn until_ready(&mut self, lines: &StatusClients, sight: &mut ClusterSnapshot) -> anyhow::Result<()> {
        let limit = clock::monotonic().plus(READY_WITHIN);
        loop {
            self.look(lines, sight)?;
            let unknown = || self.primary.not_registered(sight).filter(|_| self.has_database());
            let Some(why) = sight.not_ready().or_else(unknown) else { return Ok(()) };
            if clock::monotonic() > limit {
                bail!("the cluster is not ready after {} s: {why}", READY_WITHIN.as_secs());
            }
            sleep(LOOK_EVERY).await;
        }
    }

    fn has_database(&self) -> bool {
        self.stage.members.is_some() || self.stage.servers.is_some()
    }

    async fn take_over(&mut self, sight: &ClusterSnapshot) -> anyhow::Result<Vec<String>> {
        if let Some(takeover) = &mut self.takeover {
            return takeover.go_on(self.stage, sight);
        }
        let Some((begun, told)) = TakeoverDemo::begin(self.stage, sight).await? else { return Ok(Vec::new()) };
        self.takeover = Some(begun);
        Ok(vec![told])
    }

    /// Updates the snapshot of the replicas; returns the reports of the database and of moves of its primary.
    fn look(&mut self, lines: &StatusClients, sight: &mut ClusterSnapshot) -> anyhow::Result<Vec<MemberReport>> {
        for replica in &mut self.stage.replicas {
            if let Some(status) = replica.process.ended() {
                bail!("{} ended unexpectedly: {status}", replica.name);
            }
        }
        self.stage.members.as_mut().map_or(Ok(()), MemberPrograms::all_run)?;
        *sight = lines.look(&self.stage.replicas);
        let mut said = Vec::new();
        if let Some(members) = &mut self.stage.members {
            said = members.said();
            if let Some((vm, since)) = members.primary()? {
                said.extend(self.primary.see(&vm, since, since));
            }
        }
        if let Some(latest) = self.stage.servers.as_ref().and_then(|servers| servers.progress().latest) {
            let at = |at: Instant| clock::now().minus(at.elapsed());
            let moved = self.primary.see(VMS[latest.place], at(latest.since), at(latest.left.unwrap_or(latest.since)));
            if let Some(moved) = moved {
                self.moves.push(latest);
                let pause = latest.pause.as_millis();
                let what = format!("{}; no write was acknowledged for {pause} ms", moved.what);
                said.push(MemberReport { who: "clients", what, ..moved });
            }
        }
        Ok(said)
    }

    /// Stops the clients, and compares the acknowledged writes with the members' rows.
    async fn settle(&mut self) -> anyhow::Result<Option<Writes>> {
        let Some(servers) = &mut self.stage.servers else { return Ok(None) };
        let settled = servers.settle().await?;
        Ok(Some(Writes::of(servers.name(), &settled, &self.moves)))
    }

    /// Whether every event is over for the cloud, and closed for every replica that runs.
    fn is_over(&self, sight: &ClusterSnapshot) -> bool {
        let runs =
            |name: &str| self.stage.replicas.iter().any(|replica| replica.name == name && replica.process.runs());
        let all_answer = sight.replicas.iter().all(|seen| seen.answer.is_some() || !runs(&seen.name));
        let events = self.stage.cloud.scenario_events();
        self.stage.cloud.is_over()
            && all_answer
            && events.iter().all(|event| sight.not_closed(event).is_empty())
            && self.takeover.as_ref().is_none_or(TakeoverDemo::is_complete)
            && (self.stage.servers.is_none() || self.primary.not_registered(sight).is_none())
    }

    fn report(
        self,
        speed: u32,
        sight: &ClusterSnapshot,
        writes: Option<Writes>,
        mut missing: Vec<String>,
    ) -> DemoReport {
        let (events, posts) = (self.stage.cloud.events(), self.stage.cloud.posts());
        let notes = demo_hook::notes(&self.stage.hook_log()).unwrap_or_else(|error| {
            missing.push(format!("the log of the hooks cannot be read: {error}"));
            Vec::new()
        });
        let planned = self.stage.cloud.scenario_events().len();
        if planned > events.len() {
            missing.push(format!("{} of {planned} events were not announced", planned - events.len()));
        }
        let has_database = self.has_database();
        missing.extend(checks::missing(&events, &posts, sight, (!has_database).then_some(notes.as_slice())));
        if has_database {
            missing.extend(self.primary.missing(&events, sight));
        }
        missing.extend(writes.iter().flat_map(Writes::missing));
        if self.kills_leader && !self.takeover.as_ref().is_some_and(TakeoverDemo::is_complete) {
            let why = if self.takeover.is_none() {
                "no hook ran, and the leader was not killed"
            } else {
                "the takeover did not end"
            };
            missing.push(format!("the leader's takeover: {why}"));
        }
        DemoReport {
            scenario: self.scenario.name().to_owned(),
            speed,
            ok: missing.is_empty(),
            missing,
            events: events.iter().map(|event| EventReport::of(event, &posts, sight)).collect(),
            primary: has_database.then(|| self.primary.told()),
            moves: self.primary.moves(),
            writes,
            takeover: self.takeover,
            folder: None,
        }
    }
}

/// The wait of the first open event, for a terminal.
fn progress(sight: &ClusterSnapshot) -> String {
    let events = || sight.answers().flat_map(|(_, answer)| &answer.status.events);
    let waits = events().find_map(|event| Some((event, event.blocker.as_ref()?)));
    if let Some((event, blocker)) = waits {
        return format!("{} waits: {}", event.r#type, blocker.message);
    }
    let under_way = events().find(|event| event.stage == "started");
    under_way.map_or_else(String::new, |event| {
        format!("{}: the restore begins when five polls no longer list the event", event.r#type)
    })
}
