//! Runs the hook attempts that the log assigns to this replica, and records how they end.

use allclear_core::assignments;
use allclear_core::procedure::assignments::AssignedAttempt;
use allclear_core::schedule::attempts;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc::Receiver;

use super::attempt_key::{find, is_settled, outcome, parse};
use super::context::Context;
pub use super::former_hooks::Former;
pub use super::hook_calls::{Configured, HookCalls};
use super::hook_lookup::call;
use super::late_outcomes;
use super::trace::TraceId;
use crate::hooks::{AttemptState, Fence, HookCall, HookOutcome, HookReport, HookRunner, HookTask, HookUpdate};
use allclear_core::model::attempt::{Attempt, Outcome, Progress};
use allclear_core::model::command::{ApplyResult, Command, ExtendAttempt, FinishAttempt, ReportProgress, bounded};
use allclear_core::model::event::Event;
use allclear_core::model::state::State;

pub struct HookExecutor {
    pub front: HookRunner,
    configured: Configured,
    former: Former,
    /// Each run is told of the trace that it is part of.
    are_traced: bool,
    /// Attempts that are being started or recorded.
    busy: Mutex<BTreeSet<String>>,
}

impl HookExecutor {
    pub fn new(front: HookRunner, configured: Configured, former: Former, are_traced: bool) -> Self {
        Self { front, configured, former, are_traced, busy: Mutex::default() }
    }

    fn call(&self, context: &Context, attempt: &Attempt, is_inherited: bool) -> Option<HookCall> {
        call(&self.configured, &self.former, context, attempt, is_inherited)
    }

    /// Starts the attempt, records its outcome, or leaves it running.
    pub fn reconcile_attempt(self: &Arc<Self>, context: &Arc<Context>, assigned: AssignedAttempt<'_>) {
        let AssignedAttempt { event, attempt, again_if_lost, .. } = assigned;
        let key = event.announcement.id.key_of(attempt.id);
        match self.front.known(&key) {
            Some(AttemptState::Running) if !context.has_cluster_time() => {}
            Some(AttemptState::Running) => {
                let (ends, is_over) =
                    (event.deadline_of(attempt), attempts::is_overrun(event, attempt, context.time.now()));
                self.front.change_deadline(&key, ends, context.time.deadline(ends), is_over);
            }
            Some(AttemptState::Ended(HookOutcome::Lost(_))) if again_if_lost && !context.has_cluster_time() => {}
            Some(AttemptState::Ended(HookOutcome::Lost(why)))
                if again_if_lost && context.time.now() < attempt.deadline =>
            {
                tracing::warn!(attempt = key, why, "lost hook started again under the same id");
                self.front.forget(&key);
                self.start(context, AssignedAttempt { is_left_over: false, ..assigned }, key);
            }
            Some(AttemptState::Ended(ended)) => self.settle(context, key, outcome(ended)),
            None => self.start(context, assigned, key),
        }
    }

    /// Stops the attempt; what was never started is settled at once.
    pub fn stop(self: &Arc<Self>, context: &Arc<Context>, assigned: AssignedAttempt<'_>) {
        let AssignedAttempt { event, attempt, is_left_over, .. } = assigned;
        let key = event.announcement.id.key_of(attempt.id);
        match self.front.known(&key) {
            Some(AttemptState::Running) => self.front.cancel(&key),
            Some(AttemptState::Ended(ended)) => self.settle(context, key, outcome(ended)),
            None => match self.call(context, attempt, is_left_over) {
                // It may run since an earlier life of this replica. This sends nothing.
                Some(call @ HookCall::Session(_)) if is_left_over => {
                    self.front.run(&task(context, event, attempt, key.clone(), self.are_traced), &call);
                    self.front.cancel(&key);
                }
                _ => self.settle(context, key, Outcome::Cancelled),
            },
        }
    }

    pub fn knows(&self, event: &Event, attempt: &Attempt) -> bool {
        self.front.known(&event.announcement.id.key_of(attempt.id)).is_some()
    }

    /// Ends what still runs though the log is done with it, and forgets what has ended and is recorded.
    /// True while there is something to see to.
    pub fn cleanup(&self, context: &Arc<Context>, state: &State) -> bool {
        let mut is_busy = false;
        for (key, standing) in self.front.attempts() {
            if !is_settled(state, &key) {
                continue;
            }
            match standing {
                AttemptState::Running => {
                    is_busy = true;
                    self.front.cancel(&key);
                }
                AttemptState::Ended(_) => self.front.forget(&key),
            }
        }
        for (workload, key, ended) in self.front.sessions.claims() {
            // Before it is asked for, an attempt of an earlier life is known by what its workload says.
            let is_waited_for = |attempt: &Attempt| attempt.outcome.is_none() && attempt.member.workload == workload;
            if !find(state, &key).is_some_and(is_waited_for) {
                if let Some(ended) = ended {
                    late_outcomes::report_late_outcomes(context, state, &workload, &key, ended);
                }
                self.front.sessions.dismiss_claim(&workload, &key);
            }
        }
        self.busy().retain(|key| !is_settled(state, key));
        self.former.keep(&self.configured, |workload, id| {
            state.may_still_run(&context.node.name, workload, id, self.configured.keys())
        });
        is_busy
    }

    /// Hands on what running hooks say of themselves. Ends when the runner does.
    pub async fn listen(self: Arc<Self>, context: Arc<Context>, mut reports: Receiver<HookReport>) {
        while let Some(HookReport { attempt, news }) = reports.recv().await {
            match news {
                HookUpdate::Ended(ended) => self.ended(&context, attempt, ended),
                HookUpdate::Progress { text, expected_end } => {
                    let expected_end = expected_end.map(|at| context.time.from_wall_time(at));
                    let progress = Progress { text: bounded(text.as_deref().unwrap_or_default()), expected_end };
                    if let Some((event, attempt)) = parse(&attempt) {
                        context.propose_once(Command::ReportProgress(ReportProgress { event, attempt, progress }));
                    }
                }
                HookUpdate::MoreTime { needs } => self.clone().extend(&context, attempt, needs),
            }
        }
    }

    fn ended(self: &Arc<Self>, context: &Arc<Context>, key: String, ended: HookOutcome) {
        // Whether a lost hook is run again is decided with the errands, which come round shortly.
        if !matches!(ended, HookOutcome::Lost(_)) {
            self.settle(context, key, outcome(ended));
        }
    }

    fn start(self: &Arc<Self>, context: &Arc<Context>, assigned: AssignedAttempt<'_>, key: String) {
        let AssignedAttempt { event, attempt, is_left_over, .. } = assigned;
        if self.busy().contains(&key) {
            return;
        }
        let Some(call) = self.call(context, attempt, is_left_over) else {
            let reason = format!("{} has no such hook, nor a workload that dialled in with it", context.node.name);
            return self.settle(context, key, Outcome::Failed(reason));
        };
        // An earlier attempt of the same hook that nobody waits for any more may still be on its way out.
        if self.is_beside_itself(&context.state(), attempt) || !context.has_cluster_time() || !self.begin(&key) {
            return;
        }
        let (hooks, context) = (self.clone(), context.clone());
        let task = task(&context, event, attempt, key, hooks.are_traced);
        let (event, attempt) = (event.announcement.id.clone(), attempt.id);
        tokio::spawn(async move {
            let confirmed = context.consensus.ensure_linearizable().await.is_ok();
            let state = context.state();
            let open = state.open_event(&event).and_then(|event| Some((event, event.attempt(attempt)?)));
            let wanted = open.is_some_and(|(event, attempt)| {
                attempt.outcome.is_none() && attempts::is_wanted(&state, event, attempt)
            });
            if confirmed && wanted {
                tracing::info!(attempt = task.attempt, phase = %task.phase, workload = %task.workload, "hook started");
                hooks.front.run(&task, &call);
            }
            hooks.busy().remove(&task.attempt);
        });
    }

    /// What is granted comes back with the log; what is not is told at once.
    fn extend(self: Arc<Self>, context: &Arc<Context>, key: String, needs: Duration) {
        let Some((event, attempt)) = parse(&key) else {
            return;
        };
        if !context.has_cluster_time() {
            return self.front.sessions.remind(&key);
        }
        let (context, deadline) = (context.clone(), context.time.now().plus(needs));
        tokio::spawn(async move {
            let verdict = context.propose(&Command::ExtendAttempt(ExtendAttempt { event, attempt, deadline })).await;
            tracing::info!(attempt = key, ?verdict, "more time requested by a hook");
            if !matches!(verdict, Ok(ApplyResult::Applied)) {
                self.front.sessions.remind(&key);
            }
        });
    }

    fn is_beside_itself(&self, state: &State, attempt: &Attempt) -> bool {
        let runs = |(key, standing): &(String, AttemptState)| {
            *standing == AttemptState::Running
                && find(state, key).is_some_and(|other| {
                    other.id != attempt.id && other.member == attempt.member && other.hook == attempt.hook
                })
        };
        self.front.attempts().iter().any(runs)
    }

    /// Records the outcome. The attempt is forgotten when this replica has applied that.
    fn settle(self: &Arc<Self>, context: &Arc<Context>, key: String, outcome: Outcome) {
        let Some((event, attempt)) = parse(&key).filter(|_| self.begin(&key)) else {
            return;
        };
        let (context, outcome) = (context.clone(), in_time(context, &key, outcome));
        if let Some(ended) = find(&context.state(), &key) {
            context.metrics.hook(ended.hook.phase, &outcome, context.time.now().since(ended.begun_at));
        }
        tokio::spawn(async move {
            tracing::info!(attempt = key, outcome = outcome.as_word(), reason = outcome.reason(), "hook ended");
            context.record(&Command::FinishAttempt(FinishAttempt { event, attempt, outcome })).await;
        });
    }

    /// False when somebody is at it already.
    fn begin(&self, key: &str) -> bool {
        self.busy().insert(key.into())
    }

    fn busy(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.busy.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn task(context: &Context, event: &Event, attempt: &Attempt, key: String, is_traced: bool) -> HookTask {
    let announcement = &event.announcement;
    let state = context.state();
    let input = context.planning_input();
    HookTask {
        attempt: key,
        step: event.step_id(attempt),
        fence: Fence { term: state.leadership.as_ref().map_or(0, |known| known.term), sequence: attempt.id.0 },
        event_id: announcement.id.clone(),
        event_type: announcement.kind.clone(),
        event_source: announcement.source.clone(),
        resources: announcement.resources.clone(),
        phase: attempt.hook.phase,
        place: place_of(&state, context, attempt),
        workload: attempt.member.workload.clone(),
        group: state.workload(&attempt.member).and_then(|workload| workload.group.clone()),
        vm: attempt.member.vm.clone(),
        intent: attempt.intent,
        deadline: context.time.deadline(event.deadline_of(attempt)),
        avoid: assignments::vms_to_avoid(&state, &input, &attempt.member),
        prefer: assignments::preferred_vms(&state, &input, &attempt.member),
        traceparent: is_traced.then(|| TraceId::of(&context.node.cluster, event).parent(attempt.id)),
        drill: event.drill.as_ref().map(|drill| drill.mode),
    }
}

/// Where the hook stands among those of its phase, on this VM.
fn place_of(state: &State, context: &Context, attempt: &Attempt) -> usize {
    let workload =
        state.replicas.get(&context.node.name).and_then(|replica| replica.workload(&attempt.member.workload));
    let id = state.hook_run_on(&context.node.name, &attempt.member, attempt.hook);
    workload.zip(id).and_then(|(workload, id)| workload.place_of(id)).unwrap_or_default()
}

/// What was stopped because the event leaves it less time than it had at its start has run out of time.
fn in_time(context: &Context, key: &str, outcome: Outcome) -> Outcome {
    let state = context.state();
    let event = parse(key).and_then(|(event, _)| state.event(&event));
    let is_overrun = |event| find(&state, key).is_some_and(|it| attempts::is_overrun(event, it, context.time.now()));
    if outcome == Outcome::Cancelled && event.is_some_and(is_overrun) {
        return Outcome::TimedOut("the event left it less time than there was when it began".into());
    }
    outcome
}
