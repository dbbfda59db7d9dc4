//! The play itself: waits for the cluster, lets the cloud announce, and follows every event to its end.

use std::time::Duration;

use anyhow::bail;
use tokio::time::{MissedTickBehavior, interval};

use super::board::board;
use super::machines::Machines;
use super::primary::Primary;
use super::pulse::Pulse;
use super::report::{EventReport, Report};
use super::screen::Screen;
use super::story::Story;
use super::takeover::Takeover;
use super::verdict::Noted;
use super::writes::Writes;
use super::{demo_hook, verdict};
use crate::cli::demo_hook::Note;
use crate::cli::stage::members::{Members, Said};
use crate::cli::stage::moment::read;
use crate::cli::stage::servers::Servers;
use crate::cli::stage::sight::{Lines, Sight};
use crate::cli::stage::{Stage, VMS};
use crate::databases::writers::Latest;
use crate::fake_cloud::Scenario;
use crate::replica::clock;
use crate::simulator::cloud::Event;

const LOOK_EVERY: Duration = Duration::from_millis(100);
const READY_WITHIN: Duration = Duration::from_mins(1);
/// For all events together.
const PLAY_WITHIN: Duration = Duration::from_mins(3);

/// One demo while it is on.
pub(super) struct Play<'a> {
    pub(super) stage: &'a mut Stage,
    pub(super) screen: &'a mut Screen,
    pub(super) scenario: &'a Scenario,
    pub(super) kills_leader: bool,
    pub(super) primary: Primary,
    pub(super) pulse: Pulse,
    /// The first write that each new primary of servers took.
    pub(super) moves: Vec<Latest>,
    pub(super) machines: Machines,
}

impl Play<'_> {
    /// From a cluster that forms to events that are closed. What it finds is in the report, also when it breaks off.
    pub(super) async fn go(mut self, speed: u32) -> Report {
        let mut sight = Sight::default();
        let mut takeover = None;
        let broke_off = match self.until_ready(&mut sight).await {
            Ok(()) => self.follow(&mut sight, &mut takeover).await.err(),
            Err(error) => Some(error),
        };
        let mut missing: Vec<String> = broke_off.into_iter().map(|error| format!("{error:#}")).collect();
        let writes = self.settle().await.unwrap_or_else(|error| {
            missing.push(format!("whether all writes are there is not known: {error:#}"));
            None
        });
        self.report(speed, &sight, takeover, writes, missing)
    }

    async fn until_ready(&mut self, sight: &mut Sight) -> anyhow::Result<()> {
        let lines = Lines::to(&self.stage.replicas);
        let mut tick = every(LOOK_EVERY);
        let limit = clock::steady().plus(READY_WITHIN);
        loop {
            tick.tick().await;
            self.all_run()?;
            *sight = lines.look(&self.stage.replicas);
            self.hear()?;
            let unknown = || self.primary.not_registered(sight).filter(|_| self.has_database());
            let Some(why) = sight.not_ready().or_else(unknown) else { return Ok(()) };
            if clock::steady() > limit {
                bail!("the cluster is not ready after {} s: {why}", READY_WITHIN.as_secs());
            }
            let board = board(sight, self.clients(), self.screen);
            self.screen.show(&[], &board);
        }
    }

    fn has_database(&self) -> bool {
        self.stage.members.is_some() || self.stage.servers.is_some()
    }

    fn clients(&self) -> Option<String> {
        self.stage.servers.as_ref().map(|servers| self.pulse.line(&servers.progress(), self.screen))
    }

    async fn follow(&mut self, sight: &mut Sight, takeover: &mut Option<Takeover>) -> anyhow::Result<()> {
        let mut story = Story::default();
        let leader = sight.leader().map(|(leader, _)| leader.to_owned()).unwrap_or_default();
        let primary = self.primary.now().map_or_else(String::new, |vm| format!("; {vm} is the database's primary"));
        let writes = self.stage.servers.as_ref().map(|_| format!(" and takes {} writes per second", self.pulse.rate()));
        let writes = writes.unwrap_or_default();
        self.screen.line(&story.own(&format!("the replicas are ready, {leader} leads{primary}{writes}")));
        self.stage.cloud.play(self.scenario)?;
        let lines = Lines::to(&self.stage.replicas);
        let mut tick = every(LOOK_EVERY);
        let limit = clock::steady().plus(PLAY_WITHIN);
        loop {
            tick.tick().await;
            self.all_run()?;
            *sight = lines.look(&self.stage.replicas);
            let mut said = self.hear()?;
            if self.stage.servers.is_some() {
                said.extend(self.machines.follow(self.stage).await?);
            }
            let mut news = story.news(&self.stage.cloud.events(), &self.stage.cloud.posts(), sight, &said);
            if self.kills_leader {
                let told = self.take_over(sight, takeover).await?;
                news.extend(told.iter().map(|what| story.own(what)));
            }
            let board = board(sight, self.clients(), self.screen);
            self.screen.show(&news, &board);
            if self.is_over(sight, takeover.as_ref()) {
                return Ok(());
            }
            if clock::steady() > limit {
                bail!("it is not over after {} s", PLAY_WITHIN.as_secs());
            }
        }
    }

    async fn take_over(&mut self, sight: &Sight, takeover: &mut Option<Takeover>) -> anyhow::Result<Vec<String>> {
        if let Some(takeover) = takeover {
            return takeover.go_on(self.stage, sight);
        }
        let Some((begun, told)) = Takeover::begin(self.stage, sight).await? else { return Ok(Vec::new()) };
        *takeover = Some(begun);
        Ok(vec![told])
    }

    fn all_run(&mut self) -> anyhow::Result<()> {
        for replica in &mut self.stage.replicas {
            if let Some(status) = replica.process.ended() {
                bail!("{} ended by itself: {status}", replica.name);
            }
        }
        self.stage.members.as_mut().map_or(Ok(()), Members::all_run)
    }

    /// What the database said, and where its primary went.
    fn hear(&mut self) -> anyhow::Result<Vec<Said>> {
        let mut said = Vec::new();
        if let Some(members) = &mut self.stage.members {
            said = members.said();
            if let Some((vm, since)) = members.primary()? {
                said.extend(self.primary.see(&vm, since));
            }
        }
        let Some(progress) = self.stage.servers.as_ref().map(Servers::progress) else { return Ok(said) };
        self.pulse.see(clock::steady(), progress.total());
        if let Some(latest) = progress.latest {
            let moved = self.primary.see(VMS[latest.place], clock::now().minus(latest.since.elapsed()));
            if let Some(moved) = moved {
                self.moves.push(latest);
                let pause = latest.pause.as_millis();
                let what = format!("{}; no write was acknowledged for {pause} ms", moved.what);
                said.push(Said { who: "clients", what, ..moved });
            }
        }
        Ok(said)
    }

    /// The clients stop, and what they were told is held against what is there.
    async fn settle(&mut self) -> anyhow::Result<Option<Writes>> {
        let Some(servers) = &mut self.stage.servers else { return Ok(None) };
        let settled = servers.settle().await?;
        let announced: Vec<_> = self.stage.cloud.events().iter().map(|event| event.announced_at).collect();
        Ok(Some(Writes::of(servers.name(), &settled, &self.moves, &announced)))
    }

    /// Every event has come and gone for the cloud, and is closed for every replica that runs.
    fn is_over(&self, sight: &Sight, takeover: Option<&Takeover>) -> bool {
        let runs =
            |name: &str| self.stage.replicas.iter().any(|replica| replica.name == name && replica.process.runs());
        let all_answer = sight.replicas.iter().all(|seen| seen.answer.is_some() || !runs(&seen.name));
        let events = self.stage.cloud.scenario_events();
        self.stage.cloud.is_over()
            && all_answer
            && events.iter().all(|event| sight.not_closed(event).is_empty())
            && takeover.is_none_or(Takeover::is_complete)
            && (self.stage.servers.is_none() || self.primary.not_registered(sight).is_none())
    }

    fn report(
        &self,
        speed: u32,
        sight: &Sight,
        takeover: Option<Takeover>,
        writes: Option<Writes>,
        mut missing: Vec<String>,
    ) -> Report {
        let (events, posts) = (self.stage.cloud.events(), self.stage.cloud.posts());
        let (by_a_database, may_repeat) = (self.has_database(), self.stage.servers.is_some());
        let notes = if by_a_database {
            Ok(recorded(&events, sight, may_repeat))
        } else {
            demo_hook::notes(&self.stage.hook_log())
        };
        let notes = notes.unwrap_or_else(|error| {
            missing.push(format!("what the hooks noted cannot be read: {error}"));
            Vec::new()
        });
        let planned = self.stage.cloud.scenario_events().len();
        if planned > events.len() {
            missing.push(format!("{} of {planned} events were not announced", planned - events.len()));
        }
        missing.extend(verdict::missing(&events, &posts, sight, &Noted { notes: &notes, by_a_database, may_repeat }));
        if by_a_database {
            missing.extend(self.primary.missing(&events, sight));
        }
        missing.extend(writes.iter().flat_map(Writes::missing));
        if self.kills_leader && !takeover.as_ref().is_some_and(Takeover::is_complete) {
            let why = if takeover.is_none() { "no hook ran during which to kill it" } else { "it did not end" };
            missing.push(format!("the leader's takeover: {why}"));
        }
        Report {
            scenario: self.scenario.name().to_owned(),
            speed,
            ok: missing.is_empty(),
            missing,
            events: events.iter().map(|event| EventReport::of(event, &posts, sight, &notes)).collect(),
            primary: by_a_database.then(|| self.primary.told()),
            moves: self.primary.moves(),
            writes,
            takeover,
            folder: None,
        }
    }
}

/// A database notes nothing: what it did is what it told the cluster. Where it may be tried again, the last counts.
fn recorded(events: &[Event], sight: &Sight, may_repeat: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    for event in events.iter().filter_map(|event| sight.event(&event.id)) {
        let runs = event.hooks.iter().enumerate().filter(|(_, hook)| hook.intent == "run");
        for (_, hook) in runs.filter(|(place, hook)| !may_repeat || verdict::is_last(&event.hooks[place + 1..], hook)) {
            let note = |done, at: &str| {
                let (event, vm, phase) = (event.id.clone(), hook.vm.clone(), hook.phase.clone());
                Some(Note { event, vm, phase, attempt: hook.attempt.clone(), done, at_us: read(at)?.0 * 1_000 })
            };
            let ended = hook.ended_at.as_deref().filter(|_| verdict::is_prepared(hook));
            notes.extend(note(false, &hook.started_at));
            notes.extend(ended.and_then(|at| note(true, at)));
        }
    }
    notes
}

fn every(span: Duration) -> tokio::time::Interval {
    let mut tick = interval(span);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    tick
}
