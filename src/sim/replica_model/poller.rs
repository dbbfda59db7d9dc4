//! The poller of one replica, as `replica::observer`: polls always, and reports changes.

use std::time::Duration;

use super::ModelContext;
use crate::endpoint::{PollFailed, PollResult};
use crate::tasks::SignalChanges;
use allclear_core::allowance::Allowance;
use allclear_core::cluster_time::{ASKS_FOR, ClockReading, Trust};
use allclear_core::model::command::{Command, RegisterWorkloads};
use allclear_core::model::document::Document;
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Group;
use allclear_core::observation::{Observation, Patience, Poll, PollTime};
use allclear_core::peer_table::ImdsReport;
use allclear_core::platform_time::PlatformTime;

const INTERVAL: Duration = Duration::from_secs(1);
const STALL_AFTER: Duration = Duration::from_secs(15);
/// For a service that has never answered.
const ENROLS_WITHIN: Duration = Duration::from_secs(130);
const LONGEST_WHILE_OPEN: Duration = Duration::from_secs(5);
const LONGEST: Duration = Duration::from_secs(30);
const REPORT_AGAIN_AFTER: Duration = Duration::from_millis(100);
/// For a mutation.
const NO_PATIENCE: Patience =
    Patience { poll_interval: Duration::ZERO, gone_after: Duration::ZERO, stale_after: Duration::ZERO };

#[derive(Default)]
pub(super) struct ModelPollState {
    observation: Observation,
    opened: Timestamp,
    last: Option<Timestamp>,
    failures: u32,
    /// The response time of the last document.
    took: Duration,
    platform: PlatformTime,
    /// The highest incarnation so far; only a mutation reads this field.
    incarnation: u64,
    allowance: Allowance,
}

impl ModelPollState {
    pub(super) fn new(opened: Timestamp) -> Self {
        Self { opened, ..Self::default() }
    }

    pub(super) fn health(&self, now: Timestamp) -> ImdsReport {
        let age = self.last.map(|at| now.since(at));
        let channel = match age {
            Some(age) if age < STALL_AFTER => ImdsHealth::Healthy,
            None if now.since(self.opened) < ENROLS_WITHIN => ImdsHealth::Unknown,
            Some(_) | None => ImdsHealth::Stalled,
        };
        ImdsReport { health: channel, document_age: age, answers_in: self.took, can_acknowledge: false }
    }

    /// The clock reading for the leader: `wall` is the lead of the wall clock over `time`, the cluster's time.
    pub(super) fn reading(&self, wall: i64, time: Timestamp, now: Timestamp) -> ClockReading {
        let is_asking = self.last.is_none() && now.since(self.opened) < ASKS_FOR;
        ClockReading { wall: Some(wall), platform: self.platform.ahead_of(time, now), is_asking }
    }
}

impl ModelContext {
    /// Polls the endpoint at the scheduled time.
    async fn ask(&self) -> Result<Document, PollFailed> {
        let (state, asked) = (self.state(), self.steady());
        self.take(|observation, document| {
            let time = PollTime { asked, answered: self.steady() };
            observation.record_poll(Poll { document, time, patience: Patience::default() }, &state, |_| true);
        })
        .await
    }

    /// Asks the endpoint for a document for an approval. The request is not a poll.
    pub(super) async fn look(&self) -> Result<Document, PollFailed> {
        let state = self.state();
        self.take(|observation, document| observation.looked(document, &state)).await
    }

    async fn take(&self, observe: impl Fn(&mut Observation, &Document)) -> Result<Document, PollFailed> {
        let asked_at = self.steady();
        let polled = self.ask_endpoint().await;
        let mutation = self.world.mutation;
        let result = {
            let mut sight = self.process.sight.borrow_mut();
            match polled {
                Ok(PollResult { incarnation, .. })
                    if makes!(mutation, IncarnationRules) && incarnation < sight.incarnation =>
                {
                    sight.last = Some(self.steady());
                    Err(PollFailed)
                }
                Ok(PollResult { document, incarnation, date }) => {
                    let took = self.steady().since(asked_at);
                    if let Some(date) = date {
                        sight.platform.record_date(date, took, self.steady());
                    }
                    sight.incarnation = incarnation;
                    observe(&mut sight.observation, &document);
                    if makes!(mutation, AbsenceAtOnce) {
                        for _ in 0..5 {
                            let time = PollTime::at_once(asked_at);
                            let poll = Poll { document: &document, time, patience: NO_PATIENCE };
                            sight.observation.record_poll(poll, &self.state(), |_| true);
                        }
                    }
                    sight.last = Some(self.steady());
                    sight.took = took;
                    sight.failures = 0;
                    Ok(document)
                }
                Err(why) => {
                    if !makes!(mutation, BadReadDoesNotInterrupt) {
                        sight.observation.record_failed_poll();
                    }
                    sight.failures += 1;
                    Err(why)
                }
            }
        };
        self.process.signals.polled.tell(&self.world.tasks);
        result
    }

    /// The document of the endpoint, after validation; `None` while the channel does not work.
    pub(super) fn believed(&self) -> Option<Document> {
        let sight = self.process.sight.borrow();
        let is_healthy = sight.health(self.steady()).health == ImdsHealth::Healthy;
        sight.observation.document().filter(|_| is_healthy).cloned()
    }

    /// The time until the next poll: this replica's share of the interval, or longer after failures.
    fn until_next_poll(&self) -> Duration {
        let failures = self.process.sight.borrow().failures;
        if failures == 0 {
            let place = i64::try_from(self.me * 1000 / self.world.nodes.len()).unwrap_or(0);
            let since = (self.clocks().wall.0 - place).rem_euclid(1000);
            return Duration::from_millis(1000 - since.unsigned_abs());
        }
        let longest = if self.state().open.is_empty() { LONGEST } else { LONGEST_WHILE_OPEN };
        let doubled = (INTERVAL * (1 << (failures - 1).min(6))).min(longest);
        let half = u64::try_from(doubled.as_millis()).unwrap_or(0) / 2;
        self.world.random.borrow_mut().millis(half, half * 2)
    }
}

pub(super) async fn poll(here: ModelContext) {
    loop {
        here.sleep(here.until_next_poll()).await;
        let _ = here.ask().await;
    }
}

/// Keeps the log's record of this replica's workloads and document up to date. Begins when the attempts left open by
/// previous runs are known.
pub(super) async fn report(here: ModelContext) {
    let signals = &here.process.signals;
    loop {
        let news = SignalChanges::of([&signals.changed, &signals.polled]);
        let due = due(&here);
        let again = due.is_some() || here.trust() == Trust::Unknown;
        if let Some(command) = &due
            && here.propose(command).await.is_ok()
        {
            let now = here.steady();
            here.process.sight.borrow_mut().allowance.spend_on(command, now);
        }
        here.wait(news, again.then_some(REPORT_AGAIN_AFTER)).await;
    }
}

fn due(here: &ModelContext) -> Option<Command> {
    let state = here.state();
    let workloads = here.world.nodes[here.me].workloads.borrow();
    let groups: Vec<Group> = groups(here);
    let known = state.replicas.get(here.name());
    if !known.is_some_and(|replica| replica.workloads == *workloads && replica.groups == groups) {
        return Some(Command::RegisterWorkloads(RegisterWorkloads { workloads: workloads.clone(), groups }));
    }
    let sight = &mut *here.process.sight.borrow_mut();
    sight.observation.adopt_state(&state, here.name());
    let report = sight.observation.report_by(here.trust(), &state, here.name())?;
    sight.allowance.admits_report(&report, &state, here.name(), here.steady()).then_some(report)
}

fn groups(here: &ModelContext) -> Vec<Group> {
    let scenario = &here.world.scenario;
    let mut names: Vec<_> = scenario.workloads.iter().flatten().filter_map(|it| it.group.clone()).collect();
    names.sort();
    names.dedup();
    let max_unavailable = scenario.max_unavailable;
    names.into_iter().map(|name| Group { name, max_unavailable }).collect()
}
