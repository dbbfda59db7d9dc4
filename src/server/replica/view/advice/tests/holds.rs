//! The offered holds, and the way to move a primary by hand.

use super::*;

#[test]
fn a_hold_is_offered_up_to_the_end_of_the_notice_and_not_after_it() {
    assert_eq!(offered_when("deciding", false, Some(60_000))[0], "allclear hold e --until 1970-01-01T00:01:00.000Z");
    assert_eq!(offered_when("deciding", false, None)[0], "allclear hold e --until 2h");
    assert_eq!(offered_when("deciding", false, Some(-1)), [""; 0]);
}

#[test]
fn a_hold_tells_that_hooks_still_run_in_the_last_call() {
    let offered = |treatment: &str| {
        told(shown::Blocker { code: "deciding".into(), ..Default::default() }, |event| {
            (event.treatment, event.status) = (Some(treatment.into()), Some("Scheduled".into()));
        })
    };
    let hold = "the members stay in service, or return; hooks that are left still run shortly before the notice ends, \
                unless you add --no-hooks\nallclear hold e --until 2h";
    let pause = "; hooks that are left still run shortly before the notice of an event ends\nallclear pause";
    let prepared = offered("prepare");
    assert!(prepared.contains(hold) && prepared.contains(pause), "{prepared}");
    assert!(!offered("approve").contains("hooks that are left"), "{}", offered("approve"));
}

#[test]
fn a_blind_cluster_is_first_sent_to_move_the_primary_without_its_own_failover_beside() {
    let offered = |change: &dyn Fn(&mut shown::Event)| {
        told(shown::Blocker { code: "no_healthy_channel".into(), ..Default::default() }, |event| change(event))
    };
    let by_hand = "db-0 holds the primary of orders-db: move the primary by hand, once no hook of the event runs";
    let first = offered(&|_| {});
    assert!(first.starts_with(&format!("{by_hand}. Before, hold the event and its hooks")), "{first}");
    assert!(first.contains("when an endpoint works again\nallclear hold e --until 2h --no-hooks --reason"), "{first}");
    let held = offered(&|event| event.hold = Some(shown::Pause { no_hooks: true, ..Default::default() }));
    assert!(held.starts_with(&format!("{by_hand}; then look which")) && !held.contains("--no-hooks"), "{held}");
    let late = offered(&|event| event.not_before = Some(rfc3339(Timestamp(-1))));
    assert!(late.starts_with(&format!("{by_hand}; then look which")) && !late.contains("--no-hooks"), "{late}");
    // While the last document counts, the failover still begins by itself.
    let is_left = |event: &mut shown::Event| {
        event.status = Some("Scheduled".into());
        event.takes_down[0].failover_left = true;
    };
    assert!(!offered(&is_left).contains("by hand, once"), "{}", offered(&is_left));
    assert!(!offered(&|event| event.takes_down.clear()).contains("by hand, once"));
}
