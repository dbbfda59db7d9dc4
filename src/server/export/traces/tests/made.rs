//! An event for trace tests, and its parts.

use allclear_core::model::document;
use std::collections::BTreeSet;
use std::time::Duration;

use allclear_core::model::attempt::{Attempt, Outcome};
use allclear_core::model::claim::{Claim, PostOutcome, Reason};
use allclear_core::model::document::{Announcement, NotBefore, Source};
use allclear_core::model::event::{Ending, Event};
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::{AttemptId, EventId, VmName, WorkloadName};
use allclear_core::model::isolated_approval::IsolatedApproval;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::time::Timestamp;
use allclear_core::model::treatment::{Action, Treatment};
use allclear_core::model::workload::{Intent, Member, Phase};

pub(super) fn vm(number: u8) -> VmName {
    VmName::new(&format!("db-{number}"))
}

pub(super) fn announced(kind: &str) -> Announcement {
    Announcement {
        id: EventId::new("E-1"),
        status: document::Status::Scheduled,
        kind: document::EventType::parse(kind),
        source: Source::User,
        resource_type: "VirtualMachine".into(),
        resources: vec![vm(0)],
        not_before: NotBefore::At(Timestamp(600_000)),
        description: String::new(),
        duration: None,
    }
}

pub(super) fn attempt(id: u64, phase: Phase, on: u8, (from, to): (i64, i64), outcome: Outcome) -> Attempt {
    Attempt {
        id: AttemptId(id),
        member: Member { vm: vm(0), workload: WorkloadName("database".into()) },
        hook: HookId { phase, key: 0 },
        intent: Intent::Run,
        stint: 1,
        on: vm(on),
        begun_at: Timestamp(from),
        deadline: Timestamp(100_000),
        progress: None,
        blocked: None,
        outcome: Some((outcome, Timestamp(to))),
        late: None,
    }
}

pub(super) fn claim(id: u64, approver: u8, at: i64, outcome: PostOutcome) -> Claim {
    Claim {
        decided_at_revision: 1,
        attempt: AttemptId(id),
        approver: vm(approver),
        reason: Reason::Prepared,
        stints: Vec::new(),
        at: Timestamp(at),
        until: Timestamp(at + 5_000),
        outcome: Some((outcome, Timestamp(at + 20))),
        is_last_resort: false,
    }
}

/// An event prepared on two VMs, rejected once, approved, started, and restored.
pub(super) fn event() -> Event {
    let mut event = Event::first_seen_as(announced("Reboot"), vm(1), Timestamp(1_000));
    event.treatment = Some(treatment(Action::Prepare));
    event.seen_by = BTreeSet::from([vm(0), vm(1)]);
    for (stage, at) in [
        (Stage::Preparing, 1_010),
        (Stage::Claimed, 4_000),
        (Stage::Approved, 4_520),
        (Stage::Started, 5_000),
        (Stage::Restoring, 9_000),
        (Stage::Closed, 9_500),
    ] {
        event.entered.push((stage, Timestamp(at)));
    }
    let failed = Outcome::Failed("no standby".into());
    event.attempts = vec![
        attempt(1, Phase::Failover, 1, (1_020, 1_500), failed),
        attempt(2, Phase::Failover, 1, (2_000, 3_000), Outcome::Done),
        attempt(3, Phase::Drain, 0, (3_000, 4_000), Outcome::Done),
        attempt(6, Phase::Restore, 0, (9_010, 9_400), Outcome::Done),
    ];
    event.claims = vec![claim(4, 2, 4_000, PostOutcome::Refused(400)), claim(5, 1, 4_500, PostOutcome::Accepted)];
    event.impacts.insert(vm(0), Duration::from_millis(3_210));
    event.ending = Some(Ending::Completed);
    event
}

pub(super) fn treatment(action: Action) -> Treatment {
    Treatment {
        action,
        rule: "default".into(),
        phases: vec![Phase::Failover, Phase::Drain],
        budget: None,
        margin: Duration::from_secs(5),
        ahead: None,
        opening: None,
        missed: None,
        only_named_freezes: false,
        give_back_after: Duration::from_mins(2),
        last_call: Duration::from_mins(1),
        repost_after: Duration::from_mins(1),
    }
}

pub(super) fn takeover() -> IsolatedApproval {
    IsolatedApproval {
        approver: vm(2),
        at: Timestamp(4_000),
        alone_since: Timestamp(500),
        out_of_reach: vec![vm(0), vm(1)],
        requested_by: None,
        outcome: Some((PostOutcome::Accepted, Timestamp(4_100))),
        recorded: Some(Timestamp(6_000)),
    }
}
