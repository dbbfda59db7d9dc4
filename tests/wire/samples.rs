//! One record of every kind that is stored, under the name that its golden bytes carry.

use std::time::Duration;

use allclear::machine::model::attempt::{Outcome, Progress, WaiverReason};
use allclear::machine::model::claim::{PostOutcome, Reason};
use allclear::machine::model::command::{ApplyResult, Command, Entry, Rejection};
use allclear::machine::model::document::Document;
use allclear::machine::model::drill::Mode;
use allclear::machine::model::hook_id::HookId;
use allclear::machine::model::id::{AttemptId, EventId, VmName, WorkloadName};
use allclear::machine::model::operator::OperatorRequest;
use allclear::machine::model::state::State;
use allclear::machine::model::time::Timestamp;
use allclear::machine::model::workload::{Intent, Phase};

use crate::wire::record::Record;
use crate::wire::values::{
    NOW, announcement, cache, conditions, departed_state, dialled, dialled_state, document, drilled_state,
    grouped_state, groups, journal, led_state, measured_state, member, members_state, notified_state, postgres,
    rich_state, told, treatment, wished_state,
};

/// Every sample under the name that its golden bytes carry.
pub(crate) fn samples() -> Vec<(String, Record)> {
    let mut samples = Vec::new();
    for (name, command) in commands() {
        let entry = Entry { at: Timestamp(NOW), by: VmName::new("_DB-0"), command: command.clone() };
        samples.push((format!("entry {name}"), Record::Entry(entry)));
        samples.push((format!("command {name}"), Record::Command(command)));
    }
    for verdict in verdicts() {
        let word = match &verdict {
            ApplyResult::Applied => "applied",
            ApplyResult::Ignored(why) => why.as_word(),
        };
        samples.push((format!("verdict {word}"), Record::Verdict(verdict)));
    }
    samples.push(("state empty".into(), Record::State(State::default())));
    samples.push(("state rich".into(), Record::State(rich_state())));
    samples.push(("state groups".into(), Record::State(grouped_state())));
    samples.push(("state led".into(), Record::State(led_state())));
    let excluded = vec![VmName::new("db-4"), VmName::new("db-3")];
    samples.push(("state excluded".into(), Record::State(State { excluded, ..State::default() })));
    samples.push(("journal empty".into(), Record::Journal(Vec::new())));
    samples.push(("journal rich".into(), Record::Journal(journal())));
    samples.push(("state departed".into(), Record::State(departed_state())));
    samples.push(("state drilled".into(), Record::State(drilled_state())));
    samples.push(("state wished".into(), Record::State(wished_state())));
    samples.push(("state dialled".into(), Record::State(dialled_state())));
    samples.push(("state measured".into(), Record::State(measured_state())));
    samples.push(("state members".into(), Record::State(members_state())));
    samples.push(("state notified".into(), Record::State(notified_state())));
    samples
}

/// Every command; the first word of the name is the command's own.
pub(crate) fn commands() -> Vec<(String, Command)> {
    let event = EventId::new("C7061BAC-AFDC-4513-B24B-AA5F13A16123");
    let attempt = AttemptId(300);
    let hook = HookId { phase: Phase::Failover, key: 1 };
    let mut commands: Vec<Command> = vec![
        Command::Register { workloads: vec![postgres(), cache()], groups: Vec::new() },
        Command::Report { after: 41, document: document() },
        Command::Discount { replica: VmName::new("db-1") },
        Command::Treat { event: event.clone(), treatment: treatment() },
        Command::Begin {
            event: event.clone(),
            member: member("postgres"),
            hook,
            intent: Intent::Confirm,
            on: VmName::new("db-1"),
            deadline: Timestamp(NOW + 60_000),
        },
        Command::Advance {
            event: event.clone(),
            attempt,
            progress: Progress { text: "switching over".into(), expected_end: Some(Timestamp(NOW + 9_000)) },
        },
        Command::Expire { event: event.clone(), attempt },
        Command::Waive { event: event.clone(), member: member("postgres"), hook, why: WaiverReason::Unreachable },
        Command::Claim {
            event: event.clone(),
            approver: VmName::new("db-2"),
            reason: Reason::BudgetSpent,
            decision: 2,
            stints: vec![(member("postgres"), 7)],
            until: Timestamp(NOW + 5_000),
        },
        Command::Forget { event: event.clone() },
        Command::Lead { term: 3, turn: 2, voters: vec![VmName::new("db-0"), VmName::new("db-1")] },
        Command::Suspect { replica: VmName::new("db-1"), number: 9 },
        Command::Account { number: 9, journal: journal() },
        Command::Absolve { replica: VmName::new("db-1") },
        Command::Exclude { replica: VmName::new("db-1") },
        Command::Readmit { replica: VmName::new("db-1") },
        Command::Dismiss { replica: VmName::new("_DB-2") },
        Command::Drill { announcement: announcement("drill-1"), mode: Mode::Rehearsal, who: "uid 0 on db-0".into() },
        Command::EndDrill { event: event.clone() },
        Command::Enlist { workload: dialled() },
        Command::Delist { workload: WorkloadName("postgres".into()) },
        Command::Note { conditions: conditions() },
        Command::Extend { event: event.clone(), attempt, deadline: Timestamp(NOW + 90_000) },
        Command::Observed { event: event.clone(), lasted: Duration::from_millis(8_250) },
        Command::Notified { told: told() },
        Command::Raise { version: 2 },
    ];
    commands.extend(outcomes().into_iter().map(|outcome| Command::Settle { event: event.clone(), attempt, outcome }));
    commands.extend(posts().into_iter().map(|outcome| Command::Posted { event: event.clone(), attempt, outcome }));
    let all = commands.into_iter().chain(of_members(&event));
    let mut named: Vec<(String, Command)> = all.map(|command| (name(&command), command)).collect();
    named.push(("report nothing".into(), Command::Report { after: 0, document: Document::default() }));
    let nothing_said = Command::Advance { event, attempt: AttemptId(u64::MAX), progress: Progress::default() };
    named.push(("advance nothing".into(), nothing_said));
    named.push(("register nothing".into(), Command::Register { workloads: Vec::new(), groups: Vec::new() }));
    named.push(("claim takeover".into(), claim(Reason::Takeover)));
    named.push(("account nothing".into(), Command::Account { number: 1, journal: Vec::new() }));
    let drill = Command::Drill { announcement: announcement("drill-2"), mode: Mode::DryRun, who: String::new() };
    named.push(("drill dry_run".into(), drill));
    named.extend(wishes().into_iter().map(|command| (name(&command), command)));
    named.push(("claim operator".into(), claim(Reason::Operator)));
    let grouped = Command::Register { workloads: vec![postgres()], groups: groups() };
    named.into_iter().chain([("register groups".into(), grouped)]).collect()
}

fn claim(reason: Reason) -> Command {
    Command::Claim {
        event: EventId::new("e"),
        approver: VmName::new("db-2"),
        reason,
        decision: 1,
        stints: Vec::new(),
        until: Timestamp(NOW),
    }
}

fn of_members(event: &EventId) -> [Command; 5] {
    [
        Command::Take { event: event.clone() },
        Command::GiveBack { event: event.clone() },
        Command::LastCall { event: event.clone() },
        Command::Contact { replica: VmName::new("db-1"), reachable: true },
        Command::Removed { replica: VmName::new("db-1") },
    ]
}

fn wishes() -> Vec<Command> {
    let event = EventId::new("C7061BAC-AFDC-4513-B24B-AA5F13A16123");
    let hook = HookId { phase: Phase::Drain, key: 1 };
    let all = [
        OperatorRequest::Hold { event: event.clone(), until: Timestamp(NOW + 60_000), no_hooks: true },
        OperatorRequest::Release { event: event.clone() },
        OperatorRequest::Pause { until: Timestamp(NOW + 60_000) },
        OperatorRequest::Resume,
        OperatorRequest::Approve { event: event.clone(), revision: 23, over_budget: true },
        OperatorRequest::Restored { member: member("postgres") },
        OperatorRequest::Skip { event, member: member("postgres"), hook },
        OperatorRequest::Wish { what: "leadership to go to db-1".into() },
    ];
    let ask = |what| Command::Ask { what, who: "uid 0 on db-0".into(), reason: "backup runs".into() };
    all.map(ask).into()
}

fn name(command: &Command) -> String {
    let word = command.as_word();
    match command {
        Command::Settle { outcome, .. } => format!("{word} {}", outcome.as_word()),
        Command::Posted { outcome, .. } => format!("{word} {}", outcome.as_word()),
        Command::Register { .. }
        | Command::Report { .. }
        | Command::Discount { .. }
        | Command::Treat { .. }
        | Command::Begin { .. }
        | Command::Advance { .. }
        | Command::Expire { .. }
        | Command::Waive { .. }
        | Command::Claim { .. }
        | Command::Take { .. }
        | Command::GiveBack { .. }
        | Command::LastCall { .. }
        | Command::Contact { .. }
        | Command::Removed { .. }
        | Command::Forget { .. }
        | Command::Lead { .. }
        | Command::Suspect { .. }
        | Command::Account { .. }
        | Command::Absolve { .. }
        | Command::Exclude { .. }
        | Command::Readmit { .. }
        | Command::Dismiss { .. }
        | Command::Drill { .. }
        | Command::EndDrill { .. }
        | Command::Ask { .. }
        | Command::Enlist { .. }
        | Command::Delist { .. }
        | Command::Note { .. }
        | Command::Extend { .. }
        | Command::Observed { .. }
        | Command::Notified { .. }
        | Command::Raise { .. } => word.into(),
    }
}

fn outcomes() -> [Outcome; 8] {
    [
        Outcome::Done,
        Outcome::NotApplicable,
        Outcome::NotDone,
        Outcome::Failed("exit status 3".into()),
        Outcome::Blocked("no healthy standby".into()),
        Outcome::TimedOut("after 60 s".into()),
        Outcome::Cancelled,
        Outcome::Unknown(String::new()),
    ]
}

fn posts() -> [PostOutcome; 5] {
    [
        PostOutcome::Accepted,
        PostOutcome::Refused(u16::MAX),
        PostOutcome::NotSent("connection refused".into()),
        PostOutcome::Unknown("no reply within 5 s".into()),
        PostOutcome::Withdrawn,
    ]
}

fn verdicts() -> Vec<ApplyResult> {
    let ignored = [
        Rejection::UnknownReplica,
        Rejection::UnknownEvent,
        Rejection::UnknownAttempt,
        Rejection::TooManyEvents,
        Rejection::OutOfOrder,
        Rejection::Repeated,
        Rejection::Late,
        Rejection::NotDue,
        Rejection::NotNow,
        Rejection::NotYours,
        Rejection::Changed,
        Rejection::Held,
        Rejection::Paused,
        Rejection::Unbounded,
        Rejection::TooManyWorkloads,
    ];
    [ApplyResult::Applied].into_iter().chain(ignored.map(ApplyResult::Ignored)).collect()
}
