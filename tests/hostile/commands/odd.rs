//! Commands without a legitimate use: of any kind, about any subject, with any number inside.

use std::time::Duration;

use allclear::core::model::attempt::{Progress, WaiverReason};
use allclear::core::model::claim::Reason;
use allclear::core::model::command::{
    AbandonRestores, BeginAttempt, BeginDrill, BeginLastCall, BeginLeadership, ChooseTreatment, ClaimApproval,
    ClearSuspect, Command, DecommissionReplica, DeregisterSession, EndDrill, ExcludeReplica, ExpireAttempt,
    ExtendAttempt, FinishAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale, RaiseVersion, ReadmitReplica,
    ReconcileJournal, RecordDeliveries, RecordPost, RecordReachability, RegisterSession, RegisterWorkloads,
    ReportDocument, ReportProgress, RequestAction, SuspectReplica, TakeSlots, UpdateConditions, WaiveHook,
};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::drill::Mode;
use allclear::core::model::event::Event;
use allclear::core::model::hook_id::HookId;
use allclear::core::model::id::{AttemptId, EventId, GroupName, VmName, WorkloadName};
use allclear::core::model::isolated_approval::{IsolatedApproval, JournalEntry};
use allclear::core::model::notification::Delivery;
use allclear::core::model::operator::OperatorRequest;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::treatment::{Action, Opening, Treatment};
use allclear::core::model::workload::{
    Condition, Group, Hook, Intent, Member, OnAbsent, OnFailure, Origin, Phase, Readiness, Role, RunsOn, Workload,
};
use allclear::core::schedule::affected_members::stints_of;

use super::generator::{a_vm, outcome, posted};
use crate::hostile::dice::Dice;

const WORKLOADS: [&str; 3] = ["pg", "cache", ""];

pub(super) fn vm(dice: &mut Dice) -> VmName {
    const NAMES: [&str; 6] = ["db-0", "db-1", "db-2", "_DB-1", "stranger", ""];
    VmName::new(NAMES[dice.below(NAMES.len())])
}

pub(super) fn register(dice: &mut Dice) -> Command {
    let workloads = (0..=dice.below(2)).map(|at| workload(dice, WORKLOADS[at], Origin::Configured)).collect();
    let max_unavailable = if dice.once_in(8) { u32::try_from(dice.number() % (1 << 32)).unwrap() } else { 1 };
    let group = Group { name: GroupName("g".into()), max_unavailable };
    Command::RegisterWorkloads(RegisterWorkloads {
        workloads,
        groups: if dice.once_in(3) { Vec::new() } else { vec![group] },
    })
}

fn workload(dice: &mut Dice, name: &str, origin: Origin) -> Workload {
    let after = if dice.once_in(4) { vec![WorkloadName((*dice.one(&WORKLOADS)).into())] } else { Vec::new() };
    Workload {
        name: WorkloadName(name.into()),
        group: (!dice.once_in(3)).then(|| GroupName("g".into())),
        after,
        hooks: (0..dice.below(4)).map(|_| hook(dice)).collect(),
        origin,
        on_absent: *dice.one(&[OnAbsent::Hold, OnAbsent::Skip, OnAbsent::Command]),
    }
}

fn hook(dice: &mut Dice) -> Hook {
    Hook {
        phase: *dice.one(&Phase::ALL),
        name: dice.once_in(6).then(|| (*dice.one(&["one", "two", "#3", ""])).into()),
        command_digest: if dice.once_in(12) { u64::MAX } else { dice.next() % 3 },
        timeout: span(dice),
        max_attempts: if dice.once_in(12) { u32::MAX } else { u32::try_from(dice.below(4)).unwrap() },
        on_failure: *dice.one(&[OnFailure::Hold, OnFailure::Continue]),
        runs_on: *dice.one(&[RunsOn::Affected, RunsOn::Peer, RunsOn::Any]),
        can_confirm: dice.once_in(2),
        can_undo: dice.once_in(2),
        can_dry_run: dice.once_in(2),
        min_freeze: dice.once_in(5).then(|| span(dice)),
        fresh_for: dice.once_in(5).then(|| span(dice)),
        optional_if_short: dice.once_in(5),
        worst: dice.once_in(5).then(|| span(dice)),
        expected: dice.once_in(5).then(|| span(dice)),
        exclusive: dice.once_in(5),
        event_types: if dice.once_in(6) { vec![EventType::Reboot] } else { Vec::new() },
    }
}

/// A duration that the log can store.
fn span(dice: &mut Dice) -> Duration {
    if dice.once_in(10) { Duration::from_millis(dice.number() >> 1) } else { Duration::from_secs(dice.next() % 120) }
}

fn time(dice: &mut Dice, state: &State) -> Timestamp {
    if dice.once_in(6) {
        Timestamp(dice.number().cast_signed())
    } else {
        state.now.plus(Duration::from_secs(dice.next() % 600))
    }
}

fn event(dice: &mut Dice, state: &State) -> EventId {
    let known: Vec<&EventId> =
        state.open.keys().chain(state.closed_events().map(|event| &event.announcement.id)).collect();
    if known.is_empty() || dice.once_in(10) {
        EventId::new(["e1", "drill-1", "e99", ""][dice.below(4)])
    } else {
        (*dice.one(&known)).clone()
    }
}

fn attempt(dice: &mut Dice, state: &State) -> AttemptId {
    AttemptId(if dice.once_in(8) { dice.number() } else { dice.next() % (state.attempts + 2) })
}

fn member(dice: &mut Dice) -> Member {
    Member { vm: vm(dice), workload: WorkloadName((*dice.one(&WORKLOADS)).into()) }
}

fn hook_id(dice: &mut Dice) -> HookId {
    HookId { phase: *dice.one(&Phase::ALL), key: if dice.once_in(12) { dice.number() } else { dice.next() % 3 } }
}

pub(super) fn announcement(dice: &mut Dice, state: &State) -> Announcement {
    let id = if dice.once_in(3) { EventId::new("drill-1") } else { event(dice, state) };
    let status = *dice.one(&["Scheduled", "Started", "Completed", ""]);
    Announcement {
        id,
        status: Status::parse(status),
        kind: dice.one(&[EventType::Reboot, EventType::Terminate, EventType::parse("Explode")]).clone(),
        source: dice.one(&[Source::User, Source::Platform, Source::parse("")]).clone(),
        resource_type: String::new(),
        resources: (0..dice.below(4)).map(|_| vm(dice)).collect(),
        not_before: if dice.once_in(3) { NotBefore::Unknown } else { NotBefore::At(time(dice, state)) },
        description: "x".repeat(dice.below(64)),
        duration: dice.once_in(2).then(|| span(dice)),
    }
}

fn treatment(dice: &mut Dice, state: &State) -> Treatment {
    Treatment {
        action: *dice.one(&[Action::Prepare, Action::Approve, Action::Observe]),
        rule: String::new(),
        phases: if dice.once_in(2) { Phase::ALL.into() } else { vec![*dice.one(&Phase::ALL); 2] },
        budget: dice.once_in(2).then(|| span(dice)),
        ahead: dice.once_in(3).then(|| span(dice)),
        opening: dice.once_in(3).then(|| Opening { opens: time(dice, state), closes: time(dice, state) }),
        missed: dice.once_in(3).then(|| Opening { opens: time(dice, state), closes: time(dice, state) }),
        only_named_freezes: dice.once_in(4),
        margin: span(dice),
        give_back_after: span(dice),
        last_call: span(dice),
        repost_after: span(dice),
    }
}

/// Possible isolated approvals of a replica: user-initiated events, seen as Scheduled, before now.
fn journal(dice: &mut Dice, state: &State, by: &VmName) -> Vec<JournalEntry> {
    let of_users = |event: &&Event| event.is_user_initiated() && !event.is_drill();
    let known: Vec<&Announcement> = state.open_events().filter(of_users).map(|event| &event.announcement).collect();
    let entry = |dice: &mut Dice| {
        let unheard = Announcement { id: EventId::new("e1"), source: Source::User, ..announcement(dice, state) };
        let announcement = if known.is_empty() || dice.once_in(6) { unheard } else { (*dice.one(&known)).clone() };
        let announcement = Announcement { status: Status::Scheduled, ..announcement };
        let before = |dice: &mut Dice, at: Timestamp| at.minus(Duration::from_millis(dice.next() % 60_000));
        let ended = before(dice, state.now);
        let at = before(dice, ended);
        let outcome = (!dice.once_in(3)).then(|| (posted(dice), ended));
        let (alone_since, out_of_reach) = (before(dice, at), vec![a_vm(dice)]);
        let takeover = IsolatedApproval {
            approver: by.clone(),
            at,
            alone_since,
            out_of_reach,
            requested_by: None,
            outcome,
            recorded: None,
        };
        JournalEntry { announcement, approval: takeover }
    };
    (0..dice.below(3)).map(|_| entry(dice)).collect()
}

fn account(dice: &mut Dice, state: &State) -> Command {
    let by = a_vm(dice);
    let number = state.reconcile_states.get(&by).map_or(0, |known| known.number);
    Command::ReconcileJournal(ReconcileJournal { number, journal: journal(dice, state, &by) })
}

fn suspect(dice: &mut Dice, state: &State) -> Command {
    let replica = vm(dice);
    let number = state.reconcile_states.get(&replica).map_or(0, |known| known.number);
    Command::SuspectReplica(SuspectReplica {
        replica,
        number: if dice.once_in(3) { dice.number() } else { number + 1 },
    })
}

fn note(dice: &mut Dice) -> Command {
    let role = *dice.one(&[Role::Unknown, Role::Primary, Role::Replica]);
    let readiness = *dice.one(&Readiness::ALL);
    let condition = Condition { role, connected: !dice.once_in(2), readiness };
    Command::UpdateConditions(UpdateConditions {
        conditions: vec![(WorkloadName((*dice.one(&WORKLOADS)).into()), condition)],
    })
}

fn asked(dice: &mut Dice, state: &State) -> OperatorRequest {
    let event = event(dice, state);
    match dice.below(10) {
        0 => OperatorRequest::Hold { event, until: time(dice, state), no_hooks: dice.once_in(3) },
        1 => OperatorRequest::Release { event },
        2 => OperatorRequest::Pause { until: time(dice, state) },
        3 => OperatorRequest::Resume,
        4 => {
            let seen = state.event(&event).map_or(0, |event| event.revision);
            let revision = if dice.once_in(4) { dice.number() } else { seen };
            OperatorRequest::Approve { event, revision, over_budget: dice.once_in(4) }
        }
        5 => OperatorRequest::Skip { event, member: member(dice), hook: hook_id(dice) },
        8 => OperatorRequest::Prepare { event, from: time(dice, state) },
        7 => OperatorRequest::Retry { event, member: member(dice), hook: hook_id(dice) },
        6 => OperatorRequest::Restored { member: member(dice) },
        _ => OperatorRequest::ClusterChange { what: "leadership".into() },
    }
}

/// Deliveries, partly repeated and partly longer than allowed.
fn notified(dice: &mut Dice, event: &EventId) -> Command {
    let told = (0..dice.below(4)).map(|_| Delivery {
        notice: format!("{event}/{}", "x".repeat(dice.below(4) * 200)),
        receiver: (*dice.one(&["chat", "grid", ""])).into(),
    });
    Command::RecordDeliveries(RecordDeliveries { deliveries: told.collect() })
}

/// Mostly the right stints; otherwise no check that a claim depends on would be tried.
fn stints(dice: &mut Dice, state: &State, of: &EventId) -> Vec<(Member, u64)> {
    if dice.once_in(4) {
        return vec![(member(dice), dice.number())];
    }
    state.open_event(of).map(|event| stints_of(state, event)).unwrap_or_default()
}

/// Operator commands about a replica that is, or was, a member.
fn of_members(dice: &mut Dice) -> Command {
    match dice.below(3) {
        0 => Command::ClearSuspect(ClearSuspect { replica: vm(dice) }),
        1 => Command::ExcludeReplica(ExcludeReplica { replica: vm(dice) }),
        _ => Command::ReadmitReplica(ReadmitReplica { replica: vm(dice) }),
    }
}

pub(super) fn command(dice: &mut Dice, state: &State) -> Command {
    let id = event(dice, state);
    match dice.below(27) {
        0 => register(dice),
        1 => Command::ReportDocument(ReportDocument {
            after: dice.number(),
            document: Document::new(vec![announcement(dice, state)]),
        }),
        2 => Command::MarkDocumentStale(MarkDocumentStale { replica: vm(dice) }),
        3 => Command::ChooseTreatment(ChooseTreatment { event: id, treatment: treatment(dice, state) }),
        4 => Command::BeginAttempt(BeginAttempt {
            event: id,
            member: member(dice),
            hook: hook_id(dice),
            intent: *dice.one(&[Intent::Run, Intent::Confirm, Intent::Undo]),
            on: vm(dice),
            deadline: time(dice, state),
        }),
        5 => {
            let expected_end = dice.once_in(2).then(|| time(dice, state));
            Command::ReportProgress(ReportProgress {
                event: id,
                attempt: attempt(dice, state),
                progress: Progress { text: "é".into(), expected_end },
            })
        }
        6 => Command::FinishAttempt(FinishAttempt { event: id, attempt: attempt(dice, state), outcome: outcome(dice) }),
        7 => Command::ExpireAttempt(ExpireAttempt { event: id, attempt: attempt(dice, state) }),
        8 => Command::WaiveHook(WaiveHook {
            event: id,
            member: member(dice),
            hook: hook_id(dice),
            why: WaiverReason::Unreachable,
        }),
        9 | 10 => Command::ClaimApproval(ClaimApproval {
            stints: stints(dice, state, &id),
            decided_at_revision: if dice.once_in(8) {
                0
            } else {
                state.open_event(&id).map_or(1, |event| event.decided_at_revision)
            },
            event: id,
            approver: vm(dice),
            reason: *dice.one(&[
                Reason::Prepared,
                Reason::NothingToPrepare,
                Reason::BudgetSpent,
                Reason::Policy,
                Reason::IsolatedApproval,
                Reason::Operator,
            ]),
            until: time(dice, state),
            is_last_resort: dice.once_in(4),
        }),
        11 => Command::RecordPost(RecordPost { event: id, attempt: attempt(dice, state), outcome: posted(dice) }),
        12 => match dice.below(5) {
            0 => Command::GiveBackSlots(GiveBackSlots { event: id }),
            1 => Command::BeginLastCall(BeginLastCall { event: id }),
            2 => Command::RecordReachability(RecordReachability { replica: vm(dice), reachable: dice.once_in(2) }),
            3 => Command::AbandonRestores(AbandonRestores { replica: vm(dice) }),
            _ => Command::TakeSlots(TakeSlots { event: id }),
        },
        number => of_the_cluster(dice, state, id, number),
    }
}

fn of_the_cluster(dice: &mut Dice, state: &State, id: EventId, number: usize) -> Command {
    match number {
        13 => Command::ForgetEvent(ForgetEvent { event: id }),
        14 => Command::BeginLeadership(BeginLeadership {
            term: dice.number() % 50,
            turn: dice.number() % 50,
            voters: vec![vm(dice), vm(dice)],
        }),
        15 => suspect(dice, state),
        16 => account(dice, state),
        17 => of_members(dice),
        18 if dice.once_in(2) => Command::DecommissionReplica(DecommissionReplica { replica: vm(dice) }),
        18 => Command::RaiseVersion(RaiseVersion { version: dice.number() }),
        19 => {
            let announcement = announcement(dice, state);
            Command::BeginDrill(BeginDrill {
                announcement,
                mode: *dice.one(&[Mode::DryRun, Mode::Rehearsal]),
                who: "uid 0".into(),
            })
        }
        20 => Command::EndDrill(EndDrill { event: id }),
        21 => Command::RequestAction(RequestAction {
            what: asked(dice, state),
            who: "uid 0 on db-0".into(),
            reason: String::new(),
        }),
        22 => {
            Command::RegisterSession(RegisterSession { workload: workload(dice, "pg", Origin::Session { owner: 0 }) })
        }
        23 => Command::DeregisterSession(DeregisterSession {
            workload: WorkloadName((*dice.one(&WORKLOADS)).into()),
            forced: dice.below(2) == 0,
        }),
        24 => note(dice),
        25 => notified(dice, &id),
        _ => Command::ExtendAttempt(ExtendAttempt {
            event: id,
            attempt: attempt(dice, state),
            deadline: time(dice, state),
        }),
    }
}
