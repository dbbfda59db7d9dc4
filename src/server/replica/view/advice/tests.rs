//! The offered commands: quoted, for the right blocker, and none that would be refused.

mod holds;
mod quorum;

use super::*;
use crate::clock::rfc3339;

const DOCTOR: &str = "allclear doctor --config /c";

#[test]
fn a_name_that_would_mislead_whoever_copies_it_is_not_there_to_be_copied() {
    let explain = |id| command("explain", &[id]);
    assert_eq!(explain("A b").unwrap(), "allclear explain 'A b'");
    for id in ["--endpoint=/tmp/a", "-h", "A\u{202e}b", "A\u{1b}[2Jb", "A\nb", "A\u{a0}b"] {
        assert_eq!(explain(id), None, "{id:?}");
        let event = shown::Event { id: id.into(), stage: "preparing".into(), ..Default::default() };
        let commands = of(&event, &undecided(), Timestamp(0), DOCTOR).into_iter().map(|advice| advice.command);
        assert_eq!(commands.collect::<Vec<_>>(), ["allclear events --json"], "{id:?}");
    }
}

fn offered(code: &str, is_held: bool) -> Vec<String> {
    offered_beside(code, &[], is_held, None)
}

fn offered_when(code: &str, is_held: bool, notice_ends: Option<i64>) -> Vec<String> {
    offered_beside(code, &[], is_held, notice_ends)
}

fn offered_beside(code: &str, others: &[&str], is_held: bool, notice_ends: Option<i64>) -> Vec<String> {
    let hold = is_held.then(shown::Pause::default);
    let not_before = notice_ends.map(|at| rfc3339(Timestamp(at)));
    let (id, stage) = ("e".into(), "preparing".into());
    let hooks = if code.starts_with("hook_") { vec!["db-0/postgres/drain#2".into()] } else { Vec::new() };
    let blocker = shown::Blocker { code: code.into(), hooks, ..Default::default() };
    let mut event =
        shown::Event { id, stage, revision: 7, hold, not_before, blocker: Some(blocker), ..Default::default() };
    let other = |code: &&str| shown::Blocker { code: (*code).into(), ..Default::default() };
    event.other_blockers = others.iter().map(other).collect();
    of(&event, &undecided(), Timestamp(0), DOCTOR).into_iter().map(|advice| advice.command.replace(WHY, "")).collect()
}

fn undecided() -> Facts {
    Facts { is_undecided: true, ..Facts::default() }
}

fn told(blocker: shown::Blocker, change: impl FnOnce(&mut shown::Event)) -> String {
    told_with(&undecided(), blocker, change)
}

fn told_with(facts: &Facts, blocker: shown::Blocker, change: impl FnOnce(&mut shown::Event)) -> String {
    let primary = shown::TakenDown {
        vm: "db-0".into(),
        workload: "pg".into(),
        group: Some("orders-db".into()),
        role: "primary".into(),
        ..Default::default()
    };
    let (id, stage, takes_down) = ("e".into(), "preparing".into(), vec![primary]);
    let mut event = shown::Event { id, stage, takes_down, blocker: Some(blocker), ..Default::default() };
    change(&mut event);
    let lines = of(&event, facts, Timestamp(0), DOCTOR)
        .into_iter()
        .map(|advice| format!("{}\n{}\n", advice.does, advice.command));
    lines.collect()
}

#[test]
fn the_end_of_a_pause_names_the_primaries_of_the_other_events() {
    let unmoved_elsewhere = vec!["db-1 holds the primary of carts-db".into()];
    let facts = Facts { unmoved_elsewhere, ..undecided() };
    let paused = || shown::Blocker { code: "paused".into(), ..Default::default() };
    let others = ". Other events go on too: db-1 holds the primary of carts-db, which is NOT moved and goes down\nallclear resume";
    let offered = told_with(&facts, paused(), |_| {});
    assert!(offered.contains(others), "{offered}");
    assert!(!told(paused(), |_| {}).contains("Other events"));
}

#[test]
fn who_takes_a_primary_down_is_told_so() {
    let blocked = |code: &str| shown::Blocker { code: code.into(), ..Default::default() };
    let warns = |text: &str| text.contains("db-0 holds the primary of orders-db, which is NOT moved and goes down");
    assert!(warns(&told(blocked("budget"), |_| {})) && warns(&told(blocked("too_early"), |_| {})));
    let runs = |event: &mut shown::Event| {
        event.hooks.push(shown::Hook { phase: "failover".into(), ..Default::default() });
        event.takes_down[0].failover_left = true;
    };
    assert!(!warns(&told(blocked("too_early"), runs)), "the failover may end before the approval");
    assert!(!told(blocked("too_early"), |event| event.approved_by_operator = true).contains("allclear approve"));
}

#[test]
fn the_end_of_a_hold_or_a_pause_names_the_primary_that_no_failover_moves() {
    let lines_of = |code: &str, failover_left| {
        told(shown::Blocker { code: code.into(), ..Default::default() }, |event| {
            event.takes_down[0].failover_left = failover_left;
        })
    };
    for (code, command) in [("hold", "release e"), ("paused", "resume"), ("too_early", "prepare e")] {
        let warning =
            "start it at once; db-0 holds the primary of orders-db, which is NOT moved and goes down\nallclear";
        let unmoved = lines_of(code, false);
        assert!(unmoved.contains(&format!("{warning} {command}")), "{unmoved}");
        assert!(!lines_of(code, true).contains(&format!("{warning} {command}")), "its failover is still to run");
    }
    let skip = |hook: &str| {
        let hooks = vec![hook.into()];
        told(shown::Blocker { code: "hook_running".into(), hooks, ..Default::default() }, |event| {
            event.takes_down[0].failover_left = true;
        })
    };
    let before_approval = "hooks that are left run before the approval";
    assert!(skip("db-0/pg/failover").contains(&format!("{before_approval}; db-0 holds the primary")));
    assert!(skip("db-0/pg/drain").contains(&format!("{before_approval}\n")), "{}", skip("db-0/pg/drain"));
}

#[test]
fn the_command_for_a_member_that_is_away_or_not_restored_is_offered() {
    let away =
        shown::Blocker { code: "hook_blocked".into(), disconnected: Some("db-0/pg".into()), ..Default::default() };
    let offered = told(away, |_| {});
    assert!(offered.contains("allclear workload remove db-0/pg --reason 'WHY'"), "{offered}");
    assert!(offered.contains("goes on without its hooks; db-0 holds the primary"), "{offered}");
    let of_another = shown::Blocker { disconnected: Some("db-0/cache".into()), ..Default::default() };
    assert!(!told(of_another, |_| {}).contains("goes on without its hooks; db-0 holds"), "the primary is moved");
    let owed = shown::Blocker { code: "budget".into(), unrestored: vec!["db-1/pg".into()], ..Default::default() };
    let offered = told(owed, |_| {});
    assert!(offered.contains("allclear workload restored db-1/pg --reason 'WHY'"), "{offered}");
    assert!(offered.contains("an event that waits for it then takes its members down at once"), "{offered}");
}

#[test]
fn a_blind_cluster_is_given_the_way_through_azure() {
    let blind = |vm: Option<&str>| {
        let approvable_by_hand = vm.map(Into::into);
        told(shown::Blocker { code: "no_healthy_channel".into(), approvable_by_hand, ..Default::default() }, |_| {})
    };
    let offered = blind(Some("db-0"));
    assert!(offered.contains("only after you have seen in the Azure portal that the event is still scheduled, app"));
    let wanted = "az maintenance scheduledevents acknowledge --subscription SUBSCRIPTION --resource-group GROUP \
                  --resource-type virtualMachines --resource-name db-0 --scheduled-events-id e\n";
    assert!(offered.contains(wanted), "{offered}");
    let not_sent = shown::Approval { outcome: Some("not_sent".into()), ..Default::default() };
    let by_hand = Some("db-0".into());
    let blind_again =
        shown::Blocker { code: "no_healthy_channel".into(), approvable_by_hand: by_hand, ..Default::default() };
    let offered = told(blind_again, |event| event.approvals.push(not_sent));
    assert!(offered.contains("az maintenance") && offered.contains("allclear hold e --until 2h"), "{offered}");
    let facts = Facts { last_document: Some(Timestamp(60_000)), ..undecided() };
    let by_hand = || Some("db-0".into());
    let long_blind =
        shown::Blocker { code: "no_healthy_channel".into(), approvable_by_hand: by_hand(), ..Default::default() };
    let offered = told_with(&facts, long_blind, |_| {});
    let look = "only after you have seen in the Azure portal that the event is still scheduled (the last document is \
                from 1970-01-01T00:01:00.000Z), approve the event with the Azure CLI";
    assert!(offered.contains(look) && offered.contains("az maintenance"), "{offered}");
    let refused = shown::Blocker { code: "post_failed".into(), approvable_by_hand: by_hand(), ..Default::default() };
    let offered = told(refused, |event| event.status = Some("Scheduled".into()));
    let mended =
        "is refused again and again: if the cause cannot be mended in time, approve the event with the Azure CLI";
    assert!(offered.contains(mended) && offered.contains("az maintenance"), "{offered}");
    for other in [None, Some("--help"), Some("a\u{202e}b")] {
        assert!(!blind(other).contains("az maintenance"), "{other:?}");
    }
}

#[test]
fn what_removes_each_blocker_is_offered_and_nothing_that_another_blocker_forbids() {
    let hook = "e 'db-0/postgres/drain#2'";
    let (retry, skip) = (format!("allclear retry {hook}"), format!("allclear skip {hook}"));
    assert_eq!(offered_beside("hook_failed", &["hold"], true, None), [&retry, &skip, "allclear release e"]);
    let wanted = [&retry, &skip, "allclear resume", "allclear hold e --until 2h"];
    assert_eq!(offered_beside("hook_failed", &["paused"], false, None), wanted);
    assert_eq!(offered_beside("hold", &["too_early"], true, None), ["allclear release e"]);
    assert_eq!(offered_beside("no_quorum", &["hold", "hook_failed"], true, None), ["allclear status", DOCTOR]);
}

#[test]
fn what_helps_is_offered_and_nothing_that_would_be_refused() {
    let (hold, pause) = ("allclear hold e --until 2h", "allclear pause --until 2h");
    let approve = "allclear approve e --revision 7";
    for (code, wanted) in [
        (
            "hook_failed",
            &[
                "allclear retry e 'db-0/postgres/drain#2'",
                "allclear skip e 'db-0/postgres/drain#2'",
                approve,
                hold,
                pause,
            ][..],
        ),
        ("hold", &["allclear release e"]),
        ("paused", &["allclear resume", hold]),
        ("budget", &["allclear workload list", "allclear approve e --over-budget --revision 7", hold, pause]),
        ("too_early", &["allclear prepare e", approve, hold, pause]),
        ("observing", &[approve]),
        ("no_quorum", &["allclear status", DOCTOR]),
        ("no_healthy_channel", &[DOCTOR, hold, pause]),
    ] {
        assert_eq!(offered(code, code == "hold"), wanted, "{code}");
    }
}

#[test]
fn the_end_of_a_hold_promises_no_approval_beside_another_blocker() {
    let blocked = |others: &[&str]| {
        told(shown::Blocker { code: "hold".into(), ..Default::default() }, |event| {
            let other = |code: &&str| shown::Blocker { code: (*code).into(), ..Default::default() };
            event.other_blockers = others.iter().map(other).collect();
        })
    };
    assert!(blocked(&[]).starts_with("end the hold: the event goes on, and is approved"));
    assert!(blocked(&["hook_failed"]).contains("end the hold: the event still waits for its other blockers; db-0"));
    assert!(blocked(&["paused"]).contains("end the pause of all approvals: the event still waits"));
}

#[test]
fn the_end_of_a_hold_runs_a_failed_hook_again_whose_members_have_returned() {
    let facts = Facts { hooks_run_again: true, ..undecided() };
    let blocked = |others: &[&str]| {
        told_with(&facts, shown::Blocker { code: "hook_failed".into(), ..Default::default() }, |event| {
            let other = |code: &&str| shown::Blocker { code: (*code).into(), ..Default::default() };
            event.other_blockers = others.iter().map(other).collect();
        })
    };
    let again =
        "the hooks run again, the failed hook too, and the event is approved when it is prepared; Azure may start";
    assert!(blocked(&["hold"]).contains(&format!("end the hold: {again}")), "{}", blocked(&["hold"]));
    assert!(blocked(&["paused"]).contains(&format!("end the pause of all approvals: {again}")));
    for waiting in [&["hold", "paused"][..], &["hold", "budget"]] {
        assert!(blocked(waiting).contains("end the hold: the event still waits for its other blockers"));
    }
}

#[test]
fn a_member_that_serves_although_its_restore_fails_can_be_declared_so() {
    let restore = |outcome: &str| shown::Hook {
        workload: "pg".into(),
        vm: "db-0".into(),
        phase: "restore".into(),
        outcome: Some(outcome.into()),
        ..Default::default()
    };
    let after = |outcomes: &[&str]| {
        let hooks = outcomes.iter().map(|outcome| restore(outcome)).collect();
        let event = shown::Event { id: "e".into(), stage: "restoring".into(), hooks, ..Default::default() };
        let retries = BTreeMap::from([("db-0/pg".to_owned(), Timestamp(60_000))]);
        let all = of(&event, &Facts { retries, ..Facts::default() }, Timestamp(0), DOCTOR).into_iter();
        all.map(|advice| (advice.does, advice.command)).collect::<Vec<_>>()
    };
    let [(does, command)] = &after(&["done", "failed"])[..] else { panic!("one command") };
    assert_eq!(command, "allclear workload restored db-0/pg --reason 'WHY'");
    assert!(does.contains("allclear retries it by itself at 1970-01-01T00:01:00.000Z; repair the cause"), "{does}");
    assert!(after(&["failed", "done"]).is_empty());
    let hooks = vec![restore("failed")];
    let event = shown::Event { id: "e".into(), stage: "restoring".into(), hooks, ..Default::default() };
    let facts = Facts { lacks_quorum: true, ..Facts::default() };
    assert!(of(&event, &facts, Timestamp(0), DOCTOR).is_empty(), "it would be refused without a quorum");

    let facts = Facts { away: BTreeMap::from([("db-0/pg".to_owned(), Timestamp(60_000))]), ..Facts::default() };
    let hooks = vec![restore("unknown")];
    let event = shown::Event { id: "e".into(), stage: "restoring".into(), hooks, ..Default::default() };
    let [waiting] = &of(&event, &facts, Timestamp(0), DOCTOR)[..] else { panic!("one command") };
    let wanted =
        "the restore of db-0/pg waits: the workload has not been connected since 1970-01-01T00:01:00.000Z; start";
    assert!(waiting.does.starts_with(wanted), "{waiting:?}");
}

#[test]
fn a_hook_that_a_hold_or_a_pause_keeps_waiting_is_not_told_to_run_at_once() {
    let commands = |others: &[&str]| {
        let hooks = vec!["db-0/pg/drain".into()];
        told(shown::Blocker { code: "hook_failed".into(), hooks, ..Default::default() }, |event| {
            let other = |code: &&str| shown::Blocker { code: (*code).into(), ..Default::default() };
            event.other_blockers = others.iter().map(other).collect();
            event.hold = others.contains(&"hold").then(shown::Pause::default);
        })
    };
    assert!(commands(&["hold"]).contains("is mended; it runs at the latest when the hold ends or shortly before"));
    assert!(commands(&["hold"]).contains("is stopped, and the event goes on when the hold ends: hooks"));
    assert!(commands(&["paused"]).contains("is stopped, and the event goes on when the pause ends: hooks"));
    assert!(commands(&[]).contains("is mended\n") && commands(&[]).contains("and the event goes on: hooks"));
}

#[test]
fn a_skip_under_a_hold_that_outlasts_the_notice_does_not_promise_an_approval() {
    let commands = |no_hooks| {
        let hooks = vec!["db-0/pg/drain".into()];
        told(shown::Blocker { code: "hook_failed".into(), hooks, ..Default::default() }, |event| {
            let starts_before = vec![shown::pause::Start::default()];
            event.hold = Some(shown::Pause { starts_before, no_hooks, ..Default::default() });
        })
    };
    let plain = "is stopped, and hooks that are left run shortly before the notice ends, without an approval";
    assert!(commands(false).contains(plain), "{}", commands(false));
    let without = "is stopped, and no other hook begins before Azure starts the event, unless you release the event";
    assert!(commands(true).contains(without), "{}", commands(true));
}
