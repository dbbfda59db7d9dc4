//! Tests of the sentences about hooks and registrations.

use super::*;
use allclear_core::model::attempt::{Attempt, Outcome};

fn brief() -> Rule {
    Rule {
        name: "brief".into(),
        event_types: Vec::new(),
        sources: Vec::new(),
        resources: Vec::new(),
        duration: None,
        notice: None,
        action: Action::Prepare,
        phases: None,
        budget: Some(5 * MINUTE),
        prepare_ahead: None,
        window: None,
    }
}

#[test]
fn who_wants_an_event_soon_is_not_said_to_be_somebody_when_a_rule_says_so() {
    let blocked = || {
        let (member, hook) = drain();
        Blocker::HookBlocked { member, hook, reason: "no standby".into(), retry_at: after(1) }
    };
    let of_users = event(Source::User, Vec::new());
    let users = told(&blocked(), &of_users, 0);
    let expected = format!(
        "the hook is retried at {}; the event is approved as soon as all hooks have completed, and at {} without the \
         missing hooks, because the event is user-initiated",
        rfc3339(after(1)),
        rfc3339(of_users.budget_ends().unwrap())
    );
    assert!(users.next.starts_with(&expected), "{users:?}");
    assert_eq!(users.until, of_users.budget_ends().map(rfc3339));
    let platforms = told(&blocked(), &event(Source::Platform, vec![brief()]), 0).next;
    assert!(platforms.contains(" without the missing hooks, by the rule \"brief\""), "{platforms}");
    assert_eq!(told(&blocked(), &event(Source::Platform, Vec::new()), 0).next, "the hook is retried");
}

#[test]
fn a_budget_that_is_longer_than_the_notice_promises_no_approval() {
    let mut event = event(Source::User, Vec::new());
    event.announcement.not_before = NotBefore::At(after(1));
    let (member, hook) = drain();
    let next = |blocker| told(&blocker, &event, 0).next;
    let blocked = Blocker::HookBlocked { member: member.clone(), hook, reason: "no standby".into(), retry_at: SEEN };
    assert_eq!(next(blocked), "the hook is retried");
    let away = next(Blocker::ReplicaAway { member, hook, since: None, passed_over_at: None });
    assert!(away.ends_with("otherwise Azure starts the event when the notice ends"), "{away}");
}

#[test]
fn a_hook_that_is_tried_again_says_why_and_one_whose_replica_is_gone_says_which() {
    let mut event = event(Source::User, Vec::new());
    let (member, hook) = drain();
    event.attempts.push(Attempt {
        id: AttemptId(1),
        member: member.clone(),
        hook,
        intent: Intent::Run,
        stint: 0,
        on: VmName::new("db-1"),
        begun_at: SEEN,
        deadline: after(1),
        progress: None,
        blocked: None,
        outcome: Some((Outcome::Failed("connection refused".into()), after(1))),
        late: None,
    });
    let again = told(&Blocker::HookWaiting { member: member.clone(), hook, from: after(2) }, &event, 1);
    assert!(again.message.ends_with("is retried; its last attempt: failed: connection refused"), "{again:?}");
    let away = |at| {
        let blocker = Blocker::ReplicaAway { member: drain().0, hook, since: Some(SEEN), passed_over_at: Some(at) };
        told(&blocker, &event, 0)
    };
    let (soon, late) = (away(after(1)), away(after(2)));
    assert!(soon.message.contains("waits for db-1: its replica has been unreachable since"), "{}", soon.message);
    let not_then = format!(
        "if the replica does not answer, the hook is waived at {}; the event is approved as soon as",
        rfc3339(after(1))
    );
    assert!(soon.next.contains(&not_then), "{}", soon.next);
    assert!(
        late.next.starts_with("the hook runs when the replica answers again; the event is approved as soon as"),
        "{}",
        late.next
    );
    assert_eq!((soon.until, soon.hooks), (event.budget_ends().map(rfc3339), vec!["db-1/postgres/drain".to_owned()]));
}

#[test]
fn who_has_yet_to_register_is_named_with_what_happens_without_it() {
    let unregistered = |source, rules, passed_over_at| {
        let replica = VmName::new("db-1");
        told(&Blocker::Unregistered { replica, passed_over_at }, &event(source, rules), 0)
    };
    let platforms = unregistered(Source::Platform, Vec::new(), None);
    assert!(platforms.message.starts_with("the replica on db-1 has not registered its workloads yet"), "{platforms:?}");
    assert!(platforms.next.ends_with("otherwise Azure starts the event when the notice ends"), "{platforms:?}");
    let users = unregistered(Source::User, Vec::new(), Some(after(1)));
    assert!(users.next.ends_with("without these hooks, because the event is user-initiated"), "{users:?}");
    assert_eq!((users.until, users.hooks), (Some(rfc3339(after(1))), Vec::new()));
    let by_a_rule = unregistered(Source::Platform, vec![brief()], Some(after(1)));
    assert!(by_a_rule.next.ends_with("without these hooks, by the rule \"brief\""), "{by_a_rule:?}");
}
