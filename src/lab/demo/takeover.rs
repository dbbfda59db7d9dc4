//! The leader is killed while a hook runs, another replica becomes the leader, and the killed replica is started
//! again.

use std::time::Duration;

use serde::Serialize;

use crate::local_cluster::snapshot::ClusterSnapshot;
use crate::local_cluster::{LocalCluster, seconds};
use allclear_core::model::time::Timestamp;
use allclear_server::replica::clock;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Time after which a hook or event has really begun.
const INTO_IT: Duration = Duration::from_millis(500);
const BACK_AFTER: Duration = Duration::from_secs(2);

/// The record of the takeover; filled step by step.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct TakeoverDemo {
    pub(super) old_leader: String,
    /// The hook that ran at the kill, or the event where no hook ran.
    pub(super) during: String,
    pub(super) new_leader: Option<String>,
    pub(super) led_after_s: Option<f64>,
    pub(super) restarted_after_s: Option<f64>,
    pub(super) answered_after_s: Option<f64>,
    #[serde(skip)]
    killed: Timestamp,
    #[serde(skip)]
    term: u64,
}

impl TakeoverDemo {
    pub(super) fn is_complete(&self) -> bool {
        self.new_leader.is_some() && self.answered_after_s.is_some()
    }

    /// The takeover as text for people.
    pub(super) fn told(&self) -> String {
        let Self { old_leader, during, new_leader, led_after_s, restarted_after_s, .. } = self;
        let led = new_leader.as_ref().zip(*led_after_s);
        let led =
            led.map_or_else(|| "no replica took over".into(), |(who, after)| format!("{who} led after {after:.2} s"));
        let back = restarted_after_s
            .map_or_else(String::new, |after| format!("; {old_leader} was started again after {after:.2} s"));
        format!("{old_leader}, the leader, was killed during {during}: {led}{back}")
    }

    /// Kills the leader as soon as a hook or event has begun; returns the record and a line of text.
    pub(super) async fn begin(
        stage: &mut LocalCluster,
        sight: &ClusterSnapshot,
    ) -> anyhow::Result<Option<(Self, String)>> {
        let now = clock::now();
        let (Some((leader, term)), Some(during)) = (sight.leader(), moment_for_it(sight, now)) else { return Ok(None) };
        let Some(replica) = stage.replicas.iter_mut().find(|replica| replica.name == leader) else { return Ok(None) };
        replica.process.kill().await?;
        let killed = clock::now();
        let takeover = Self { old_leader: leader.to_owned(), during, killed, term, ..Self::default() };
        let told = format!("{leader}, the leader, is killed during {}", takeover.during);
        Ok(Some((takeover, told)))
    }

    /// Waits for the new leader, and starts the old leader again; returns the changes as text.
    pub(super) fn go_on(&mut self, stage: &mut LocalCluster, sight: &ClusterSnapshot) -> anyhow::Result<Vec<String>> {
        let since = seconds(self.killed, clock::now());
        let mut told = Vec::new();
        if self.new_leader.is_none()
            && let Some((leader, _)) = sight.leader().filter(|(_, term)| *term > self.term)
        {
            self.new_leader = Some(leader.to_owned());
            self.led_after_s = Some(since);
            told.push(format!("{leader} leads, {since:.1} s after the kill of {}", self.old_leader));
        }
        if self.restarted_after_s.is_none() && since >= BACK_AFTER.as_secs_f64() {
            stage.start(&self.old_leader)?;
            self.restarted_after_s = Some(since);
            told.push(format!("{} is started again, {since:.1} s after the kill", self.old_leader));
        } else if self.restarted_after_s.is_some()
            && self.answered_after_s.is_none()
            && sight.answers().any(|(name, _)| name == self.old_leader)
        {
            self.answered_after_s = Some(since);
            told.push(format!("{} answers again", self.old_leader));
        }
        Ok(told)
    }
}

/// The name of a preparing hook that has run for a while, or of an event without hooks that has started.
fn moment_for_it(sight: &ClusterSnapshot, now: Timestamp) -> Option<String> {
    let long_ago = |at: &str| clock::from_rfc3339(at).is_some_and(|at| now.since(at) >= INTO_IT);
    let runs = |hook: &&shown::Hook| hook.phase != "restore" && hook.intent == "run" && hook.outcome.is_none();
    let events = || sight.answers().flat_map(|(_, answer)| &answer.status.events);
    let hook = events().flat_map(|event| &event.hooks).filter(runs).find(|hook| long_ago(&hook.started_at));
    let without = |event: &&shown::Event| {
        event.hooks.is_empty() && event.timeline.iter().any(|step| step.what == "started" && long_ago(&step.at))
    };
    hook.map(|hook| format!("{} of {} on {}", hook.phase, hook.workload, hook.on))
        .or_else(|| events().find(without).map(|event| format!("{} of {}", event.r#type, event.resources.join(", "))))
}
