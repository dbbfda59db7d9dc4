//! The texts of `allclear explain`.

use super::*;
use crate::cli::output::page::Terminal;
use allclear_core::model::time::Timestamp;

fn told(event: &shown::Event) -> String {
    super::event(
        &OutputContext { paper: Terminal::PLAIN, now: Timestamp(0), lacks_quorum: false, at: String::new() },
        event,
    )
}

fn hook(phase: &str, outcome: Option<&str>) -> shown::Hook {
    shown::Hook {
        workload: "pg".into(),
        vm: "db-0".into(),
        phase: phase.into(),
        intent: "run".into(),
        outcome: outcome.map(Into::into),
        reason: outcome.filter(|outcome| *outcome == "failed").map(|_| "no space left".into()),
        started_at: "1970-01-01T00:00:00Z".into(),
        deadline: "1970-01-01T00:01:00Z".into(),
        ..Default::default()
    }
}

#[test]
fn nobody_is_sent_to_fail_over_beside_a_running_failover() {
    let started = |hooks| {
        let missing_hooks = vec!["failover of pg on db-0".into()];
        told(&shown::Event { stage: "started".into(), missing_hooks, hooks, ..Default::default() })
    };
    let waits = "serve; when allclear's own failover has ended, at the latest at 00:01:00 UTC";
    let beside = started(vec![hook("failover", None)]);
    assert!(beside.contains(waits), "{beside}");
    let after = started(vec![hook("failover", Some("failed"))]);
    assert!(
        after.contains("serve; if none is the primary, and the VM does not come back soon, fail over by hand"),
        "{after}"
    );
}

#[test]
fn an_end_of_the_notice_that_is_ignored_is_told_with_the_reason() {
    let announced = || shown::Event { stage: "preparing".into(), ..Default::default() };
    let ignored_not_before = Some("1969-12-31T23:00:00Z".into());
    let told_by_azure = told(&shown::Event { ignored_not_before, ..announced() });
    assert!(
        told_by_azure.contains("unknown: Azure said") && told_by_azure.contains("`allclear status`"),
        "{told_by_azure}"
    );
    assert!(told(&announced()).contains("unknown: Azure gave no time"));
}

#[test]
fn hooks_that_have_not_begun_are_named() {
    let hooks_to_come = vec!["failover of pg on db-0".into(), "drain of pg on db-0".into()];
    let (stage, hooks) = ("preparing".into(), vec![hook("checkpoint", Some("done"))]);
    let told = told(&shown::Event { stage, hooks, hooks_to_come, ..Default::default() });
    assert!(told.contains("to come: failover of pg on db-0, drain of pg on db-0"), "{told}");
}

#[test]
fn what_follows_a_hook_that_failed_is_told_and_what_was_skipped_before_it_began() {
    let failed = |afterwards: Option<&str>| {
        let hooks = vec![shown::Hook { afterwards: afterwards.map(Into::into), ..hook("drain", Some("failed")) }];
        let skipped_hooks = vec!["failover of pg on db-0: skipped by ada: no standby".into()];
        told(&shown::Event { stage: "preparing".into(), hooks, skipped_hooks, ..Default::default() })
    };
    let row = |text: &str| text.lines().find(|line| line.trim().starts_with("drain")).unwrap_or_default().to_owned();
    let skipped = failed(Some("skipped by ada: gone"));
    assert!(row(&skipped).contains("failed") && row(&skipped).contains("skipped by ada: gone; since"), "{skipped}");
    assert!(row(&failed(Some("to run again"))).contains("to run again; since"));
    let alone = failed(None);
    assert!(!row(&alone).contains("skipped") && !row(&alone).contains("again"), "{alone}");
    assert!(skipped.contains("\n  failover of pg on db-0: skipped by ada: no standby\n"), "{skipped}");
}

#[test]
fn a_command_for_a_replica_is_told_with_the_endpoint_and_every_other_without() {
    let advice =
        |command: &str, takes_endpoint| shown::Advice { command: command.into(), takes_endpoint, ..Default::default() };
    let advice = vec![advice("allclear status", true), advice("az account show", false)];
    let reader =
        OutputContext { paper: Terminal::PLAIN, now: Timestamp(0), lacks_quorum: false, at: " --endpoint /s".into() };
    let blocker = Some(shown::Blocker::default());
    let told = event(&reader, &shown::Event { stage: "preparing".into(), blocker, advice, ..Default::default() });
    assert!(told.contains("allclear status --endpoint /s\n") && told.contains("az account show\n"), "{told}");
}

#[test]
fn no_start_is_claimed_that_no_replica_saw() {
    let closed = |start_seen, start_cause: Option<&str>| {
        let (stage, outcome) = ("closed".into(), Some("completed".into()));
        let start_cause = start_cause.map(Into::into);
        told(&shown::Event { stage, outcome, start_cause, start_seen, ..Default::default() })
    };
    assert!(closed(true, Some("approved")).contains(": closed, completed, started because: approved\n"));
    assert!(closed(false, Some("approved")).contains(": closed, over after its approval; no start was seen\n"));
    assert!(closed(false, None).contains(": closed, over; no start was seen\n"));
}

#[test]
fn a_countdown_is_by_the_clusters_time() {
    let reader =
        || OutputContext { paper: Terminal::PLAIN, now: Timestamp(600_000), lacks_quorum: false, at: String::new() };
    let not_before = Some("1970-01-01T00:10:00Z".into());
    let open = shown::Event { stage: "preparing".into(), not_before, ..Default::default() };
    assert!(event(&reader(), &open).contains("notice ends    00:10:00 UTC, now"));
    let told = event(&reader().at_time("1970-01-01T00:05:00.000Z"), &open);
    assert!(told.contains("notice ends    00:10:00 UTC, in 5 min"), "{told}");
    assert_eq!(reader().at_time("").now, reader().now);
}

#[test]
fn without_a_quorum_no_restore_is_said_to_go_on() {
    let reader = || OutputContext { paper: Terminal::PLAIN, now: Timestamp(0), lacks_quorum: false, at: String::new() };
    let restoring = shown::Event { stage: "restoring".into(), ..Default::default() };
    let status = |quorum| shown::Status { quorum, events: vec![restoring.clone()], ..Default::default() };
    let (lost, led) = (status(false), status(true));
    let waits = "the restore of the workloads waits for a quorum: until then no further hook begins";
    for told in [event(&reader().under(&lost), &restoring), super::super::status(&reader().under(&lost), &lost)] {
        assert!(told.contains(waits) && !told.contains("are being restored"), "{told}");
    }
    assert!(event(&reader().under(&led), &restoring).contains("the workloads are being restored"));
}
