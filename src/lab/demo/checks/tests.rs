//! Each thing that a demo can lack is found.

use super::*;
use crate::local_cluster::snapshot::{ReplicaSnapshot, ReplicaStatus};
use allclear_cloud::{EventPlan, Opening};
use allclear_core::model::document::Source;
use allclear_server::replica::clock::rfc3339;

const HOOK_DONE: Timestamp = Timestamp(2_000);
const APPROVED: Timestamp = Timestamp(3_000);
const GONE: Timestamp = Timestamp(5_000);

/// The records of the cloud, the cluster and the hooks about one event.
struct DemoCase {
    event: PlatformEvent,
    posts: Vec<Post>,
    known: shown::Event,
    notes: Vec<Note>,
}

type Bend = fn(&mut DemoCase);

fn hook(phase: &str, attempt: &str, from: Timestamp, to: Timestamp) -> shown::Hook {
    shown::Hook {
        vm: "db-0".into(),
        on: "db-0".into(),
        phase: phase.into(),
        attempt: attempt.into(),
        intent: "run".into(),
        outcome: Some("done".into()),
        started_at: rfc3339(from),
        ended_at: Some(rfc3339(to)),
        ..shown::Hook::default()
    }
}

fn note(done: bool, at: Timestamp) -> Note {
    let (vm, phase) = ("db-0".into(), "drain".into());
    Note { event: "E".into(), vm, phase, attempt: "E.1".into(), done, at_us: at.0 * 1_000 }
}

fn good() -> DemoCase {
    let (vm, other) = (VmName::new("db-0"), VmName::new("db-1"));
    let event = PlatformEvent {
        id: EventId::new("E"),
        plan: EventPlan::new(EventType::Reboot, Source::User, vec![vm]),
        announced_at: Timestamp(0),
        not_before: Timestamp(20_000),
        accepted: Some((APPROVED, Approver::Vm(other.clone()))),
        started: Some((Timestamp(4_000), PlatformStartCause::Approved)),
        ended: Some((GONE, EventEnd::Finished)),
        moved: 0,
    };
    let posts = vec![Post {
        event: event.id.clone(),
        vm: other,
        at: rfc3339(APPROVED),
        at_us: 0,
        result: None,
        took_effect: true,
    }];
    let approval = shown::Approval {
        approver: "db-1".into(),
        outcome: Some("accepted".into()),
        claimed_at: rfc3339(Timestamp(2_500)),
        ..shown::Approval::default()
    };
    let known = shown::Event {
        id: "E".into(),
        stage: "closed".into(),
        hooks: vec![
            hook("drain", "E.1", Timestamp(1_000), HOOK_DONE),
            hook("restore", "E.3", Timestamp(6_000), Timestamp(7_000)),
        ],
        approvals: vec![approval],
        ..shown::Event::default()
    };
    DemoCase { event, posts, known, notes: vec![note(false, Timestamp(1_000)), note(true, HOOK_DONE)] }
}

fn judged(case: DemoCase) -> String {
    let DemoCase { event, posts, known, notes } = case;
    let answer = ReplicaStatus { status: shown::Status::default(), events: vec![known] };
    let sight =
        ClusterSnapshot { replicas: vec![ReplicaSnapshot { name: "db-1".into(), answer: Some(answer.into()) }] };
    missing(&[event], &posts, &sight, Some(&notes)).join("\n")
}

#[test]
fn nothing_is_missing_when_all_is_well() {
    assert_eq!(judged(good()), "");
}

#[test]
fn each_thing_that_can_be_missing_is_found() {
    let bent: [(Bend, &str); 13] = [
        (|case| case.posts.push(case.posts[0].clone()), "one effective approval, not 2"),
        (|case| case.posts[0].took_effect = false, "one effective approval"),
        (|case| case.known.approvals.clear(), "one accepted approval in the cluster's record, not 0"),
        (|case| case.known.approvals[0].approver = "db-2".into(), "another approver posted it"),
        (|case| drop(case.known.hooks.remove(0)), "no hook ran before"),
        (|case| case.known.hooks[0].outcome = Some("failed".into()), "drain on db-0 ended as failed"),
        (|case| case.known.hooks[0].ended_at = Some(rfc3339(GONE)), "was not done before the all-clear"),
        (|case| case.notes[1].at_us = GONE.0 * 1_000, "was not done before the all-clear"),
        (|case| case.notes.push(note(false, GONE)), "drain of db-0 was run 2 times"),
        (|case| drop(case.known.hooks.pop()), "the prepared workload on db-0 was not restored"),
        (|case| case.known.hooks[1].started_at = rfc3339(APPROVED), "was not restored"),
        (|case| case.known.stage = "restoring".into(), "not closed for db-1"),
        (|case| case.event.ended = None, "the fake cloud still lists the event"),
    ];
    for (bend, expected) in bent {
        let mut case = good();
        bend(&mut case);
        let found = judged(case);
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn what_starts_or_ends_by_itself_needs_no_approval_and_nothing_else_does_without() {
    let mut case = good();
    case.event.accepted = None;
    case.event.started = Some((Timestamp(4_000), PlatformStartCause::NotBefore));
    case.posts.clear();
    assert_eq!(judged(case), "Reboot of db-0: the event started without an all-clear");

    let mut failed = good();
    failed.event.plan.opening = Opening::Started;
    (failed.event.accepted, failed.event.started) = (None, Some((Timestamp(0), PlatformStartCause::Failure)));
    assert!(judged(failed).contains("1 approvals were posted too late"));

    let mut cancelled = good();
    (cancelled.event.accepted, cancelled.event.started) = (None, None);
    cancelled.event.ended = Some((GONE, EventEnd::Cancelled));
    cancelled.posts.clear();
    assert_eq!(judged(cancelled), "");
}
