//! The judge finds each fault: a record without fault, and the findings when the record has a fault.

use allclear::wire::pb::allclear::operator::v1::{Approval, Event, Hook, Step};

use super::judge::judge;
use super::record::{Announced, Duty, Halt, Post, Record, Run, Sighting, Strike};

fn at(second: i64) -> String {
    format!("2026-01-01T00:00:{second:02}.000Z")
}

fn run(phase: &str, attempt: u32, began: i64) -> Run {
    let word = str::to_owned;
    let attempt = format!("E.{attempt}");
    Run {
        event: word("E"),
        vm: word("db-0"),
        workload: word("database"),
        phase: word(phase),
        intent: word("run"),
        pid: attempt.clone(),
        attempt,
        on: word("db-0"),
        began,
        ended: Some((began + 100, 0)),
    }
}

fn claim(by: &str, number: u32, claimed: i64, outcome: &str) -> Approval {
    Approval {
        attempt: format!("E.{number}"),
        approver: by.into(),
        reason: "prepared".into(),
        outcome: Some(outcome.into()),
        detail: None,
        claimed_at: at(claimed),
        at: at(claimed + 1),
    }
}

fn announced(id: &str, vm: &str, from: i64, accepted: i64, ended: i64) -> Announced {
    Announced {
        id: id.into(),
        kind: "Reboot".into(),
        is_users: true,
        vms: vec![vm.into()],
        duration_s: -1,
        at: from,
        accepted: Some((accepted, "db-1".into())),
        ended: Some(ended),
        is_calm: true,
    }
}

/// A record without fault: prepared, approved once, over and restored.
fn fine() -> Record {
    let hook = |phase: &str, number: u32| Hook {
        workload: "database".into(),
        vm: "db-0".into(),
        phase: phase.into(),
        attempt: format!("E.{number}"),
        intent: "run".into(),
        on: "db-0".into(),
        outcome: Some("done".into()),
        ..Hook::default()
    };
    let event = Event {
        id: "E".into(),
        stage: "closed".into(),
        hooks: vec![hook("drain", 1), hook("restore", 3)],
        approvals: vec![claim("db-1", 2, 2, "accepted")],
        ..Event::default()
    };
    let sees = |answered, stage: &str| {
        let events = vec![Event { stage: stage.into(), ..event.clone() }];
        Sighting { by: "db-2".into(), answered, events }
    };
    Record {
        vms: ["db-0", "db-1", "db-2"].map(str::to_owned).into(),
        duties: vec![Duty { workload: "database", phase: "drain", holds: true }],
        max_unavailable: 1,
        user_budget_ms: 5_000,
        claim_lease_ms: 5_000,
        events: vec![announced("E", "db-0", 1_000, 2_000, 5_000)],
        posts: vec![Post { at: 2_000, vm: "db-1".into(), event: "E".into() }],
        runs: vec![run("drain", 1, 1_500), run("restore", 3, 6_000)],
        sightings: vec![sees(1_500, "preparing"), sees(6_500, "restoring"), sees(7_000, "closed")],
        stories: ["db-0", "db-1"].map(|by| (by.to_owned(), vec![event.clone()])).into(),
        strikes: Vec::new(),
        halts: Vec::new(),
        deaths: Vec::new(),
    }
}

/// Changes the event in every story.
fn retell(record: &mut Record, change: impl Fn(&mut Event)) {
    record.stories.iter_mut().for_each(|(_, events)| change(&mut events[0]));
}

/// The findings after this change to a record without fault.
fn found(change: impl FnOnce(&mut Record)) -> Vec<&'static str> {
    let mut record = fine();
    assert_eq!(judge(&record), [], "the record is not without fault");
    change(&mut record);
    let mut found: Vec<_> = judge(&record).into_iter().map(|finding| finding.property).collect();
    found.dedup();
    found
}

fn because(record: &mut Record, reason: &str) {
    retell(record, |event| event.approvals[0].reason = reason.into());
}

#[test]
fn a_post_before_a_hook_has_ended_well_breaks_s1() {
    assert_eq!(found(|record| record.runs[0].ended = Some((1_600, 1))), ["S1", "S7"], "it failed and counts as done");
    assert_eq!(found(|record| record.runs[0].ended = Some((2_500, 0))), ["S1"], "it ended later");
    assert_eq!(found(|record| record.runs[0].ended = None), ["S1", "S7"], "it was killed and counts as done");
    assert_eq!(found(|record| because(record, "nothing_to_prepare")), ["S1"]);
    assert_eq!(found(|record| because(record, "operator")), ["S1"], "there was none");
}

#[test]
fn a_budget_that_is_not_spent_or_not_there_breaks_s1() {
    let late = |record: &mut Record| {
        because(record, "budget_spent");
        record.runs[0].ended = None;
        retell(record, |event| event.hooks[0].outcome = Some("unknown".into()));
    };
    assert_eq!(found(late), ["S1"]);
    let spent = |record: &mut Record| {
        late(record);
        record.posts[0].at = 6_100;
    };
    assert_eq!(found(spent), [""; 0]);
    let jumps = |record: &mut Record| {
        late(record);
        let what = String::new();
        record.strikes.push(Strike { kind: "clock jumps", what, from: 1_200, to: 1_300, took_effect: true });
    };
    assert_eq!(found(jumps), [""; 0], "of whose clock it is not known");
    let platforms = |record: &mut Record| {
        spent(record);
        record.events[0].is_users = false;
    };
    assert_eq!(found(platforms), ["S1"]);
}

#[test]
fn a_hook_that_is_not_waited_for_is_excused_for_a_users_event_only() {
    let waived = |record: &mut Record| {
        record.runs[0].ended = None;
        retell(record, |event| {
            event.hooks[0].outcome = Some("unknown".into());
            let what = "drain of database on db-0: waived, unreachable".into();
            event.timeline.push(Step { at: at(1), what, ..Step::default() });
        });
    };
    assert_eq!(found(waived), [""; 0]);
    let platforms = |record: &mut Record| {
        waived(record);
        record.events[0].is_users = false;
    };
    assert_eq!(found(platforms), ["S1"]);
}

#[test]
fn a_post_too_many_breaks_s2() {
    let again = |record: &mut Record| {
        record.posts.push(Post { at: 9_000, ..record.posts[0].clone() });
        record.events[0].is_calm = false;
        retell(record, |event| {
            event.approvals[0].outcome = Some("unknown".into());
            event.approvals.push(claim("db-1", 4, 8, "accepted"));
        });
    };
    assert_eq!(found(again), [""; 0], "a further claim, when the first was over");
    let calm = |record: &mut Record| {
        again(record);
        record.events[0].is_calm = true;
    };
    assert_eq!(found(calm), ["S2"]);
    let after_the_first = |record: &mut Record| {
        again(record);
        retell(record, |event| event.approvals[0].outcome = Some("accepted".into()));
    };
    assert_eq!(found(after_the_first), ["S2"]);
    let too_soon = |record: &mut Record| {
        again(record);
        retell(record, |event| event.approvals[0].at = at(30));
    };
    assert_eq!(found(too_soon), [""; 0], "its lease was over");
    let within_the_lease = |record: &mut Record| {
        too_soon(record);
        retell(record, |event| event.approvals[0].claimed_at = at(5));
    };
    assert_eq!(found(within_the_lease), ["S2"]);
}

#[test]
fn a_post_for_what_was_not_announced_to_us_breaks_s2() {
    assert_eq!(found(|record| record.events[0].vms = vec!["elsewhere".into()]), ["S2"]);
    let other = Post { at: 3_000, vm: "db-1".into(), event: "F".into() };
    assert_eq!(found(|record| record.posts.push(other)), ["S2", "S3"]);
}

#[test]
fn a_post_that_the_log_does_not_know_breaks_s3() {
    assert_eq!(found(|record| record.posts[0].vm = "db-2".into()), ["S3"]);
    assert_eq!(found(|record| retell(record, |event| event.approvals[0].outcome = Some("withdrawn".into()))), ["S3"]);
}

#[test]
fn an_approval_while_another_member_is_away_breaks_s4() {
    let second = |accepted: i64| {
        move |record: &mut Record| {
            let mut second = announced("F", "db-2", 1_000, accepted, 9_000);
            second.is_calm = false;
            record.events.push(second);
        }
    };
    assert_eq!(found(second(5_500)), ["S4"], "it is over, and not put back");
    assert_eq!(found(second(6_200)), [""; 0]);
    assert_eq!(found(second(1_900)), ["S4"], "the other way round");
    let spare = |record: &mut Record| {
        second(5_500)(record);
        record.max_unavailable = 2;
    };
    assert_eq!(found(spare), [""; 0]);
    let never_back = |record: &mut Record| {
        second(8_000)(record);
        record.runs.truncate(1);
        retell(record, |event| event.hooks.truncate(1));
    };
    assert_eq!(found(never_back), ["S4", "S8"]);
}

#[test]
fn an_approval_without_a_quorum_breaks_s5() {
    let alone = |record: &mut Record| {
        retell(record, |event| {
            event.approvals[0].attempt = "E/alone-db-1-2000".into();
            event.approvals[0].reason = "takeover".into();
        });
        // The earlier sightings are of another claim.
        record.sightings.clear();
    };
    assert_eq!(found(alone), ["S5"]);
}

#[test]
fn the_reason_of_a_post_is_told_by_the_order_of_those_of_one_replica() {
    // The reply to the first post was lost, and the quorum assigned the event to the same replica again.
    let both = |record: &mut Record| {
        retell(record, |event| {
            event.approvals[0].outcome = Some("unknown".into());
            event.approvals.push(claim("db-1", 4, 8, "accepted"));
        });
        record.posts.push(Post { at: 9_000, ..record.posts[0].clone() });
        record.events[0].is_calm = false;
        record.events[0].ended = Some(9_500);
        record.runs[1] = run("restore", 3, 9_600);
        record.sightings.clear();
    };
    assert_eq!(found(both), [""; 0]);
    let first_too_early = |record: &mut Record| {
        both(record);
        because(record, "budget_spent");
    };
    assert_eq!(found(first_too_early), ["S1"]);
    let one_was_lost = |record: &mut Record| {
        first_too_early(record);
        record.posts.truncate(1);
    };
    assert_eq!(found(one_was_lost), [""; 0], "it may have been the other");
}

#[test]
fn an_approval_of_what_is_held_is_found() {
    let paused = |record: &mut Record| {
        record.halts.push(Halt { event: None, from: 1_500, to: 4_000, spared: Vec::new() });
    };
    assert_eq!(found(paused), ["held"]);
    let change = |change: fn(&mut Halt)| {
        move |record: &mut Record| {
            paused(record);
            change(&mut record.halts[0]);
        }
    };
    assert_eq!(found(change(|halt| halt.event = Some("E".into()))), ["held"]);
    assert_eq!(found(change(|halt| halt.event = Some("F".into()))), [""; 0], "another one is held");
    assert_eq!(found(change(|halt| halt.spared.push("E".into()))), [""; 0], "it was too late");
    assert_eq!(found(change(|halt| halt.from = 2_500)), [""; 0], "nobody was told yet");
    assert_eq!(found(change(|halt| halt.to = 1_900)), [""; 0], "it was over");
}

#[test]
fn what_is_taken_for_over_while_it_is_listed_breaks_s6() {
    assert_eq!(found(|record| record.events[0].ended = Some(6_050)), ["S6"], "put back");
    assert_eq!(found(|record| record.sightings[0].events[0].stage = "closed".into()), ["S6"], "closed");
}

#[test]
fn an_attempt_of_two_replicas_hooks_side_by_side_and_a_stranger_outcome_break_s7() {
    let elsewhere = Run { on: "db-1".into(), began: 1_700, ended: Some((1_800, 0)), ..run("drain", 1, 0) };
    assert_eq!(found(|record| record.runs.insert(1, elsewhere)), ["S7"]);
    assert_eq!(found(|record| record.runs.insert(1, run("drain", 4, 1_550))), ["S7"]);
    assert_eq!(found(|record| record.runs[0].attempt = "E.9".into()), ["S7"]);
}

#[test]
fn what_is_put_back_untouched_or_left_behind_breaks_s8() {
    let untouched = |record: &mut Record| {
        record.runs.remove(0);
        because(record, "takeover");
        retell(record, |event| drop(event.hooks.remove(0)));
        record.sightings.clear();
    };
    assert_eq!(found(untouched), ["S8"]);
    let stopped = |record: &mut Record| {
        untouched(record);
        retell(record, |event| {
            let outcome = Some("cancelled".into());
            event.hooks.push(Hook {
                workload: "other".into(),
                attempt: "E.9".into(),
                outcome,
                ..event.hooks[0].clone()
            });
        });
    };
    assert_eq!(found(stopped), [""; 0], "the member left again during its return");
    let left = |record: &mut Record| {
        record.runs.truncate(1);
        retell(record, |event| event.hooks.truncate(1));
    };
    assert_eq!(found(left), ["S8"]);
}

#[test]
fn stories_that_differ_are_found() {
    assert_eq!(found(|record| record.stories[1].1[0].description = "another".into()), ["one story"]);
    assert_eq!(found(|record| record.stories[1].1.clear()), ["one story"]);
    assert_eq!(found(|record| record.sightings[1].events[0].hooks[0].on = "db-1".into()), ["one story"]);
    let taken_back = |record: &mut Record| record.sightings[1].events[0].hooks[0].outcome = Some("failed".into());
    assert_eq!(found(taken_back), ["one story"]);
}

#[test]
fn what_is_not_closed_in_the_end_is_found() {
    assert_eq!(found(|record| retell(record, |event| event.stage = "started".into())), ["L1"]);
    assert_eq!(found(|record| record.deaths.push("db-1 ended".into())), ["alive"]);
    let unseen = |record: &mut Record| {
        let never = Announced { accepted: None, ..announced("F", "db-2", 1_000, 0, 9_000) };
        record.events.push(never);
    };
    assert_eq!(found(unseen), ["L1", "L3"]);
}

#[test]
fn an_attempt_without_an_end_is_found() {
    assert_eq!(found(|record| retell(record, |event| event.hooks[0].outcome = None)), ["L2"]);
    assert_eq!(found(|record| retell(record, |event| event.hooks[1].outcome = None)), [""; 0], "it was given up");
}

#[test]
fn what_a_user_asks_for_and_nobody_approves_is_found() {
    let left = |record: &mut Record| {
        record.posts.clear();
        record.events[0].accepted = None;
        retell(record, |event| event.approvals.clear());
        record.sightings.clear();
    };
    assert_eq!(found(left), ["L3"]);
    let platforms = |record: &mut Record| {
        left(record);
        record.events[0].is_users = false;
    };
    assert_eq!(found(platforms), [""; 0]);
    let disturbed = |record: &mut Record| {
        left(record);
        record.events[0].is_calm = false;
    };
    assert_eq!(found(disturbed), [""; 0]);
    let failed = |record: &mut Record| {
        left(record);
        record.runs[0].ended = Some((1_600, 1));
        retell(record, |event| event.hooks[0].outcome = Some("failed".into()));
    };
    assert_eq!(found(failed), [""; 0], "a hook that failed holds it");
}
