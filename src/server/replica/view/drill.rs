//! A drill as shown to operators: every hook with the outcome.

use allclear_core::model::attempt::{Attempt, Outcome};
use allclear_core::model::drill::Drill;
use allclear_core::model::event::{Ending, Event};
use allclear_core::model::hook_id::HookId;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::state::State;
use allclear_core::model::workload::{Intent, Member, OnAbsent, Phase};
use allclear_core::schedule::last_call;
use allclear_core::schedule::required;
use allclear_core::schedule::required::would_run;
use allclear_core::schedule::restore;
use allclear_core::schedule::step::Step;
use allclear_core::schedule::step_state;
use allclear_core::schedule::step_state::StepState;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn shown(state: &State, event: &Event, drill: &Drill) -> shown::Drill {
    let due: Vec<_> =
        required::required_steps(state, event).into_iter().chain(restore::restore_steps(state, event)).collect();
    let runs = due.iter().map(|step| run(state, event, step));
    let ended = ended(event, &due).map(|last| {
        let result = outcome(last).map_or("running", Outcome::as_str);
        told(state, event, (&last.member, last.hook), result, outcome(last).and_then(Outcome::reason).map(String::from))
    });
    let named = would_run(state, event).into_iter().map(|step| {
        let (result, reason) = unless_disconnected(&step, "would_run", None);
        told(state, event, (&step.member, step.id), result, reason)
    });
    let steps = runs.chain(ended).chain(named).collect();
    shown::Drill { mode: drill.mode.to_string(), who: drill.who.clone(), steps }
}

/// The last attempt of each hook without a step: the restore hooks of members back in service, and the hooks of workloads
/// without a registration.
fn ended<'a>(event: &'a Event, due: &[Step<'_>]) -> impl Iterator<Item = &'a Attempt> {
    let is_due = |attempt: &&Attempt| due.iter().any(|it| it.member == attempt.member && it.id == attempt.hook);
    let mut last: Vec<&Attempt> = Vec::new();
    for attempt in event.attempts.iter().filter(|it| it.intent != Intent::Undo).filter(|it| !is_due(it)) {
        last.retain(|it| it.member != attempt.member || it.hook != attempt.hook);
        last.push(attempt);
    }
    last.into_iter()
}

fn run(state: &State, event: &Event, step: &Step<'_>) -> shown::DrillStep {
    if event.waivers.iter().any(|waiver| waiver.member == step.member && waiver.hook == step.id) {
        return told(state, event, (&step.member, step.id), "not_waited_for", None);
    }
    let last = event.attempts_of(&step.member, step.id).next_back().and_then(outcome);
    let reason = || last.and_then(Outcome::reason).map(String::from);
    let may_begin =
        if step.id.phase < Phase::Restore { !event.stage().is_over() } else { event.stage() < Stage::Closed };
    match step_state::state_without_undo(event, step, state.now) {
        StepState::Running(_) => told(state, event, (&step.member, step.id), "running", None),
        StepState::Satisfied => {
            let (result, reason) = match last {
                Some(outcome) => (outcome.as_str(), plan(event, step)),
                None => unless_disconnected(step, "done", plan(event, step)),
            };
            told(state, event, (&step.member, step.id), result, reason)
        }
        StepState::Failed(reason) => told(state, event, (&step.member, step.id), failure(step), Some(reason)),
        StepState::Due { blocked, .. } if may_begin => told(state, event, (&step.member, step.id), "waiting", blocked),
        StepState::Due { .. } | StepState::OutOfTime if last.is_none() => {
            told(state, event, (&step.member, step.id), "not_run", Some(not_run(state, event)))
        }
        StepState::Due { .. } | StepState::OutOfTime => {
            told(state, event, (&step.member, step.id), failure(step), reason())
        }
    }
}

/// The result of a hook without an attempt. A hook of a disconnected workload would not have run.
fn unless_disconnected(
    step: &Step<'_>,
    result: &'static str,
    reason: Option<String>,
) -> (&'static str, Option<String>) {
    match step.when_disconnected {
        Some(OnAbsent::Skip) => ("not_run", Some("the workload is not connected: an event skips its hooks".into())),
        Some(_) => ("not_run", Some("the workload is not connected: an event waits for its hooks".into())),
        None => (result, reason),
    }
}

/// How the hook failed, in the word that the list of the event's attempts has.
fn failure(step: &Step<'_>) -> &'static str {
    step.forward().filter_map(outcome).rfind(|it| !it.is_favourable()).map_or("failed", Outcome::as_str)
}

/// Why a hook of a drill that is over was never begun.
fn not_run(state: &State, event: &Event) -> String {
    if event.ending == Some(Ending::Interrupted) {
        return "a real event or an operator ended the drill".into();
    }
    if let Some(stopped) = required::required_steps(state, event).iter().find_map(|step| stopped(state, event, step)) {
        return stopped;
    }
    if event.slots_since.is_some() || event.is_dry_run() {
        return "its turn did not come in the time for preparation".into();
    }
    // The members that were out of service may be back since.
    let others = last_call::overdraft(state, event);
    let others: Vec<String> = others.iter().map(ToString::to_string).collect();
    let others = if others.is_empty() { "other members".into() } else { others.join(" and ") };
    format!("a drill takes all its members or none, and there was no room: out of service were {others}")
}

/// Why the drill went no further than this hook.
fn stopped(state: &State, event: &Event, step: &Step<'_>) -> Option<String> {
    let last = event.attempts_of(&step.member, step.id).next_back().and_then(outcome)?;
    let which = format!("the {} hook of {}", state.hook_label(&step.member, step.id), step.member);
    match last {
        Outcome::Done | Outcome::NotApplicable => None,
        Outcome::Blocked(_) => Some(format!("{which} was blocked")),
        _ => Some(format!("{which} failed")),
    }
}

/// The last progress of a hook in a dry run: what the hook would do.
fn plan(event: &Event, step: &Step<'_>) -> Option<String> {
    let last = event.attempts_of(&step.member, step.id).next_back().filter(|_| event.is_dry_run())?;
    last.progress.as_ref().map(|progress| progress.text.clone()).filter(|text| !text.is_empty())
}

fn outcome(attempt: &Attempt) -> Option<&Outcome> {
    attempt.outcome.as_ref().map(|(outcome, _)| outcome)
}

fn told(state: &State, event: &Event, of: (&Member, HookId), result: &str, reason: Option<String>) -> shown::DrillStep {
    let (member, hook) = of;
    let mut attempts = event.attempts_of(member, hook);
    let begun = attempts.next().map(|first| first.begun_at);
    let last = event.attempts_of(member, hook).next_back();
    let ended = last.and_then(|last| last.outcome.as_ref()).map(|(_, at)| *at);
    let took = begun.zip(ended).map(|(begun, ended)| ended.since(begun).as_millis());
    shown::DrillStep {
        workload: member.workload.to_string(),
        vm: member.vm.to_string(),
        phase: hook.phase.to_string(),
        result: result.into(),
        reason,
        took_ms: took.map(|took| u64::try_from(took).unwrap_or(u64::MAX)),
        hook: state.hook_name(member, hook),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
    use allclear_core::model::drill::Mode;
    use allclear_core::model::id::{AttemptId, EventId, VmName, WorkloadName};
    use allclear_core::model::time::Timestamp;
    use allclear_core::model::workload::Hook;

    fn attempt(id: u64, phase: Phase, outcome: Outcome) -> Attempt {
        let vm = VmName::new("db-0");
        Attempt {
            id: AttemptId(id),
            member: Member { vm: vm.clone(), workload: WorkloadName("pg".into()) },
            hook: HookId { phase, key: 0 },
            intent: Intent::Run,
            stint: 1,
            on: vm,
            begun_at: Timestamp(1),
            deadline: Timestamp(9),
            progress: None,
            blocked: None,
            outcome: Some((outcome, Timestamp(2))),
            late: None,
        }
    }

    fn step(hook: &Hook) -> Step<'_> {
        Step {
            member: Member { vm: VmName::new("db-0"), workload: WorkloadName("pg".into()) },
            id: HookId { phase: Phase::Drain, key: 0 },
            hook,
            when_disconnected: None,
            stint: 1,
            attempts: Vec::new(),
            is_done_elsewhere: false,
            is_undo: false,
            on_failure: hook.on_failure,
        }
    }

    #[test]
    fn a_hook_of_a_disconnected_workload_that_was_not_run_did_not_end_well() {
        let hook = Hook::of(Phase::Drain);
        let result = |away| unless_disconnected(&Step { when_disconnected: away, ..step(&hook) }, "done", None);
        assert_eq!(result(None), ("done", None));
        for (away, why) in
            [(OnAbsent::Skip, "an event skips its hooks"), (OnAbsent::Hold, "an event waits for its hooks")]
        {
            assert_eq!(result(Some(away)), ("not_run", Some(format!("the workload is not connected: {why}"))));
        }
    }

    #[test]
    fn a_drill_tells_a_failed_restore_also_when_the_member_is_back() {
        let announcement = Announcement {
            id: EventId::new("drill-1"),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: Source::User,
            resource_type: String::new(),
            resources: vec![VmName::new("db-0")],
            not_before: NotBefore::Unknown,
            description: String::new(),
            duration: None,
        };
        let mut event = Event::first_seen_as(announcement, VmName::new("db-0"), Timestamp(1));
        event.entered.push((Stage::Closed, Timestamp(5)));
        let drill = Drill { mode: Mode::Rehearsal, who: "ada".into() };
        let mut told = |outcomes: &[Outcome]| {
            let restores = outcomes.iter().zip(2..).map(|(outcome, id)| attempt(id, Phase::Restore, outcome.clone()));
            event.attempts = [attempt(1, Phase::Drain, Outcome::Done)].into_iter().chain(restores).collect();
            let steps = shown(&State::default(), &event, &drill).steps.into_iter();
            steps.map(|step| format!("{} {}", step.phase, step.result)).collect::<Vec<_>>()
        };
        let failed = || Outcome::Failed("the disk is full".into());
        assert_eq!(told(&[failed(), failed()]), ["drain done", "restore failed"]);
        assert_eq!(told(&[failed(), Outcome::Done]), ["drain done", "restore done"], "the last attempt counts");
    }

    #[test]
    fn a_hook_failed_by_the_word_of_its_last_attempt_that_did_not_succeed() {
        let hook = Hook::of(Phase::Drain);
        let word = |outcomes: &[(Intent, Outcome)]| {
            let attempts: Vec<_> = outcomes
                .iter()
                .map(|(intent, outcome)| Attempt { intent: *intent, ..attempt(1, Phase::Drain, outcome.clone()) })
                .collect();
            failure(&Step { attempts: attempts.iter().collect(), ..step(&hook) })
        };
        let blocked = || (Intent::Run, Outcome::Blocked("no target".into()));
        assert_eq!(word(&[(Intent::Run, Outcome::Failed("full".into())), blocked()]), "blocked");
        assert_eq!(word(&[blocked(), (Intent::Undo, Outcome::Done)]), "blocked", "an undo is no success");
        assert_eq!(word(&[]), "failed");
    }
}
