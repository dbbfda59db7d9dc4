//! Tests which greetings are rejected, and with which messages.

use super::*;

fn hello() -> pb::Hello {
    pb::Hello { versions: vec![VERSION], workload: "db".into(), boot: "1".into(), ..pb::Hello::default() }
}

fn hook_of(phase: pb::Phase) -> pb::Hook {
    pb::Hook { phase: phase.into(), ..pb::Hook::default() }
}

fn refused(hello: pb::Hello) -> String {
    read(hello, 0, false).err().unwrap_or_default()
}

#[test]
fn what_is_left_out_has_a_meaning() -> Result<(), String> {
    let greeting = read(pb::Hello { hooks: vec![hook_of(pb::Phase::Drain)], ..hello() }, 0, true)?;
    assert_eq!((greeting.lease, greeting.retain, greeting.polls), (Duration::from_secs(10), None, true));
    let hook = &greeting.workload.hooks[0];
    assert_eq!((hook.timeout, hook.max_attempts, hook.on_failure), (Duration::from_mins(1), 2, OnFailure::Hold));
    assert_eq!((greeting.workload.on_absent, greeting.role), (OnAbsent::Hold, Role::Unknown));
    Ok(())
}

#[test]
fn everything_that_is_wrong_is_told_at_once_with_its_place() {
    let hooks = vec![
        hook_of(pb::Phase::Drain),
        pb::Hook { phase: 99, timeout_ms: Some(0), attempts: Some(0), ..pb::Hook::default() },
        pb::Hook { on_failure: 7, runs_on: 8, ..pb::Hook::default() },
    ];
    let said = refused(pb::Hello {
        versions: vec![9],
        workload: "a b".into(),
        group: Some(String::new()),
        boot: "x".repeat(64),
        lease_ms: Some(999),
        after: vec!["a b".into()],
        on_absent: 4,
        role: 3,
        known: vec![pb::Known { attempt: String::new(), outcome: Some(pb::Outcome { variant: None }) }],
        hooks,
        ..pb::Hello::default()
    });
    let places: Vec<_> = said.split("; ").filter_map(|mistake| mistake.split_once(": ")).map(|(at, _)| at).collect();
    assert_eq!(
        places,
        [
            "versions",
            "workload",
            "group",
            "boot",
            "after[0]",
            "after[0]",
            "hooks[1].phase",
            "hooks[1].attempts",
            "hooks[2].phase",
            "hooks[2].on_failure",
            "hooks[2].runs_on",
            "lease_ms",
            "on_absent",
            "role",
            "known[0].attempt",
            "known[0].outcome"
        ],
        "{said}"
    );
}

#[test]
fn there_may_be_so_many_of_each() {
    let hooks = vec![hook_of(pb::Phase::Drain); MAX_HOOKS + 1];
    let after = vec!["other".to_owned(); MAX_AFTER + 1];
    let known = (0..=MAX_KNOWN).map(|number| pb::Known { attempt: number.to_string(), outcome: None }).collect();
    let said = refused(pb::Hello { hooks, after, known, ..hello() });
    for place in ["hooks: 33 entries", "after: 33 entries", "known: 257 entries"] {
        assert!(said.contains(place), "{said}");
    }
}

#[test]
fn a_failover_that_cannot_be_asked_is_accepted_with_a_warning() -> Result<(), String> {
    let hooks = vec![hook_of(pb::Phase::Drain), hook_of(pb::Phase::Failover)];
    let greeting = read(pb::Hello { hooks, on_absent: pb::OnAbsent::Command.into(), ..hello() }, 0, false)?;
    let places: Vec<_> =
        odd(&greeting.workload, &[], &Grants::default()).into_iter().filter_map(|problem| problem.place).collect();
    assert_eq!(places, ["hooks[1].can_confirm", "on_absent"]);
    let misspelt = pb::Hook { event_types: vec!["Rebot".into()], fresh_for_ms: Some(1), ..hook_of(pb::Phase::Drain) };
    let greeting = read(pb::Hello { hooks: vec![misspelt, hook_of(pb::Phase::Check)], ..hello() }, 0, true)?;
    let places: Vec<_> =
        odd(&greeting.workload, &[], &Grants::default()).into_iter().filter_map(|problem| problem.place).collect();
    assert_eq!(places, ["hooks[0].event_types", "hooks[0].fresh_for_ms"]);
    let configured = [Workload { origin: Origin::Configured, ..greeting.workload.clone() }];
    let said: Vec<_> = odd(&greeting.workload, &configured, &Grants::default())
        .into_iter()
        .filter_map(|problem| problem.place)
        .collect();
    assert_eq!(said.last().map(String::as_str), Some("workload"), "the hooks of the configured workload are replaced");
    let runs_dry: Vec<bool> = greeting.workload.hooks.iter().map(|hook| hook.can_dry_run).collect();
    assert_eq!(runs_dry, [false, true], "a check changes nothing, so a dry run runs it");
    Ok(())
}

#[test]
fn a_session_without_a_group_is_told_so_if_the_configuration_has_groups() -> Result<(), String> {
    let groups = |names: &[&str]| names.iter().map(|name| (GroupName((*name).into()), Vec::new())).collect();
    let grants = Grants { groups: groups(&["orders", "shop"]), ..Grants::default() };
    let greeting = read(pb::Hello { hooks: vec![hook_of(pb::Phase::Drain)], ..hello() }, 0, false)?;
    let said = |workload: &Workload, configured: &[Workload], grants: &Grants| -> Vec<String> {
        odd(workload, configured, grants).into_iter().map(|problem| problem.message).collect()
    };
    let told = said(&greeting.workload, &[], &grants);
    let lacks = "no group, although the configuration has groups (orders, shop): ";
    assert!(told.len() == 1 && told[0].starts_with(lacks), "{told:?}");
    assert_eq!(said(&greeting.workload, &[], &Grants::default()), [""; 0], "every group has the defaults");
    let member = Workload { group: Some(GroupName("orders".into())), ..greeting.workload.clone() };
    assert_eq!(said(&member, &[], &grants), [""; 0]);
    // The configuration itself has this workload without a group.
    let on_absent = OnAbsent::Command;
    let configured = Workload { origin: Origin::Configured, on_absent, ..greeting.workload.clone() };
    let in_its_place = Workload { on_absent, ..greeting.workload };
    assert_eq!(said(&in_its_place, &[configured], &grants), [""; 0]);
    Ok(())
}
