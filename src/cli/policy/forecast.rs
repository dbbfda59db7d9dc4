//! The forecast for an event, computed by the core itself: a made-up cluster of the configured replicas, all healthy,
//! in which every hook ends at once.

use allclear_core::policy;
use allclear_core::schedule::required;
use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::why::{self, PassedOver};
use allclear_core::apply::apply;
use allclear_core::apply::slot_updates::update_slots;
use allclear_core::explain::explain;
use allclear_core::model::attempt::Outcome;
use allclear_core::model::command::{
    BeginAttempt, BeginLastCall, ChooseTreatment, Command, Entry, FinishAttempt, RegisterWorkloads, ReportDocument,
    TakeSlots,
};
use allclear_core::model::document::{Announcement, Document, NotBefore};
use allclear_core::model::event::Event;
use allclear_core::model::id::{AttemptId, EventId, VmName};
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::treatment::Action;
use allclear_core::plan::plan;
use allclear_core::planning_input::{PeerHealth, PlanningInput, Timing};
use allclear_core::schedule::required::skipped_steps;
use allclear_core::schedule::step::Step;
use allclear_server::config::Config;
use allclear_server::replica::clock::rfc3339;
use allclear_server::replica::view::blocker as told;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// More turns than an event can have hooks: each turn ends at least one hook, or takes slots.
const TURNS: u32 = 10_000;

/// The forecast for one event.
#[derive(Serialize)]
pub(super) struct Forecast {
    pub(super) id: String,
    pub(super) r#type: String,
    pub(super) source: String,
    pub(super) status: String,
    pub(super) resources: Vec<String>,
    pub(super) not_before: Option<String>,
    /// -1 where Azure gives no duration.
    pub(super) duration_s: i64,
    pub(super) description: String,
    pub(super) treatment: &'static str,
    pub(super) rule: String,
    pub(super) matched: Vec<String>,
    pub(super) passed_over: Vec<PassedOver>,
    pub(super) phases: Vec<&'static str>,
    pub(super) preparation_starts: String,
    pub(super) preparation_ends: String,
    pub(super) notice_ends: String,
    pub(super) budget_s: Option<f64>,
    /// The hooks in the order of their start.
    pub(super) hooks: Vec<ForecastRun>,
    pub(super) left_out: Vec<NotRun>,
    /// The first blocker; absent where the event waits for nothing.
    pub(super) waits_for: Option<shown::Blocker>,
    pub(super) in_the_end: String,
}

/// A hook that would run.
#[derive(Serialize)]
pub(super) struct ForecastRun {
    /// Hooks of one turn run concurrently; each turn starts when the previous turn has ended.
    pub(super) turn: u32,
    pub(super) workload: String,
    pub(super) vm: String,
    pub(super) phase: &'static str,
    pub(super) on: String,
    pub(super) timeout_s: f64,
    /// Only hooks of the first turn have a deadline; later hooks start when earlier hooks have ended.
    pub(super) deadline: Option<String>,
    pub(super) on_failure: &'static str,
}

/// A hook that would not run.
#[derive(Serialize)]
pub(super) struct NotRun {
    pub(super) workload: String,
    pub(super) vm: String,
    pub(super) phase: &'static str,
    pub(super) why: String,
}

/// Every configured replica; a replica without a name and without peers is called `this-vm`.
pub(super) fn members(config: &Config) -> Vec<VmName> {
    if config.cluster.replicas.is_empty() {
        vec![config.replica.name.clone().unwrap_or_else(|| VmName::new("this-vm"))]
    } else {
        config.cluster.replicas.iter().map(|peer| peer.name.clone()).collect()
    }
}

/// The forecast for each event of a document that every replica sees at `now` for the first time.
pub(super) fn forecasts(config: &Config, document: &Document, now: Timestamp) -> Vec<Forecast> {
    let members = members(config);
    let mut state = State::default();
    let mut enter = |by: &VmName, command| apply(&mut state, &Entry { at: now, by: by.clone(), command });
    for name in &members {
        let workloads = config.workloads.iter().map(allclear_server::config::ConfiguredWorkload::registered).collect();
        enter(name, Command::RegisterWorkloads(RegisterWorkloads { workloads, groups: config.groups.clone() }));
    }
    for name in &members {
        enter(name, Command::ReportDocument(ReportDocument { after: 0, document: document.clone() }));
    }
    for announcement in &document.events {
        let treatment = policy::treatment_of(&config.policy, announcement, &members, now);
        enter(&members[0], Command::ChooseTreatment(ChooseTreatment { event: announcement.id.clone(), treatment }));
    }
    let input = input(config, &members, now);
    document.events.iter().filter_map(|announcement| forecast(config, &state, announcement, &input)).collect()
}

fn input(config: &Config, members: &[VmName], now: Timestamp) -> PlanningInput {
    let well = PeerHealth {
        reachable: true,
        since: now,
        imds: ImdsHealth::Healthy,
        imds_since: now,
        document_age: Some(Duration::ZERO),
        answers_in: Duration::ZERO,
        operator_seq: 0,
        can_acknowledge: false,
    };
    PlanningInput {
        now,
        me: members[0].clone(),
        members: members.to_vec(),
        learners: BTreeSet::new(),
        versions: BTreeMap::new(),
        peers: members.iter().map(|name| (name.clone(), well)).collect(),
        quorum: true,
        leading_since: now,
        leader: None,
        isolated: None,
        policy: config.policy.clone(),
        timing: Timing::default(),
    }
}

fn forecast(config: &Config, state: &State, seen: &Announcement, input: &PlanningInput) -> Option<Forecast> {
    let event = state.open_event(&seen.id)?;
    let treatment = event.treatment.as_ref()?;
    let choice = policy::explain(&config.policy, seen, &input.members, input.now);
    let words = |names: &[VmName]| names.iter().map(ToString::to_string).collect();
    let (hooks, stuck) = runs(state, &seen.id, input);
    let left_out = skipped_steps(state, event).into_iter();
    let left_out = left_out.map(|(step, reason)| not_run(&step, why::left_out(reason))).chain(stuck).collect();
    Some(Forecast {
        id: seen.id.to_string(),
        r#type: seen.kind.to_string(),
        source: seen.source.to_string(),
        status: seen.status.to_string(),
        resources: words(&seen.resources),
        not_before: match seen.not_before {
            NotBefore::At(at) => Some(rfc3339(at)),
            NotBefore::Unknown => None,
        },
        duration_s: seen.duration.map_or(-1, |duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)),
        description: seen.description.clone(),
        treatment: treatment.action.as_str(),
        rule: treatment.rule.clone(),
        matched: why::matched(&choice, &config.policy, seen, input.now),
        passed_over: why::passed_over(&choice, seen, input.now),
        phases: treatment.phases.iter().map(|phase| phase.as_str()).collect(),
        preparation_starts: rfc3339(event.preparation_starts()),
        preparation_ends: rfc3339(event.preparation_ends()),
        notice_ends: rfc3339(event.notice_ends()),
        budget_s: treatment.budget.map(|budget| budget.as_secs_f64()),
        in_the_end: in_the_end(state, event, treatment.action),
        hooks,
        left_out,
        waits_for: explain(state, event, input).first().map(|blocker| told::shown(blocker, event, state, input)),
    })
}

/// Starts the hooks of the leader's plan from the start of preparation on, and ends each hook at once. Hooks that
/// never start are returned with the skipped hooks.
fn runs(state: &State, event: &EventId, input: &PlanningInput) -> (Vec<ForecastRun>, Vec<NotRun>) {
    let (mut state, mut runs) = (state.clone(), Vec::new());
    // The hooks run as with a free budget: `waits_for` reports the members for which the event waits.
    state.open.retain(|id, _| id == event);
    state.slots.clear();
    update_slots(&mut state);
    let Some(starts) = state.open_event(event).map(Event::preparation_starts) else { return (runs, Vec::new()) };
    let input = PlanningInput { now: starts.max(input.now), ..input.clone() };
    let mut turn = 0;
    for _ in 0..TURNS {
        let due = plan(&state, &input);
        let at = input.now;
        // An event with a short notice takes its slots by its last call.
        let takes = |command: &Command| match command {
            Command::TakeSlots(TakeSlots { event: of }) | Command::BeginLastCall(BeginLastCall { event: of }) => {
                of == event
            }
            _ => false,
        };
        if let Some(take) = due.iter().find(|command| takes(command)) {
            apply(&mut state, &Entry { at, by: input.me.clone(), command: take.clone() });
            continue;
        }
        let is_begin =
            |command: &Command| matches!(command, Command::BeginAttempt(BeginAttempt { event: of, .. }) if of == event);
        let begins: Vec<Command> = due.into_iter().filter(is_begin).collect();
        if begins.is_empty() {
            break;
        }
        turn += 1;
        for begin in begins {
            let Command::BeginAttempt(BeginAttempt { member, hook: id, on, deadline, .. }) = &begin else { continue };
            runs.extend(state.hook(member, *id).map(|hook| ForecastRun {
                turn,
                workload: member.workload.to_string(),
                vm: member.vm.to_string(),
                phase: id.phase.as_str(),
                on: on.to_string(),
                timeout_s: hook.timeout.as_secs_f64(),
                deadline: (turn == 1).then(|| rfc3339(*deadline)),
                on_failure: hook.on_failure.as_str(),
            }));
            let attempt = AttemptId(state.attempts + 1);
            let settle =
                Command::FinishAttempt(FinishAttempt { event: event.clone(), attempt, outcome: Outcome::Done });
            for (by, command) in [(input.me.clone(), begin.clone()), (on.clone(), settle)] {
                apply(&mut state, &Entry { at, by, command });
            }
        }
    }
    (runs, stuck(&state, event))
}

fn is_unbegun(event: &Event, step: &Step<'_>) -> bool {
    event.attempts_of(&step.member, step.id).next().is_none()
}

fn stuck(state: &State, id: &EventId) -> Vec<NotRun> {
    let Some(event) = state.open_event(id) else { return Vec::new() };
    let steps = required::required_steps(state, event).into_iter().filter(|step| is_unbegun(event, step));
    steps.map(|step| not_run(&step, why::never_begun(event, &step))).collect()
}

fn not_run(step: &Step<'_>, why: String) -> NotRun {
    NotRun {
        workload: step.member.workload.to_string(),
        vm: step.member.vm.to_string(),
        phase: step.id.phase.as_str(),
        why,
    }
}

fn in_the_end(state: &State, event: &Event, action: Action) -> String {
    let notice_ends = rfc3339(event.notice_ends());
    if !event.is_scheduled() {
        return "Azure has started the event: there is nothing to approve".into();
    }
    let budget = event.treatment.as_ref().and_then(|treatment| treatment.budget);
    match (action, budget) {
        (Action::Observe, _) => format!("allclear never approves the event; Azure starts the event at {notice_ends}"),
        (Action::Approve, _) => "allclear approves the event unprepared, as soon as nothing else blocks it".into(),
        (Action::Prepare, _) if required::required_steps(state, event).is_empty() => {
            "allclear approves the event as soon as nothing else blocks the event: there is nothing to prepare".into()
        }
        (Action::Prepare, Some(budget)) => format!(
            "allclear approves the event {} after its groups have room, even if hooks have not run; but after a \
             permanently failed hook with on_failure = hold, allclear does not approve the event, and Azure starts the \
             event at {notice_ends}",
            humantime::format_duration(budget)
        ),
        (Action::Prepare, None) => {
            format!("while a hook is unfinished, allclear does not approve; Azure starts the event at {notice_ends}")
        }
    }
}
