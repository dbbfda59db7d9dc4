//! The order of steps, and what is told with an event.

use super::*;
use allclear_core::apply::apply;
use allclear_core::model::attempt::{Attempt, Waiver};
use allclear_core::model::command::{Command, Entry, RegisterWorkloads};
use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::{AttemptId, EventId, VmName, WorkloadName};
use allclear_core::model::operator::OperatorAction;
use allclear_core::model::treatment::Treatment;
use allclear_core::model::workload::{Hook, Member, OnAbsent, Origin, Phase, Workload};
use allclear_core::policy::{Policy, treatment_of};
use std::time::Duration;

const NOW: Timestamp = Timestamp(5);

fn entered(stages: &[Stage]) -> Event {
    let announcement = Announcement {
        id: EventId::new("e"),
        status: Status::Scheduled,
        kind: EventType::Reboot,
        source: Source::User,
        resource_type: String::new(),
        resources: Vec::new(),
        not_before: NotBefore::Unknown,
        description: String::new(),
        duration: None,
    };
    let mut event = Event::first_seen_as(announcement, VmName::new("db-0"), Timestamp(1));
    event.entered.extend(stages.iter().map(|stage| (*stage, NOW)));
    event
}

fn in_order(mut steps: Steps) -> Vec<String> {
    steps.sort_by_key(|(at, place, _)| (*at, *place));
    steps.into_iter().map(|(_, _, step)| step.what).collect()
}

#[test]
fn stages_of_one_moment_are_told_in_their_order() {
    let order = [Stage::Claimed, Stage::Approved, Stage::Started, Stage::Restoring, Stage::Closed];
    let mut steps = Steps::new();
    stages(&entered(&order), &mut steps);
    assert_eq!(in_order(steps), ["announced", "claimed", "approved", "started", "restoring", "closed"]);
}

#[test]
fn members_that_return_meanwhile_are_told() {
    let event = Event { gave_back: vec![Timestamp(7)], ..entered(&[]) };
    let mut steps = Steps::new();
    ending(&event, &mut steps);
    let wanted = "the members of the event return to service, because the event does not go on";
    assert_eq!((steps[0].0, in_order(steps)), (Timestamp(7), vec![wanted.to_owned()]));
}

#[test]
fn an_event_whose_start_nobody_saw_does_not_claim_to_know_how_it_ended() {
    let told = |stages: &[Stage], ending, notice_ends| {
        let mut event = entered(stages);
        event.ending = Some(ending);
        event.announcement.not_before = NotBefore::At(Timestamp(notice_ends));
        let mut steps = Steps::new();
        super::ending(&event, &mut steps);
        in_order(steps).concat()
    };
    let unseen = [Stage::Approved, Stage::Closed];
    let completed = told(&unseen, Ending::Completed, 100);
    assert!(completed.starts_with("the event is over: completed; no replica saw the start"), "{completed}");
    let blind = told(&[Stage::Closed], Ending::Cancelled, 4);
    assert!(
        blind.ends_with(
            "cancelled; no replica saw the start, and the notice had ended: Azure may have started the event unseen"
        ),
        "{blind}"
    );
    assert_eq!(told(&[Stage::Closed], Ending::Cancelled, 100), "the event is over: cancelled");
    assert_eq!(told(&[Stage::Started, Stage::Closed], Ending::Completed, 4), "the event is over: completed");
}

#[test]
fn a_budget_that_counts_anew_is_told_with_its_reason() {
    let budget = Some(Duration::from_mins(2));
    let told = |halted_until: i64, budget| {
        let mut event = entered(&[]);
        event.treatment = Some(Treatment { budget, ..treatment_of(&Policy::default(), &event.announcement, &[], NOW) });
        (event.slots_since, event.halted_until) = (Some(Timestamp(2)), Some(Timestamp(halted_until)));
        let mut steps = Steps::new();
        super::budget(&event, NOW, &mut steps);
        steps.into_iter().map(|(at, _, step)| (at, step.what)).collect::<Vec<_>>()
    };
    let what = "the budget of 120 s counts from now on, because the event could not go on before, or has changed";
    assert_eq!(told(4, budget), [(Timestamp(4), what.to_owned())]);
    assert_eq!(told(2, budget), [], "as from the slots");
    assert_eq!(told(i64::MAX, budget), [], "the hooks are still stopped");
    assert_eq!(told(4, None), []);
}

#[test]
fn a_pause_that_was_over_before_the_event_is_not_told_with_it() {
    let record =
        |number, at, what| OperatorRecord { number, at: Timestamp(at), who: "ada".into(), reason: "work".into(), what };
    let mut state = State::default();
    state.operator_records.push(record(1, 1, OperatorAction::Pause { until: Timestamp(100) }));
    state.operator_records.push(record(2, 5, OperatorAction::Resume));
    let told = |seen| {
        let mut event = entered(&[]);
        event.entered = vec![(Stage::Announced, Timestamp(seen))];
        operator_requests(&state, &event, Timestamp(50)).map(|(at, ..)| at.0).collect::<Vec<_>>()
    };
    assert_eq!(told(3), [1, 5], "the event was open during the pause");
    assert_eq!(told(10), [0; 0]);
}

#[test]
fn a_skipped_hook_is_told_before_the_claim_that_it_led_to() {
    let mut event = entered(&[Stage::Preparing, Stage::Claimed]);
    let member = Member { vm: VmName::new("db-0"), workload: WorkloadName("pg".into()) };
    let skipped = WaiverReason::Skipped { who: "ada".into(), reason: "known".into() };
    let hook = HookId { phase: Phase::Drain, key: 0 };
    event.waivers.push(Waiver { member, hook, why: skipped, at: NOW });
    let mut steps = Steps::new();
    stages(&event, &mut steps);
    hooks(&State::default(), &event, &mut steps);
    let skipped = "drain of pg on db-0: waived, skipped by ada: known";
    assert_eq!(in_order(steps), ["announced", skipped, "preparing", "claimed"]);
}

#[test]
fn hooks_of_one_phase_have_the_names_that_commands_take() {
    let vm = VmName::new("db-0");
    let name = WorkloadName("pg".into());
    let drain = |digest, name: Option<&str>| Hook {
        command_digest: digest,
        name: name.map(Into::into),
        ..Hook::of(Phase::Drain)
    };
    let workload = Workload {
        name: name.clone(),
        group: None,
        after: Vec::new(),
        hooks: vec![drain(1, None), drain(2, None), drain(3, Some("pooler"))],
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    };
    let ids: Vec<HookId> = workload.hooks_of(Phase::Drain).map(|(id, _)| id).collect();
    let mut state = State::default();
    let workloads = RegisterWorkloads { workloads: vec![workload], groups: Vec::new() };
    let command = Command::RegisterWorkloads(workloads);
    apply(&mut state, &Entry { at: Timestamp(1), by: vm.clone(), command });
    let mut event = entered(&[]);
    let gone = HookId { phase: Phase::Drain, key: 99 };
    event.waivers = [&ids[..], &[gone]]
        .concat()
        .into_iter()
        .map(|hook| {
            let member = Member { vm: vm.clone(), workload: name.clone() };
            Waiver { member, hook, why: WaiverReason::Unreachable, at: NOW }
        })
        .collect();
    let mut steps = Steps::new();
    hooks(&state, &event, &mut steps);
    let of = |label: &str| format!("{label} of pg on db-0: waived, unreachable");
    assert_eq!(in_order(steps), ["drain", "drain#2", "drain#pooler", "drain#0000000000000063"].map(of));
}

#[test]
fn a_second_outcome_is_told_with_why_it_does_not_count() {
    let told = |settled| {
        let member = Member { vm: VmName::new("db-0"), workload: WorkloadName("pg".into()) };
        let mut event = entered(&[]);
        event.attempts.push(Attempt {
            id: AttemptId(1),
            member,
            hook: HookId { phase: Phase::Drain, key: 0 },
            intent: Intent::Run,
            stint: 0,
            on: VmName::new("db-0"),
            begun_at: Timestamp(2),
            deadline: Timestamp(9),
            progress: None,
            blocked: None,
            outcome: Some((settled, Timestamp(3))),
            late: Some((Outcome::Failed("no".into()), NOW)),
        });
        let mut steps = Steps::new();
        hooks(&State::default(), &event, &mut steps);
        in_order(steps).pop().unwrap()
    };
    let ignored = "drain of pg on db-0: failed, ignored because";
    assert_eq!(told(Outcome::Done), format!("{ignored} the hook had ended as done"));
    for late in [Outcome::Unknown(String::new()), Outcome::TimedOut(String::new())] {
        assert_eq!(told(late), format!("{ignored} the outcome came too late"));
    }
}
