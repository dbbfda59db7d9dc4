//! The last call (`SPEC.md` 8, R7). The platform starts an event when its notice ends, with or without approval. An
//! event that still waits then, or is held or paused, is prepared over the budget, as far as that moves service away.
//! The last call does not approve the event.

use crate::model::attempt::Outcome;
use crate::model::event::Event;
use crate::model::id::GroupName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use crate::model::workload::{Intent, Member, Phase};
use crate::schedule::affected_members::needed;
use crate::schedule::failure::holding_failure_among;
use crate::schedule::groups::{affected_groups, max_unavailable};
use crate::schedule::required::required_steps;
use crate::schedule::slots;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::StepState;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::time::Duration;

/// Duration of a hook without previous runs and without an expected duration.
const USUAL: Duration = Duration::from_secs(20);

/// Number of previous runs of a hook that count, and number of closed events that are searched for these runs.
const RUNS: usize = 5;

const RECENT: usize = 100;

/// The least lead, however short the previous runs were: a run may take longer, and a failover that is stopped half way
/// leaves no primary. The switch of PostgreSQL does not begin with less than 15 s left.
const LEAST: Duration = Duration::from_secs(20);

/// Time before the end for the hooks left to run, each with a reserve.
fn lead(state: &State, event: &Event) -> Duration {
    bounded(event, time_to_run(state, event, |step| is_left(event, step), with_reserve).max(LEAST))
}

/// Expected duration of the hooks left to run.
pub fn expected_course(state: &State, event: &Event) -> Duration {
    bounded(event, time_to_run(state, event, |step| is_left(event, step), expected))
}

/// Expected duration of the hooks of a last call, from the beginning of the call on. Without a reserve: a hook that hangs
/// must not take the time of the next last call in its group.
fn course_of_call(state: &State, event: &Event, now: Timestamp) -> Duration {
    bounded(event, time_to_run(state, event, |step| lets_run(state, event, step, now), expected))
}

/// At most `last_call`, and at most a quarter of the notice.
fn bounded(event: &Event, time: Duration) -> Duration {
    time.min(longest_lead(event)).min(whole_notice(event) / 4)
}

/// The longest member's sum of the disruptive hooks that count.
fn time_to_run(
    state: &State,
    event: &Event,
    counts: impl Fn(&Step<'_>) -> bool,
    of: fn(&State, &Step<'_>) -> Duration,
) -> Duration {
    let mut of_members: BTreeMap<Member, Duration> = BTreeMap::new();
    let disruptive = required_steps(state, event).into_iter().filter(|step| step.id.phase.is_disruptive());
    for step in disruptive.filter(counts) {
        *of_members.entry(step.member.clone()).or_default() += of(state, &step);
    }
    of_members.into_values().max().unwrap_or_default()
}

/// Whether the whole notice is shorter than a last call may be: such an event is in last call from its first sight on.
fn is_short(event: &Event) -> bool {
    whole_notice(event) < longest_lead(event)
}

fn longest_lead(event: &Event) -> Duration {
    event.treatment.as_ref().map_or(Duration::ZERO, |treatment| treatment.last_call)
}

fn whole_notice(event: &Event) -> Duration {
    event.notice_ends().since(event.first_seen())
}

fn is_left(event: &Event, step: &Step<'_>) -> bool {
    !matches!(step_state::state_without_undo(event, step, event.first_seen()), StepState::Satisfied)
}

/// Twice the longest of the hook's last runs; before the first run, its expected duration.
fn with_reserve(state: &State, step: &Step<'_>) -> Duration {
    longest_run(state, step).map_or_else(|| of_no_run(step), |longest| longest * 2)
}

/// The longest of the hook's last runs; before the first run, its expected duration.
fn expected(state: &State, step: &Step<'_>) -> Duration {
    longest_run(state, step).unwrap_or_else(|| of_no_run(step))
}

fn of_no_run(step: &Step<'_>) -> Duration {
    step.hook.expected.unwrap_or(USUAL)
}

fn longest_run(state: &State, step: &Step<'_>) -> Option<Duration> {
    let runs = state.closed_events().rev().take(RECENT).flat_map(|event| event.attempts.iter().rev());
    let runs = runs.filter(|run| run.member == step.member && run.hook == step.id && run.intent == Intent::Run);
    let done = runs.filter_map(|run| match &run.outcome {
        Some((Outcome::Done, at)) => Some(at.since(run.begun_at)),
        _ => None,
    });
    done.take(RUNS).max()
}

/// Start of the event's last call, unless the last call is under way by then.
pub fn begins_at(state: &State, event: &Event) -> Timestamp {
    if is_short(event) {
        return event.first_seen();
    }
    event.notice_ends().minus(event.margin()).minus(lead(state, event))
}

/// Whether the notice ends so soon that a last call could begin.
pub fn is_near(event: &Event, now: Timestamp) -> bool {
    let lead = longest_lead(event).min(whole_notice(event) / 4);
    is_short(event) || now >= event.notice_ends().minus(event.margin()).minus(lead)
}

/// Whether the event's last call may begin now.
pub fn is_due(state: &State, event: &Event, now: Timestamp) -> bool {
    let prepares = event.treatment.as_ref().is_some_and(|treatment| treatment.action == Action::Prepare);
    let is_idle =
        event.last_call_since.is_none() && event.stage() <= Stage::Preparing && !event.has_isolated_approval();
    if event.is_drill() || !prepares || !is_idle || !event.is_scheduled() || !state.is_listed(&event.announcement.id) {
        return false;
    }
    // Cheap checks first: the lead is computed from the history.
    if !is_near(event, now) || now >= event.notice_ends() || event.hold(now).is_some_and(|hold| hold.no_hooks) {
        return false;
    }
    // An event with slots waits too: for a hook that failed, or for members that went out of service meanwhile.
    let is_halted = event.hold(now).is_some() || state.pause(now).is_some();
    let waits = event.slots_since.is_none() || is_halted || !slots::may_disrupt(state, event, now);
    waits && has_service(state, event, now) && now >= begins_at(state, event) && !is_behind(state, event, now)
}

/// Whether there is service to move away. A member whose hook failed is left as it is: the later hooks of the member
/// wait for this hook.
pub fn has_service(state: &State, event: &Event, now: Timestamp) -> bool {
    let steps = required_steps(state, event);
    let is_stopped = |step: &Step<'_>| holding_failure_among(event, core::slice::from_ref(step), now).is_some();
    let stopped: Vec<&Member> = steps.iter().filter(|step| is_stopped(step)).map(|step| &step.member).collect();
    let mut left = steps.iter().filter(|step| step.id.phase.is_disruptive() && is_left(event, step));
    left.any(|step| !stopped.contains(&&step.member))
}

/// Last calls of one group begin in sequence: each when the hooks of the one before have ended, or should have.
fn is_behind(state: &State, event: &Event, now: Timestamp) -> bool {
    let groups = affected_groups(state, event);
    let others = state.open_events().filter(|other| other.announcement.id != event.announcement.id);
    let mut calling = others.filter(|other| {
        let begun = other.last_call_since.filter(|_| other.stage() <= Stage::Preparing);
        begun.is_some_and(|begun| now < begun.plus(course_of_call(state, other, now))) && is_calling(state, other, now)
    });
    calling.any(|other| affected_groups(state, other).iter().any(|group| groups.contains(group)))
}

/// Whether a hook of the event's last call is left. A shutdown that waits for the last moment keeps no other event
/// waiting.
fn is_calling(state: &State, event: &Event, now: Timestamp) -> bool {
    let disruptive = required_steps(state, event).into_iter().filter(|step| step.id.phase.is_disruptive());
    disruptive.filter(|step| is_left(event, step)).any(|step| lets_run(state, event, &step, now))
}

/// In last call a hook runs as far as the hook moves service away. A shutdown ends service: so a shutdown runs only
/// where a majority of the group stays in service, or where the platform is about to end the service anyway.
pub(crate) fn lets_run(state: &State, event: &Event, step: &Step<'_>, now: Timestamp) -> bool {
    let is_hurried = event.last_call_since.is_some() || event.is_reopened();
    if !is_hurried || step.id.phase != Phase::Shutdown {
        return true;
    }
    let is_last_moment = now.plus(expected(state, step)) >= event.notice_ends().minus(event.margin());
    let group = state.workload(&step.member).and_then(|workload| workload.group.as_ref());
    is_last_moment || group.is_none_or(|group| leaves_a_majority(state, group, &step.member))
}

fn leaves_a_majority(state: &State, group: &GroupName, leaving: &Member) -> bool {
    let of_group = state.workloads().filter(|(_, workload)| workload.group.as_ref() == Some(group));
    let members: Vec<Member> = of_group.map(|(vm, workload)| workload.on(vm)).collect();
    let staying =
        members.iter().filter(|member| *member != leaving && state.out_of_service_cause(member).is_none()).count();
    staying * 2 > members.len()
}

/// Members of the group that will be out beside the event's own when its notice ends, above the group's limit; reported
/// ahead.
pub fn overdraft(state: &State, event: &Event) -> Vec<Member> {
    let own: Vec<Member> = needed(state, event).into_iter().map(|(member, _)| member).collect();
    let groups = affected_groups(state, event);
    let over = groups.into_iter().flat_map(|group| {
        let of_group = state.workloads().filter(move |(_, workload)| workload.group.as_ref() == Some(group));
        let others = of_group.map(|(vm, workload)| workload.on(vm)).filter(|member| !own.contains(member));
        let out: Vec<Member> = others.filter(|member| state.out_of_service_cause(member).is_some()).collect();
        let mine =
            own.iter().filter(|member| state.workload(member).is_some_and(|it| it.group.as_ref() == Some(group)));
        if out.len() + mine.count() > max_unavailable(state, group) { out } else { Vec::new() }
    });
    over.collect()
}
