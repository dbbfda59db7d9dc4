//! One record of every stored kind, under the name of its golden bytes.

use std::time::Duration;

use allclear::core::model::attempt::{Outcome, Progress, WaiverReason};
use allclear::core::model::claim::{PostOutcome, Reason};
use allclear::core::model::command::{
    AbandonRestores, ApplyResult, BeginAttempt, BeginDrill, BeginLastCall, BeginLeadership, ChooseTreatment,
    ClaimApproval, ClearSuspect, Command, DecommissionReplica, DeregisterSession, EndDrill, Entry, ExcludeReplica,
    ExpireAttempt, ExtendAttempt, FinishAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale, RaiseVersion,
    ReadmitReplica, ReconcileJournal, RecordDeliveries, RecordImpact, RecordPost, RecordReachability, RegisterSession,
    RegisterWorkloads, Rejection, ReportDocument, ReportProgress, RequestAction, SuspectReplica, TakeSlots,
    UpdateConditions, WaiveHook,
};
use allclear::core::model::document::Document;
use allclear::core::model::drill::Mode;
use allclear::core::model::hook_id::HookId;
use allclear::core::model::id::{AttemptId, EventId, VmName, WorkloadName};
use allclear::core::model::operator::OperatorRequest;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::treatment::{Opening, Treatment};
use allclear::core::model::workload::{Intent, Phase};

use crate::wire::record::Record;
use crate::wire::values::{
    NOW, announcement, cache, conditions, departed_state, dialled, dialled_state, document, drilled_state,
    grouped_state, groups, held_state, journal, led_state, measured_state, member, members_state, notified_state,
    postgres, prepared_state, retried_state, rich_state, told, treatment, waiting_state, wished_state,
};

/// Every sample under the name of its golden bytes.
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
            ApplyResult::Rejected(why) => why.as_str(),
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
    samples.push(("state waiting".into(), Record::State(waiting_state())));
    samples.push(("state held".into(), Record::State(held_state())));
    samples.push(("state notified".into(), Record::State(notified_state())));
    samples.push(("state retried".into(), Record::State(retried_state())));
    samples.push(("state prepared".into(), Record::State(prepared_state())));
    samples
}

/// Every command; the first word of the name is the command's own.
pub(crate) fn commands() -> Vec<(String, Command)> {
    let event = EventId::new("C7061BAC-AFDC-4513-B24B-AA5F13A16123");
    let attempt = AttemptId(300);
    let mut commands = of_events(&event, attempt);
    commands.extend(of_the_cluster(&event, attempt));
    commands.extend(
        outcomes()
            .into_iter()
            .map(|outcome| Command::FinishAttempt(FinishAttempt { event: event.clone(), attempt, outcome })),
    );
    commands.extend(
        posts().into_iter().map(|outcome| Command::RecordPost(RecordPost { event: event.clone(), attempt, outcome })),
    );
    let all = commands.into_iter().chain(of_members(&event));
    let mut named: Vec<(String, Command)> = all.map(|command| (name(&command), command)).collect();
    named.push((
        "report_document nothing".into(),
        Command::ReportDocument(ReportDocument { after: 0, document: Document::default() }),
    ));
    let opening = |from| Some(Opening { opens: Timestamp(NOW + from), closes: Timestamp(NOW + from + 1) });
    let in_a_window = Treatment { opening: opening(1), ..treatment() };
    for (name, treatment) in [
        ("choose_treatment window", in_a_window.clone()),
        ("choose_treatment missed", Treatment { missed: opening(3), ..in_a_window }),
    ] {
        let command = ChooseTreatment { event: event.clone(), treatment };
        named.push((name.into(), Command::ChooseTreatment(command)));
    }
    let nothing_said =
        Command::ReportProgress(ReportProgress { event, attempt: AttemptId(u64::MAX), progress: Progress::default() });
    named.push(("report_progress nothing".into(), nothing_said));
    named.push((
        "register_workloads nothing".into(),
        Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }),
    ));
    named.push(("claim_approval takeover".into(), claim(Reason::IsolatedApproval)));
    named.push((
        "reconcile_journal nothing".into(),
        Command::ReconcileJournal(ReconcileJournal { number: 1, journal: Vec::new() }),
    ));
    let drill = Command::BeginDrill(BeginDrill {
        announcement: announcement("drill-2"),
        mode: Mode::DryRun,
        who: String::new(),
    });
    named.push(("begin_drill dry_run".into(), drill));
    named.extend(wishes().into_iter().map(|command| (name(&command), command)));
    named.push(("claim_approval operator".into(), claim(Reason::Operator)));
    let grouped = Command::RegisterWorkloads(RegisterWorkloads { workloads: vec![postgres()], groups: groups() });
    named.into_iter().chain([("register_workloads groups".into(), grouped)]).collect()
}

fn of_events(event: &EventId, attempt: AttemptId) -> Vec<Command> {
    let hook = HookId { phase: Phase::Failover, key: 1 };
    vec![
        Command::RegisterWorkloads(RegisterWorkloads { workloads: vec![postgres(), cache()], groups: Vec::new() }),
        Command::ReportDocument(ReportDocument { after: 41, document: document() }),
        Command::MarkDocumentStale(MarkDocumentStale { replica: VmName::new("db-1") }),
        Command::ChooseTreatment(ChooseTreatment { event: event.clone(), treatment: treatment() }),
        Command::BeginAttempt(BeginAttempt {
            event: event.clone(),
            member: member("postgres"),
            hook,
            intent: Intent::Confirm,
            on: VmName::new("db-1"),
            deadline: Timestamp(NOW + 60_000),
        }),
        Command::ReportProgress(ReportProgress {
            event: event.clone(),
            attempt,
            progress: Progress { text: "switching over".into(), expected_end: Some(Timestamp(NOW + 9_000)) },
        }),
        Command::ExpireAttempt(ExpireAttempt { event: event.clone(), attempt }),
        Command::WaiveHook(WaiveHook {
            event: event.clone(),
            member: member("postgres"),
            hook,
            why: WaiverReason::Unreachable,
        }),
        Command::ClaimApproval(ClaimApproval {
            event: event.clone(),
            approver: VmName::new("db-2"),
            reason: Reason::BudgetSpent,
            decided_at_revision: 2,
            stints: vec![(member("postgres"), 7)],
            until: Timestamp(NOW + 5_000),
            is_last_resort: false,
        }),
    ]
}

fn of_the_cluster(event: &EventId, attempt: AttemptId) -> Vec<Command> {
    vec![
        Command::ForgetEvent(ForgetEvent { event: event.clone() }),
        Command::BeginLeadership(BeginLeadership {
            term: 3,
            turn: 2,
            voters: vec![VmName::new("db-0"), VmName::new("db-1")],
        }),
        Command::SuspectReplica(SuspectReplica { replica: VmName::new("db-1"), number: 9 }),
        Command::ReconcileJournal(ReconcileJournal { number: 9, journal: journal() }),
        Command::ClearSuspect(ClearSuspect { replica: VmName::new("db-1") }),
        Command::ExcludeReplica(ExcludeReplica { replica: VmName::new("db-1") }),
        Command::ReadmitReplica(ReadmitReplica { replica: VmName::new("db-1") }),
        Command::DecommissionReplica(DecommissionReplica { replica: VmName::new("_DB-2") }),
        Command::BeginDrill(BeginDrill {
            announcement: announcement("drill-1"),
            mode: Mode::Rehearsal,
            who: "uid 0 on db-0".into(),
        }),
        Command::EndDrill(EndDrill { event: event.clone() }),
        Command::RegisterSession(RegisterSession { workload: dialled() }),
        Command::DeregisterSession(DeregisterSession { workload: WorkloadName("postgres".into()), forced: true }),
        Command::UpdateConditions(UpdateConditions { conditions: conditions() }),
        Command::ExtendAttempt(ExtendAttempt { event: event.clone(), attempt, deadline: Timestamp(NOW + 90_000) }),
        Command::RecordImpact(RecordImpact { event: event.clone(), lasted: Duration::from_millis(8_250) }),
        Command::RecordDeliveries(RecordDeliveries { deliveries: told() }),
        Command::RaiseVersion(RaiseVersion { version: 2 }),
    ]
}

fn claim(reason: Reason) -> Command {
    Command::ClaimApproval(ClaimApproval {
        event: EventId::new("e"),
        approver: VmName::new("db-2"),
        reason,
        decided_at_revision: 1,
        stints: Vec::new(),
        until: Timestamp(NOW),
        is_last_resort: false,
    })
}

fn of_members(event: &EventId) -> [Command; 5] {
    [
        Command::TakeSlots(TakeSlots { event: event.clone() }),
        Command::GiveBackSlots(GiveBackSlots { event: event.clone() }),
        Command::BeginLastCall(BeginLastCall { event: event.clone() }),
        Command::RecordReachability(RecordReachability { replica: VmName::new("db-1"), reachable: true }),
        Command::AbandonRestores(AbandonRestores { replica: VmName::new("db-1") }),
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
        OperatorRequest::Skip { event: event.clone(), member: member("postgres"), hook },
        OperatorRequest::Prepare { event: event.clone(), from: Timestamp(NOW + 60_000) },
        OperatorRequest::Retry { event, member: member("postgres"), hook },
        OperatorRequest::ClusterChange { what: "leadership to go to db-1".into() },
    ];
    let ask = |what| {
        Command::RequestAction(RequestAction { what, who: "uid 0 on db-0".into(), reason: "backup runs".into() })
    };
    all.map(ask).into()
}

fn name(command: &Command) -> String {
    let word = command.as_str();
    match command {
        Command::FinishAttempt(FinishAttempt { outcome, .. }) => format!("{word} {}", outcome.as_str()),
        Command::RecordPost(RecordPost { outcome, .. }) => format!("{word} {}", outcome.as_str()),
        Command::RegisterWorkloads(_)
        | Command::ReportDocument(_)
        | Command::MarkDocumentStale(_)
        | Command::ChooseTreatment(_)
        | Command::BeginAttempt(_)
        | Command::ReportProgress(_)
        | Command::ExpireAttempt(_)
        | Command::WaiveHook(_)
        | Command::ClaimApproval(_)
        | Command::TakeSlots(_)
        | Command::GiveBackSlots(_)
        | Command::BeginLastCall(_)
        | Command::RecordReachability(_)
        | Command::AbandonRestores(_)
        | Command::ForgetEvent(_)
        | Command::BeginLeadership(_)
        | Command::SuspectReplica(_)
        | Command::ReconcileJournal(_)
        | Command::ClearSuspect(_)
        | Command::ExcludeReplica(_)
        | Command::ReadmitReplica(_)
        | Command::DecommissionReplica(_)
        | Command::BeginDrill(_)
        | Command::EndDrill(_)
        | Command::RequestAction(_)
        | Command::RegisterSession(_)
        | Command::DeregisterSession(_)
        | Command::UpdateConditions(_)
        | Command::ExtendAttempt(_)
        | Command::RecordImpact(_)
        | Command::RecordDeliveries(_)
        | Command::RaiseVersion(_) => word.into(),
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
    [ApplyResult::Applied].into_iter().chain(ignored.map(ApplyResult::Rejected)).collect()
}
