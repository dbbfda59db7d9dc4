//! The contract of hooks of every kind: one list of cases, each run with each kind.

use std::time::Duration;

use allclear::core::model::command::TEXT_LIMIT;
use allclear::core::model::workload::Intent;
use allclear::hooks::{AttemptState, HookOutcome, HookReport, HookTask, HookUpdate};
use tokio::sync::mpsc::Receiver;

use crate::workloads::bench::{ATTEMPT, end, next, task, until, within};
use crate::workloads::kind::{Behaviour, FLOOD, Kind, PROGRESS};

macro_rules! with {
    ($kind:ident: $type:ty; $($case:ident)*) => {
        mod $kind {
            $(#[tokio::test]
            async fn $case() {
                super::$case::<$type>().await;
            })*
        }
    };
}

/// Each kind is listed here once.
macro_rules! cases {
    ($($case:ident)*) => {
        with! { command: crate::workloads::kind::command::Script; $($case)* }
        with! { http: crate::workloads::kind::http::Service; $($case)* }
        with! { session: crate::workloads::kind::session::Session; $($case)* }
    };
}

cases! {
    an_outcome_is_what_it_says
    it_is_told_what_it_is_about
    progress_is_told_while_it_runs
    when_it_is_cancelled_it_is_told_to_end
    at_the_deadline_it_is_told_to_end
    the_same_attempt_is_begun_once_and_its_end_is_told_again
    a_killed_replica_finds_it_running_and_begins_nothing_twice
    a_killed_replica_learns_how_it_ended_meanwhile
    what_is_told_without_end_is_cut_short
}

async fn an_outcome_is_what_it_says<K: Kind>() {
    for expected in [
        HookOutcome::Done,
        HookOutcome::NotApplicable,
        HookOutcome::Failed("the disk is full".into()),
        HookOutcome::Blocked("no healthy standby".into()),
        HookOutcome::Unknown("the server was lost".into()),
    ] {
        let hook = K::that(Behaviour::Ends(expected.clone())).await;
        let (replica, mut reports) = hook.open().await;
        hook.ask(&replica, &task());
        assert_eq!(end(&mut reports).await, expected);
    }
    let hook = K::that(Behaviour::Ends(HookOutcome::NotDone)).await;
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &HookTask { intent: Intent::Confirm, ..task() });
    assert_eq!(end(&mut reports).await, HookOutcome::NotDone);
}

async fn it_is_told_what_it_is_about<K: Kind>() {
    let hook = K::that(Behaviour::Ends(HookOutcome::Done)).await;
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &HookTask { intent: Intent::Undo, ..task() });
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    let told = hook.told().await;
    let expected = [
        ("event_id", "a1-b2"),
        ("phase", "failover"),
        ("workload", "postgres"),
        ("vm", "db-0"),
        ("intent", "undo"),
        ("attempt", ATTEMPT),
        ("step", "A1-b2@1500/db-0/postgres/failover/0"),
        ("fence", "3.17"),
    ];
    for (fact, expected) in expected {
        assert_eq!(told[fact], expected, "{fact}");
    }
    assert_eq!(told["avoid_vms"], serde_json::json!(["db-0"]));
    assert!(told["time_left_ms"].as_u64().unwrap() > 0);
}

async fn progress_is_told_while_it_runs<K: Kind>() {
    let hook = K::that(Behaviour::Patient).await;
    let began = within(Duration::ZERO);
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &task());
    let end_is_expected = async |reports: &mut Receiver<HookReport>| loop {
        match next(reports).await {
            HookUpdate::Progress { text: Some(text), expected_end: Some(end) } if text == PROGRESS => return end,
            HookUpdate::Progress { .. } | HookUpdate::MoreTime { .. } => {}
            HookUpdate::Ended(ended) => panic!("{ended}"),
        }
    };
    let expected_end = end_is_expected(&mut reports).await;
    assert!(expected_end >= began.on_the_wall.plus(Duration::from_millis(90_500)), "{expected_end:?}");
    assert_eq!(replica.known(ATTEMPT), Some(AttemptState::Running));
    hook.let_go();
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
}

/// Waits for the first progress report, which proves that the hook runs.
async fn until_it_runs(reports: &mut Receiver<HookReport>) {
    let news = next(reports).await;
    assert!(matches!(news, HookUpdate::Progress { .. }), "{news:?}");
}

async fn when_it_is_cancelled_it_is_told_to_end<K: Kind>() {
    let hook = K::that(Behaviour::Patient).await;
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &task());
    until_it_runs(&mut reports).await;
    replica.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled);
    hook.is_told_to_end().await;
}

async fn at_the_deadline_it_is_told_to_end<K: Kind>() {
    let hook = K::that(Behaviour::Patient).await;
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &HookTask { deadline: within(Duration::from_secs(3)), ..task() });
    until_it_runs(&mut reports).await;
    assert_eq!(end(&mut reports).await, HookOutcome::TimedOut);
    hook.is_told_to_end().await;
}

async fn the_same_attempt_is_begun_once_and_its_end_is_told_again<K: Kind>() {
    let hook = K::that(Behaviour::Patient).await;
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &task());
    hook.ask(&replica, &task());
    until_it_runs(&mut reports).await;
    hook.ask(&replica, &task());
    hook.let_go();
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    hook.ask(&replica, &task());
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    assert_eq!(hook.runs(), 1);
    replica.forget(ATTEMPT);
    assert_eq!(replica.known(ATTEMPT), None);
}

async fn a_killed_replica_finds_it_running_and_begins_nothing_twice<K: Kind>() {
    let hook = K::that(Behaviour::Patient).await;
    hook.ask_and_be_killed().await;
    let (replica, mut reports) = hook.open().await;
    hook.finds_it_running(&replica).await;
    hook.ask(&replica, &task());
    until_it_runs(&mut reports).await;
    hook.let_go();
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    assert_eq!(hook.runs(), 1);
}

async fn a_killed_replica_learns_how_it_ended_meanwhile<K: Kind>() {
    let hook = K::that(Behaviour::Patient).await;
    hook.ask_and_be_killed().await;
    hook.let_go();
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &task());
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    assert_eq!(hook.runs(), 1);
}

async fn what_is_told_without_end_is_cut_short<K: Kind>() {
    let hook = K::that(Behaviour::Floods).await;
    let (replica, mut reports) = hook.open().await;
    hook.ask(&replica, &task());
    let is_short = |text: &str| text.starts_with(FLOOD) && text.len() <= TEXT_LIMIT;
    let HookUpdate::Progress { text: Some(text), .. } = next(&mut reports).await else {
        panic!("it tells its progress first")
    };
    assert!(is_short(&text), "{text}");
    hook.let_go();
    let HookOutcome::Failed(reason) = end(&mut reports).await else { panic!("it failed") };
    assert!(is_short(&reason), "{reason}");
    until(|| matches!(replica.known(ATTEMPT), Some(AttemptState::Ended(_)))).await;
}
