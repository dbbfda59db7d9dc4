//! The words of the answers, and the ends that an operator may write.

use super::*;

#[test]
fn only_a_voter_that_may_approve_by_itself_is_said_to() {
    let told = |unacknowledged_may_approve| {
        let names = vec!["db-2".into()];
        let halt = shown::Pause { unacknowledged_by: names, unacknowledged_may_approve, ..shown::Pause::default() };
        halted("all approvals are paused", Some(&halt))
    };
    assert!(told(false).ends_with("not acknowledged yet by db-2\n"), "{}", told(false));
    assert!(told(true).contains("by db-2: an isolated replica may still approve user-initiated"), "{}", told(true));
}

#[test]
fn a_hook_to_run_again_waits_for_the_end_of_a_hold_or_a_pause() {
    let told = |codes: &[&str], hold| {
        let blocker = |code: &&str| shown::Blocker { code: (*code).into(), ..shown::Blocker::default() };
        let other_blockers = codes.iter().map(blocker).collect();
        let event = shown::Event { other_blockers, hold, ..shown::Event::default() };
        runs_again(&shown::RetryResponse { event: Some(event), hook: "drain".into() })
    };
    assert_eq!(told(&["hook_waiting"], None), "drain runs again");
    assert_eq!(
        told(&["hook_waiting", "paused"], None),
        "drain runs again, at the latest when the pause ends or shortly before the notice ends"
    );
    let hold = shown::Pause::default();
    assert_eq!(
        told(&["hold"], Some(hold.clone())),
        "drain runs again, at the latest when the hold ends or shortly before the notice ends"
    );
    assert_eq!(
        told(&["hold", "paused"], Some(hold.clone())),
        "drain runs again, at the latest when the hold and the pause have ended, or shortly before the notice ends"
    );
    let long = shown::Pause { starts_before: vec![shown::pause::Start::default()], ..hold };
    assert_eq!(told(&["hold"], Some(long.clone())), "drain runs again, at the latest shortly before the notice ends");
    assert_eq!(
        told(&["hold"], Some(shown::Pause { no_hooks: true, ..long })),
        "drain runs again, only after you release the event, or at the end of the hold: the hold stops all hooks, and \
         Azure starts the event before that end"
    );
}

#[test]
fn a_hold_tells_what_it_takes_back() {
    let held = shown::HoldResponse { hold: None, takes_back: vec!["the approval by ada".into()] };
    let told = held_back("E is held", &held);
    assert!(told.ends_with("\ntaken back by this hold: the approval by ada\n"), "{told}");
}

fn with_primary(failover_left: bool) -> shown::Event {
    let primary = shown::TakenDown {
        workload: "pg".into(),
        vm: "db-0".into(),
        group: Some("orders-db".into()),
        role: "primary".into(),
        failover_left,
        ..Default::default()
    };
    let (id, stage, resources) = ("e-1".into(), "preparing".into(), vec!["db-0".into()]);
    shown::Event {
        id,
        stage,
        resources,
        r#type: "Reboot".into(),
        source: "Platform".into(),
        takes_down: vec![primary],
        ..Default::default()
    }
}

#[test]
fn an_answer_names_the_primary_that_no_failover_moves() {
    let told = now("released", Some(&with_primary(false)));
    let warning = "WARNING: db-0 holds the primary of orders-db, which is NOT moved and goes down\n";
    assert!(
        told.starts_with("released: e-1 Reboot of db-0 by Platform: preparing\n") && told.ends_with(warning),
        "{told}"
    );
    assert!(!now("released", Some(&with_primary(true))).contains("WARNING"), "its failover is still to run");
}

#[test]
fn the_end_of_a_pause_names_the_events_that_go_on() {
    assert_eq!(resumed(&shown::ResumeResponse::default()), "approvals are resumed\n");
    let told = resumed(&shown::ResumeResponse { events: vec![with_primary(false)] });
    let wanted =
        "approvals are resumed\ngoes on: e-1 Reboot of db-0 by Platform: preparing\nWARNING: db-0 holds the primary";
    assert!(told.starts_with(wanted), "{told}");
    let held = shown::Event { hold: Some(shown::Pause::default()), ..with_primary(true) };
    let told = resumed(&shown::ResumeResponse { events: vec![held] });
    assert!(told.ends_with("\nis still held: e-1 Reboot of db-0 by Platform: preparing\n"), "{told}");
}

#[test]
fn an_end_is_a_span_or_a_time() {
    let end_at = |when| Ok(End { when: Some(when) });
    assert_eq!(end("2h"), end_at(When::AfterMs(7_200_000)));
    assert_eq!(end("1h 30m"), end_at(When::AfterMs(5_400_000)));
    assert_eq!(end("2026-01-31T13:00:00+01:00"), end_at(When::At("2026-01-31T12:00:00.000Z".into())));
    for bad in ["", "0s", "tomorrow", "12", "2026-01-31"] {
        assert!(end(bad).is_err(), "{bad:?}");
    }
}
