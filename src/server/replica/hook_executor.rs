//! Runs the hook attempts assigned to this replica by the log, and records the outcomes.

use allclear_core::assignments;
use allclear_core::procedure::executor::AssignedAttempt;
use allclear_core::schedule::attempts;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::Receiver;

use super::attempt_key::{find, in_time, is_settled, outcome, parse};
use super::cluster::ClusterHandle;
pub use super::former_hooks::Former;
pub use super::hook_calls::{Configured, HookCalls};
pub use super::hook_lookup::KnownCalls;
use super::hook_lookup::{call, place_of};
use super::input_source::InputSource;
use super::late_outcomes;
use super::metrics::Metrics;
use super::trace::TraceId;
use crate::hooks::{AttemptState, Fence, HookCall, HookOutcome, HookReport, HookRunner, HookTask, HookUpdate};
use allclear_core::model::attempt::{Attempt, Outcome, Progress};
use allclear_core::model::command::{ApplyResult, Command, ExtendAttempt, FinishAttempt, ReportProgress, bounded};
use allclear_core::model::event::Event;
use allclear_core::model::state::State;

pub struct HookExecutor {
    pub runner: HookRunner,
    calls: KnownCalls,
    /// Each hook run receives the context of the run's trace.
    are_traced: bool,
    cluster: Arc<ClusterHandle>,
    inputs: Arc<InputSource>,
    metrics: Arc<Metrics>,
    /// Attempts being started or recorded.
    busy: Mutex<BTreeSet<String>>,
}

impl HookExecutor {
    pub fn new(
        front: HookRunner,
        calls: KnownCalls,
        are_traced: bool,
        inputs: Arc<InputSource>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            runner: front,
            calls,
            are_traced,
            cluster: inputs.cluster.clone(),
            inputs,
            metrics,
            busy: Mutex::default(),
        }
    }

    fn call(&self, attempt: &Attempt, is_left_over: bool) -> Option<HookCall> {
        call(&self.calls, &self.cluster, attempt, is_left_over)
    }

    /// Starts the attempt, records the outcome, or leaves the attempt running.
    pub fn drive_attempt(self: &Arc<Self>, assigned: AssignedAttempt<'_>) {
        let AssignedAttempt { event, attempt, restart_restore_if_lost, .. } = assigned;
        let key = event.announcement.id.key_of(attempt.id);
        match self.runner.known(&key) {
            Some(AttemptState::Running) if !self.cluster.has_cluster_time() => {}
            Some(AttemptState::Running) => {
                let (ends, is_over) =
                    (event.deadline_of(attempt), attempts::is_overrun(event, attempt, self.cluster.time.now()));
                self.runner.change_deadline(&key, ends, self.cluster.time.deadline(ends), is_over);
            }
            Some(AttemptState::Ended(HookOutcome::Lost(_)))
                if restart_restore_if_lost && !self.cluster.has_cluster_time() => {}
            Some(AttemptState::Ended(HookOutcome::Lost(why)))
                if restart_restore_if_lost && self.cluster.time.now() < attempt.deadline =>
            {
                tracing::warn!(attempt = key, why, "lost hook started again under the same id");
                self.runner.forget(&key);
                self.start(AssignedAttempt { is_left_over: false, ..assigned }, key);
            }
            Some(AttemptState::Ended(ended)) => self.record_outcome(key, outcome(ended)),
            None => self.start(assigned, key),
        }
    }

    /// Stops the attempt; an attempt never started is settled at once.
    pub fn stop(self: &Arc<Self>, assigned: AssignedAttempt<'_>) {
        let AssignedAttempt { event, attempt, is_left_over, .. } = assigned;
        let key = event.announcement.id.key_of(attempt.id);
        match self.runner.known(&key) {
            Some(AttemptState::Running) => self.runner.cancel(&key),
            Some(AttemptState::Ended(ended)) => self.record_outcome(key, outcome(ended)),
            None => match self.call(attempt, is_left_over) {
                // The attempt may run since a previous run of this replica. This sends nothing.
                Some(call @ HookCall::Session(_)) if is_left_over => {
                    self.runner.run(&self.task(event, attempt, key.clone()), &call);
                    self.runner.cancel(&key);
                }
                _ => self.record_outcome(key, Outcome::Cancelled),
            },
        }
    }

    pub fn knows(&self, event: &Event, attempt: &Attempt) -> bool {
        self.runner.known(&event.announcement.id.key_of(attempt.id)).is_some()
    }

    /// Cancels running attempts already settled in the log, and forgets ended and recorded attempts. True while a
    /// settled attempt still runs.
    pub fn cleanup(&self, state: &State) -> bool {
        let mut is_busy = false;
        for (key, attempt_state) in self.runner.attempts() {
            if !is_settled(state, &key) {
                continue;
            }
            match attempt_state {
                AttemptState::Running => {
                    is_busy = true;
                    self.runner.cancel(&key);
                }
                AttemptState::Ended(_) => self.runner.forget(&key),
            }
        }
        for (workload, key, ended) in self.runner.sessions.claims() {
            // Before an attempt of a previous run is assigned again, the attempt is known by the report of its
            // workload.
            let is_waited_for = |attempt: &Attempt| attempt.outcome.is_none() && attempt.member.workload == workload;
            if !find(state, &key).is_some_and(is_waited_for) {
                if let Some(ended) = ended {
                    late_outcomes::report_late_outcomes(&self.cluster, state, &workload, &key, ended);
                }
                self.runner.sessions.dismiss_claim(&workload, &key);
            }
        }
        self.busy().retain(|key| !is_settled(state, key));
        self.calls.former.keep(&self.calls.configured, |workload, id| {
            state.may_still_run(&self.cluster.node.name, workload, id, self.calls.configured.keys())
        });
        is_busy
    }

    /// Forwards the reports of running hooks. Ends with the runner.
    pub async fn listen(self: Arc<Self>, mut reports: Receiver<HookReport>) {
        while let Some(HookReport { attempt, news }) = reports.recv().await {
            match news {
                HookUpdate::Ended(ended) => self.ended(attempt, ended),
                HookUpdate::Progress { text, expected_end } => {
                    let expected_end = expected_end.map(|at| self.cluster.time.from_wall_time(at));
                    let progress = Progress { text: bounded(text.as_deref().unwrap_or_default()), expected_end };
                    if let Some((event, attempt)) = parse(&attempt) {
                        self.cluster.propose_once(Command::ReportProgress(ReportProgress { event, attempt, progress }));
                    }
                }
                HookUpdate::MoreTime { needs } => self.clone().extend(attempt, needs),
            }
        }
    }

    fn ended(self: &Arc<Self>, key: String, ended: HookOutcome) {
        // The next run of the assignments, which follows shortly, decides whether a lost hook is run again.
        if !matches!(ended, HookOutcome::Lost(_)) {
            self.record_outcome(key, outcome(ended));
        }
    }

    fn start(self: &Arc<Self>, assigned: AssignedAttempt<'_>, key: String) {
        let AssignedAttempt { event, attempt, is_left_over, .. } = assigned;
        if self.busy().contains(&key) {
            return;
        }
        let Some(call) = self.call(attempt, is_left_over) else {
            let reason =
                format!("{} has no such hook in its configuration or in a connected workload", self.cluster.node.name);
            return self.record_outcome(key, Outcome::Failed(reason));
        };
        // An earlier attempt of the same hook, no longer waited for, may still be ending.
        if self.is_beside_itself(&self.cluster.state(), attempt)
            || !self.cluster.has_cluster_time()
            || !self.begin(&key)
        {
            return;
        }
        // A workload may go on with an attempt that began before this replica restarted.
        let goes_on = is_left_over && matches!(call, HookCall::Session(_));
        let (hooks, cluster) = (self.clone(), self.cluster.clone());
        let task = self.task(event, attempt, key);
        let (event, attempt) = (event.announcement.id.clone(), attempt.id);
        tokio::spawn(async move {
            let confirmed = cluster.consensus.ensure_linearizable().await.is_ok();
            let state = cluster.state();
            let open = state.open_event(&event).and_then(|event| Some((event, event.attempt(attempt)?)));
            let wanted = open.is_some_and(|(event, attempt)| {
                attempt.outcome.is_none()
                    && attempts::is_wanted(&state, event, attempt)
                    && (goes_on || !attempts::is_too_late(event, attempt))
            });
            if confirmed && wanted {
                tracing::info!(attempt = task.attempt, phase = %task.phase, workload = %task.workload, "hook started");
                hooks.runner.run(&task, &call);
            }
            hooks.busy().remove(&task.attempt);
        });
    }

    /// Proposes more time for the attempt. A granted extension returns with the log; a refusal is sent at once.
    fn extend(self: Arc<Self>, key: String, needs: Duration) {
        let Some((event, attempt)) = parse(&key) else {
            return;
        };
        if !self.cluster.has_cluster_time() {
            return self.runner.sessions.remind(&key);
        }
        let (cluster, deadline) = (self.cluster.clone(), self.cluster.time.now().plus(needs));
        tokio::spawn(async move {
            let verdict = cluster.propose(&Command::ExtendAttempt(ExtendAttempt { event, attempt, deadline })).await;
            tracing::info!(attempt = key, ?verdict, "more time requested by a hook");
            if !matches!(verdict, Ok(ApplyResult::Applied)) {
                self.runner.sessions.remind(&key);
            }
        });
    }

    fn is_beside_itself(&self, state: &State, attempt: &Attempt) -> bool {
        let runs = |(key, attempt_state): &(String, AttemptState)| {
            *attempt_state == AttemptState::Running
                && find(state, key).is_some_and(|other| {
                    other.id != attempt.id && other.member == attempt.member && other.hook == attempt.hook
                })
        };
        self.runner.attempts().iter().any(runs)
    }

    /// Records the outcome. The attempt is forgotten when this replica has applied the record.
    fn record_outcome(self: &Arc<Self>, key: String, outcome: Outcome) {
        let Some((event, attempt)) = parse(&key).filter(|_| self.begin(&key)) else {
            return;
        };
        let (cluster, outcome) = (self.cluster.clone(), in_time(&self.cluster, &key, outcome));
        if let Some(ended) = find(&cluster.state(), &key) {
            self.metrics.hook(ended.hook.phase, &outcome, cluster.time.now().since(ended.begun_at));
        }
        tokio::spawn(async move {
            let (word, reason) = (outcome.as_str(), outcome.reason());
            // A failure wakes a person, who reads the warnings first.
            match &outcome {
                Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Unknown(_) => {
                    tracing::warn!(attempt = key, outcome = word, reason, "hook ended");
                }
                _ => tracing::info!(attempt = key, outcome = word, reason, "hook ended"),
            }
            cluster.record(&Command::FinishAttempt(FinishAttempt { event, attempt, outcome })).await;
        });
    }

    /// False when the attempt is being started or recorded already.
    fn begin(&self, key: &str) -> bool {
        self.busy().insert(key.into())
    }

    fn busy(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn task(&self, event: &Event, attempt: &Attempt, key: String) -> HookTask {
        let (announcement, cluster) = (&event.announcement, &self.cluster);
        let state = cluster.state();
        let input = self.inputs.planning_input();
        HookTask {
            attempt: key,
            step: event.step_id(attempt),
            fence: Fence { term: state.leadership.as_ref().map_or(0, |known| known.term), sequence: attempt.id.0 },
            event_id: announcement.id.clone(),
            event_type: announcement.kind.clone(),
            event_source: announcement.source.clone(),
            resources: announcement.resources.clone(),
            phase: attempt.hook.phase,
            place: place_of(&state, cluster, attempt),
            workload: attempt.member.workload.clone(),
            group: state.workload(&attempt.member).and_then(|workload| workload.group.clone()),
            vm: attempt.member.vm.clone(),
            intent: attempt.intent,
            deadline: cluster.time.deadline(event.deadline_of(attempt)),
            avoid: assignments::vms_to_avoid(&state, &input, &attempt.member),
            prefer: assignments::preferred_vms(&state, &input, &attempt.member),
            traceparent: self.are_traced.then(|| TraceId::of(&cluster.node.cluster, event).parent(attempt.id)),
            drill: event.drill.as_ref().map(|drill| drill.mode),
        }
    }
}
