//! A replica that starts from a snapshot continues exactly like a replica that folded the whole log.

use std::time::Duration;

use allclear::core::apply::apply;
use allclear::core::model::attempt::{Outcome, Progress};
use allclear::core::model::claim::{PostOutcome, Reason};
use allclear::core::model::command::{
    ApplyResult, BeginAttempt, ChooseTreatment, ClaimApproval, Command, Entry, FinishAttempt, RecordPost,
    RegisterWorkloads, ReportDocument, ReportProgress,
};
use allclear::core::model::document::{Announcement, Document, Status};
use allclear::core::model::id::{AttemptId, EventId, VmName};
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::treatment::Treatment;
use allclear::core::model::workload::{Intent, Phase};
use allclear::wire::log::{decode_command, decode_entry, decode_state, encode_command, encode_entry, encode_state};

use crate::wire::values::{NOW, announcement, member, postgres, treatment};

#[test]
fn a_state_from_a_snapshot_folds_on_like_the_original() {
    let mut folded = State::default();
    let mut restored = State::default();
    let mut applied = 0;
    for (at, (by, command)) in (NOW..).zip(log()) {
        let entry = Entry { at: Timestamp(at), by: VmName::new(by), command };
        let entry = decode_entry(&encode_entry(&entry)).unwrap();
        let verdict = apply(&mut folded, &entry);
        assert_eq!(apply(&mut restored, &entry), verdict, "{entry:?}");
        restored = decode_state(&encode_state(&restored)).unwrap();
        assert_eq!(restored, folded, "after {entry:?}");
        assert_eq!(encode_state(&restored), encode_state(&folded), "after {entry:?}");
        applied += usize::from(verdict == ApplyResult::Applied);
    }
    assert_eq!(applied, log().len(), "the log is meant to take the event through its life");
}

#[test]
fn lengths_of_time_lose_parts_of_a_millisecond_only() {
    let read_back = |margin: Duration| {
        let treatment = Treatment { margin, ..treatment() };
        let command = Command::ChooseTreatment(ChooseTreatment { event: EventId::new("a-1"), treatment });
        match decode_command(&encode_command(&command)).unwrap() {
            Command::ChooseTreatment(ChooseTreatment { treatment, .. }) => treatment.margin,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(read_back(Duration::from_micros(1_999)), Duration::from_millis(1));
    assert_eq!(read_back(Duration::MAX), Duration::from_millis(u64::MAX));
}

/// One event, spelled differently by two replicas, until it has started.
fn log() -> Vec<(&'static str, Command)> {
    let event = EventId::new("A-1");
    let treatment = Treatment { phases: vec![Phase::Failover], ..treatment() };
    let workload = postgres();
    let (hook, _) = workload.hooks_of(Phase::Failover).next().unwrap();
    let listed = |after, announcement| {
        Command::ReportDocument(ReportDocument { after, document: Document::new(vec![announcement]) })
    };
    let [attempt, claim] = [AttemptId(1), AttemptId(2)];
    vec![
        ("db-0", Command::RegisterWorkloads(RegisterWorkloads { workloads: vec![postgres()], groups: Vec::new() })),
        ("db-1", Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() })),
        ("db-0", listed(0, announcement("A-1"))),
        ("db-1", listed(0, Announcement { description: "told again".into(), ..announcement("a-1") })),
        ("db-1", Command::ChooseTreatment(ChooseTreatment { event: event.clone(), treatment })),
        (
            "db-1",
            Command::BeginAttempt(BeginAttempt {
                event: event.clone(),
                member: member("postgres"),
                hook,
                intent: Intent::Run,
                on: VmName::new("db-0"),
                deadline: Timestamp(NOW + 50_000),
            }),
        ),
        (
            "db-0",
            Command::ReportProgress(ReportProgress { event: event.clone(), attempt, progress: Progress::default() }),
        ),
        ("db-0", Command::FinishAttempt(FinishAttempt { event: event.clone(), attempt, outcome: Outcome::Done })),
        (
            "db-1",
            Command::ClaimApproval(ClaimApproval {
                event: event.clone(),
                approver: VmName::new("db-1"),
                reason: Reason::Prepared,
                decided_at_revision: 1,
                stints: vec![(member("postgres"), 1)],
                until: Timestamp(NOW + 9_000),
                is_last_resort: false,
            }),
        ),
        ("db-1", Command::RecordPost(RecordPost { event, attempt: claim, outcome: PostOutcome::Accepted })),
        ("db-1", listed(1, Announcement { status: Status::Started, ..announcement("a-1") })),
    ]
}
