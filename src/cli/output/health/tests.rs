//! The line of `status --check`: each reason, and its severity.

use super::*;

fn well() -> shown::Status {
    let replica = |name: &str| shown::Replica {
        name: name.into(),
        member: true,
        voter: true,
        reachable: true,
        metadata: "healthy".into(),
        ..Default::default()
    };
    let replicas = ["db-0", "db-1", "db-2"].map(replica).into();
    shown::Status { cluster: "orders".into(), quorum: true, replicas, ..Default::default() }
}

fn told(change: impl FnOnce(&mut shown::Status)) -> String {
    let mut status = well();
    change(&mut status);
    line(&status)
}

#[test]
fn what_is_wrong_is_told_in_one_line_the_worst_first() {
    assert_eq!(line(&well()), "OK: cluster orders: no open events\n");
    assert_eq!(told(|it| it.replicas[1].reachable = false), "WARNING: cluster orders: db-1 is unreachable\n");
    let fault = told(|it| {
        let primary_fault = Some("has no primary: db-0, db-1 all say replica".into());
        it.groups.push(shown::Group { name: "orders-db".into(), primary_fault, ..Default::default() });
    });
    assert_eq!(fault, "CRITICAL: cluster orders: orders-db has no primary: db-0, db-1 all say replica\n");
    let over = told(|it| {
        let over_limit = Some("has 2 members out of service, and its limit is 1: db-0, db-1".into());
        it.groups.push(shown::Group { name: "orders-db".into(), over_limit, ..Default::default() });
    });
    assert!(over.starts_with("CRITICAL: cluster orders: orders-db has 2 members out of service"), "{over}");
    let clock = told(|it| it.replicas[1].clock_difference_ms = Some(-5_200));
    assert_eq!(clock, "WARNING: cluster orders: db-1: CLOCK 5.2 s behind the cluster's clock\n");
    assert!(told(|it| it.quorum = false).starts_with("CRITICAL: cluster orders: no quorum"));
    let open = told(|it| {
        let (r#type, source, stage) = ("Reboot".into(), "User".into(), "preparing".into());
        let (resources, not_before) = (vec!["db-1".into()], Some("noon".into()));
        it.quorum = false;
        it.events.push(shown::Event { r#type, source, stage, resources, not_before, ..Default::default() });
    });
    assert!(open.contains("; Reboot of db-1 by User is open, and its notice ends at noon"), "{open}");
    let blind = told(|it| it.replicas.iter_mut().for_each(|replica| replica.metadata = "stalled".into()));
    assert!(blind.starts_with("CRITICAL: cluster orders: nobody sees events"), "{blind}");
    let held = told(|it| {
        let blocker = |code: &str, needs_person| shown::Blocker {
            code: code.into(),
            message: "no\u{1b}disk".into(),
            needs_person,
            ..Default::default()
        };
        let event = shown::Event {
            r#type: "Reboot".into(),
            source: "User".into(),
            resources: vec!["db-0".into()],
            blocker: Some(blocker("hold", false)),
            other_blockers: vec![blocker("hook_failed", true)],
            hold: Some(shown::Pause {
                by: "ada".into(),
                until: "noon".into(),
                starts_before: vec![shown::pause::Start { event: "e".into(), at: "ten".into() }],
                ..Default::default()
            }),
            ..Default::default()
        };
        it.events.push(event);
    });
    let wanted = "Reboot of db-0 by User waits for a person: no\u{fffd}disk; Reboot of db-0 by User is held by ada until noon, and starts all the same at ten";
    assert_eq!(held, format!("CRITICAL: cluster orders: {wanted}\n"));
    let unprepared = told(|it| {
        let missing_hooks = vec!["failover of orders-db on db-0".into()];
        let (r#type, source, resources) = ("Reboot".into(), "User".into(), vec!["db-0".into()]);
        it.events.push(shown::Event { r#type, source, resources, missing_hooks, ..Default::default() });
    });
    let wanted = "Reboot of db-0 by User started before the failover of orders-db on db-0 was done";
    assert_eq!(unprepared, format!("CRITICAL: cluster orders: {wanted}\n"));
}

#[test]
fn a_blocked_failover_is_critical_and_another_blocked_hook_a_warning() {
    let blocked_since = |second: u32, hook: &str| {
        let blocker = |hook: &str| shown::Blocker {
            code: "hook_blocked".into(),
            message: "it lags".into(),
            hooks: vec![format!("db-0/pg/{hook}")],
            ..Default::default()
        };
        let (r#type, source, resources) = ("Reboot".into(), "User".into(), vec!["db-0".into()]);
        let blocker = Some(blocker(hook));
        let blocked_since = Some(format!("2026-01-01T12:00:{second}.000Z"));
        let hooks = vec![shown::Hook { hook: format!("db-0/pg/{hook}"), blocked_since, ..Default::default() }];
        told(|it| {
            it.now = "2026-01-01T12:00:45.000Z".into();
            it.events.push(shown::Event { r#type, source, resources, blocker, hooks, ..Default::default() });
        })
    };
    let blocked = |hook: &str| blocked_since(10, hook);
    let wanted = "cluster orders: Reboot of db-0 by User waits: it lags\n";
    assert_eq!(blocked("failover"), format!("CRITICAL: {wanted}"));
    assert_eq!(blocked("failover#2"), format!("CRITICAL: {wanted}"));
    assert_eq!(blocked("drain"), format!("WARNING: {wanted}"));
    assert_eq!(blocked_since(20, "failover"), format!("WARNING: {wanted}"), "it may be over in a moment");
}

#[test]
fn a_second_approval_alarms_for_a_day() {
    let on = |day: u32| {
        told(|it| {
            let (since, text) = ("2026-01-01T12:00:00.000Z".into(), format!("{SECOND_APPROVER} e (Reboot of a)"));
            it.now = format!("2026-01-0{day}T11:00:00.000Z");
            it.warnings.push(shown::Warning { since, text, event: "e".into() });
        })
    };
    assert_eq!(on(2), "WARNING: cluster orders: another approver approved event e (Reboot of a)\n");
    assert_eq!(on(3), "OK: cluster orders: no open events\n");
}

#[test]
fn what_azure_did_not_start_and_what_could_not_be_restored_is_told_once() {
    let late = told(|it| {
        let (r#type, source, resources) = ("Reboot".into(), "User".into(), vec!["db-0".into()]);
        let blocker = shown::Blocker { code: "waiting_for_platform".into(), ..Default::default() };
        let (blocker, not_before) = (Some(blocker), Some("2026-01-31T12:00:00.000Z".into()));
        it.now = "2026-01-31T12:01:00.000Z".into();
        it.events.push(shown::Event { r#type, source, resources, blocker, not_before, ..Default::default() });
    });
    let wanted = "Reboot of db-0 by User is approved, and Azure has not started it: its notice ended at";
    assert!(late.starts_with(&format!("WARNING: cluster orders: {wanted}")), "{late}");
    let failing = told(|it| {
        it.members.push(shown::MemberState {
            workload: "pg".into(),
            vm: "db-0".into(),
            state: "returning".into(),
            owed: Some("restore, failed".into()),
            ..Default::default()
        });
        let text = "pg on db-0 is not back after event E: no disk".into();
        it.warnings.push(shown::Warning { text, ..Default::default() });
    });
    assert_eq!(failing, "CRITICAL: cluster orders: pg on db-0 is not back after event E: no disk\n");
}
