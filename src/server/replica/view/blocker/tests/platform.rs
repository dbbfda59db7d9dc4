//! Tests of the sentences about approvals, endpoints and Azure.

use super::*;
use allclear_core::model::claim::{Claim, PostOutcome, Reason};
use allclear_core::model::slot::{Slot, SlotState};
use allclear_core::model::workload::{Hook, OnAbsent, Origin, Workload};

#[test]
fn a_post_that_was_not_taken_says_why_and_when_the_next_one_is() {
    let event = event(Source::User, Vec::new());
    let failed = |outcome| {
        let approver = VmName::new("db-2");
        told(&Blocker::PostFailed { approver, outcome, at: after(1), again_at: after(2) }, &event, 1)
    };
    let refused = failed(PostOutcome::Refused(503));
    assert!(refused.message.ends_with(": HTTP status 503") && refused.message.contains("db-2"), "{refused:?}");
    assert_eq!(refused.until, Some(rfc3339(after(2))));
    assert!(failed(PostOutcome::Unknown("timed out".into())).message.starts_with("the outcome of the approval"));
    assert!(failed(PostOutcome::NotSent("stopped".into())).message.contains("could not post"));
}

#[test]
fn a_blind_cluster_tells_what_came_of_the_last_resort() {
    let mut event = event(Source::Platform, Vec::new());
    let claim = |outcome| Claim {
        attempt: AttemptId(1),
        approver: VmName::new("db-2"),
        reason: Reason::Prepared,
        decided_at_revision: 0,
        at: after(1),
        until: after(2),
        outcome: Some((outcome, after(1))),
        is_last_resort: true,
        stints: Vec::new(),
    };
    assert!(told(&Blocker::NoHealthyChannel, &event, 1).message.ends_with("has a working metadata endpoint"));
    let mut blind = input(3);
    for contact in blind.peers.values_mut() {
        (contact.imds, contact.document_age) = (ImdsHealth::Stalled, Some(MINUTE));
    }
    let message = shown(&Blocker::NoHealthyChannel, &event, &State::default(), &blind).message;
    let wanted = format!("; the last document is from {}, and what Azure did", rfc3339(after(2)));
    assert!(message.contains(&wanted), "{message}");
    for (outcome, expected) in [
        (
            PostOutcome::Refused(403),
            "HTTP status 403: the identity of the VM needs the role Scheduled Events Contributor",
        ),
        (PostOutcome::Refused(500), "HTTP status 500"),
        (PostOutcome::Unknown("no answer".into()), "no answer"),
    ] {
        event.claims = vec![claim(outcome)];
        let message = told(&Blocker::NoHealthyChannel, &event, 1).message;
        let end = format!("; db-2 tried the last resort, through the control plane: {expected}");
        assert!(message.ends_with(&end), "{message}");
    }
}

#[test]
fn a_cluster_that_has_been_blind_for_long_tells_that_no_hook_moves_the_primary() {
    let pg = Workload {
        name: WorkloadName("pg".into()),
        group: None,
        after: Vec::new(),
        hooks: vec![Hook::of(Phase::Drain)],
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    };
    let told = |event: &Event, stale_since| {
        let document = Some(Document::new(vec![event.announcement.clone()]));
        let replica = Replica { workloads: vec![pg.clone()], document, stale_since, ..Replica::default() };
        let replicas = BTreeMap::from([(VmName::new("db-1"), replica.into())]);
        shown(&Blocker::NoHealthyChannel, event, &State { replicas, ..State::default() }, &input(3))
    };
    let mut event = event(Source::Platform, Vec::new());
    let unmoved = "; until then no hook that moves service away begins, also not shortly before the notice ends: if the \
                   primary is on the VM, ";
    let holds = "hold the event with --no-hooks, so that allclear's own failover does not begin meanwhile, and move the \
                 primary by hand, once no hook of the event runs; otherwise Azure";
    assert!(!told(&event, None).next.contains("by hand"), "{:?}", told(&event, None));
    let next = told(&event, Some(after(2))).next;
    assert!(next.contains(&format!("{unmoved}{holds}")), "{next}");
    let mut held = event.clone();
    let what = OperatorAction::Hold { until: after(9), no_hooks: true };
    held.operator_records.push(OperatorRecord { number: 1, at: SEEN, who: "ada".into(), reason: "why".into(), what });
    let next = told(&held, Some(after(2))).next;
    let is_held = "move it by hand, once no hook of the event runs; otherwise Azure";
    assert!(next.contains(&format!("{unmoved}{is_held}")), "{next}");
    event.last_call_since = Some(after(1));
    assert!(!told(&event, Some(after(2))).next.contains("by hand"), "its hooks may go on");
}

#[test]
fn an_approved_event_tells_who_is_out_until_azure_acts() {
    let waiting = Blocker::WaitingForPlatform { since: after(1) };
    let event = event(Source::Platform, Vec::new());
    assert!(told(&waiting, &event, 2).message.ends_with("has not started the event yet"));
    let slot = Slot {
        stint: 1,
        first_stint: 1,
        state: SlotState::Out,
        since: after(1),
        group: Some(GroupName("orders-db".into())),
        events: BTreeSet::from([event.announcement.id.clone()]),
        by: event.announcement.id.clone(),
        was_fit: true,
        restore_failed: false,
        needs_restore: true,
    };
    let state = State { slots: BTreeMap::from([(drain().0, slot)]), ..State::default() };
    let message = shown(&waiting, &event, &state, &input(2)).message;
    let wanted = "; until it is over, db-1/postgres of orders-db counts as out of service";
    assert!(message.ends_with(wanted), "{message}");
}

#[test]
fn a_replica_without_a_quorum_tells_that_its_own_endpoint_no_longer_lists_an_event() {
    let event = event(Source::User, Vec::new());
    let told = |listed: Vec<Announcement>, blocker: &Blocker| {
        let isolated = Some(IsolatedView { document: Some(Document::new(listed)), ..IsolatedView::default() });
        shown(blocker, &event, &State::default(), &PlanningInput { isolated, quorum: false, ..input(1) })
    };
    for blocker in [Blocker::NoQuorum { forecast: None }, Blocker::WaitingForPlatform { since: SEEN }] {
        let gone = told(Vec::new(), &blocker);
        assert!(gone.next.contains("no longer lists the event") && gone.until.is_none(), "{gone:?}");
        let listed = told(vec![event.announcement.clone()], &blocker);
        assert!(!listed.next.contains("no longer lists the event"), "{listed:?}");
    }
}
