//! The rules of sessions, by a clock that advances when every task waits.

mod registrations;

use tokio::time::{sleep, timeout};

use super::test_bench::*;
use super::*;
use crate::hooks::command::clock;
use crate::hooks::{AttemptState, Deadline, HookUpdate};
use allclear_core::model::state::WORKLOAD_LIMIT;
use allclear_core::model::workload::{Condition, OnAbsent};

#[tokio::test(start_paused = true)]
async fn an_attempt_is_sent_once_and_its_outcome_is_kept_until_the_log_has_it() {
    let mut bench = SessionFixture::open();
    let (visit, mut told) = bench.dial(greeting("1"));
    bench.run("a");
    bench.run("a");
    assert_eq!(words(&mut told), ["step"]);
    bench.done(&visit, "a");
    bench.sessions.report(&visit, "a", FromWorkload::Ended(HookOutcome::Cancelled)).unwrap();
    assert_eq!(bench.end().await, HookOutcome::Done);
    bench.run("a");
    assert_eq!((bench.end().await, words(&mut told)), (HookOutcome::Done, vec![]), "told again, and not run again");
    bench.sessions.forget("a");
    assert_eq!((words(&mut told), bench.sessions.known("a")), (vec!["acknowledged"], None));
}

#[tokio::test(start_paused = true)]
async fn who_comes_back_within_the_lease_goes_on_with_what_it_knows() {
    let mut bench = SessionFixture::open();
    let (visit, told) = bench.dial(greeting("1"));
    bench.run("a");
    bench.run("b");
    drop(told);
    bench.sessions.leave(&visit);
    sleep(9 * SECOND).await;
    bench.run("c");
    // Another process, which read the journal of the first: b ended meanwhile.
    let mut again = knowing("2", "a", None);
    again.known.insert("b".into(), Some(HookOutcome::NotApplicable));
    let (visit, mut told) = bench.dial(again);
    assert_eq!(words(&mut told), ["deadline", "step"], "a goes on, and c was never sent");
    assert_eq!(bench.end().await, HookOutcome::NotApplicable);
    bench.done(&visit, "a");
    assert_eq!(bench.end().await, HookOutcome::Done);
}

#[tokio::test(start_paused = true)]
async fn what_a_workload_was_sent_and_does_not_know_any_more_is_lost() {
    let mut bench = SessionFixture::open();
    let (_, told) = bench.dial(greeting("1"));
    bench.run("a");
    drop(told);
    let (_, mut told) = bench.dial(greeting("2"));
    assert!(lost(&bench.end().await));
    assert_eq!(words(&mut told), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn after_the_lease_what_was_sent_is_lost_and_what_was_not_waits() {
    let mut bench = SessionFixture::open();
    let (visit, told) = bench.dial(greeting("1"));
    bench.run("a");
    drop(told);
    bench.run("b");
    assert!(bench.is_connected());
    assert!(lost(&bench.end().await));
    assert!(!bench.is_connected());
    assert_eq!(bench.sessions.known("b"), Some(AttemptState::Running));
    assert_eq!(bench.sessions.hear(&visit, None), Err(SessionClosed));
    let (_, mut told) = bench.dial(greeting("2"));
    assert_eq!(words(&mut told), ["step"]);
    assert!(bench.is_connected());
}

#[tokio::test(start_paused = true)]
async fn who_says_goodbye_is_disconnected_at_once_and_its_attempts_keep_the_lease() {
    let mut bench = SessionFixture::open();
    let (visit, _line) = bench.dial(greeting("1"));
    bench.run("a");
    let mut changes = bench.sessions.changes();
    bench.sessions.say_goodbye(&visit).unwrap();
    assert!(!bench.is_connected() && changes.has_changed().unwrap());
    assert_eq!(bench.sessions.hear(&visit, None), Err(SessionClosed));
    sleep(9 * SECOND).await;
    assert_eq!(bench.sessions.known("a"), Some(AttemptState::Running));
    let (visit, mut told) = bench.dial(knowing("2", "a", None));
    assert!(bench.is_connected());
    assert_eq!(words(&mut told), ["deadline"], "the next process goes on");
    bench.sessions.say_goodbye(&visit).unwrap();
    assert!(timeout(9 * SECOND, bench.end()).await.is_err());
    let left = "the workload left while the hook ran, and did not connect again within its lease";
    assert_eq!(bench.end().await, HookOutcome::Lost(left.into()));
    changes.mark_unchanged();
    assert_eq!(bench.sessions.say_goodbye(&visit), Err(SessionClosed));
    assert!(!changes.has_changed().unwrap(), "the session was over already");
}

#[tokio::test(start_paused = true)]
async fn at_the_deadline_it_is_told_to_stop_and_then_its_time_is_over() {
    let mut bench = SessionFixture::open();
    let (visit, mut told) = bench.dial(greeting("1"));
    bench.run("a");
    bench.beat(&visit, 63 * SECOND).await;
    assert_eq!(words(&mut told), ["step", "cancel"]);
    assert_eq!(bench.sessions.known("a"), Some(AttemptState::Running));
    bench.beat(&visit, 3 * SECOND).await;
    assert_eq!(bench.end().await, HookOutcome::TimedOut);
    bench.done(&visit, "a");
    bench.sessions.forget("a");
    assert_eq!(bench.sessions.claims(), [(workload("db").name, "a".to_owned(), Some(HookOutcome::Done))], "it is late");
    bench.sessions.dismiss_claim(&workload("db").name, "a");
    assert_eq!(words(&mut told), ["acknowledged"], "it need not repeat what counts no more");
}

#[tokio::test(start_paused = true)]
async fn more_time_moves_the_deadline() {
    let mut bench = SessionFixture::open();
    let (visit, mut told) = bench.dial(greeting("1"));
    bench.run("a");
    bench.sessions.report(&visit, "a", FromWorkload::MoreTime(90 * SECOND)).unwrap();
    bench.sessions.report(&visit, "a", FromWorkload::MoreTime(91 * SECOND)).unwrap();
    assert_eq!(bench.reports.recv().await.unwrap().news, HookUpdate::MoreTime { needs: 90 * SECOND });
    assert!(bench.reports.try_recv().is_err(), "asked too often");
    for _ in 0..2 {
        bench.sessions.change_deadline("a", Timestamp(1), Deadline::within(90 * SECOND, clock::now()));
    }
    assert_eq!(words(&mut told), ["step", "deadline", "deadline"], "the second question is answered, too");
    bench.beat(&visit, 80 * SECOND).await;
    assert_eq!(words(&mut told), [""; 0]);
    bench.beat(&visit, 11 * SECOND).await;
    assert_eq!(words(&mut told), ["cancel"]);
}

#[tokio::test(start_paused = true)]
async fn a_workload_that_is_told_to_stop_says_how_it_ended_or_nobody_knows() {
    let mut bench = SessionFixture::open();
    let (visit, mut told) = bench.dial(greeting("1"));
    for attempt in ["a", "b"] {
        bench.run(attempt);
        bench.sessions.cancel(attempt);
        bench.sessions.cancel(attempt);
    }
    assert_eq!(words(&mut told), ["step", "cancel", "step", "cancel"]);
    bench.sessions.report(&visit, "b", FromWorkload::Ended(HookOutcome::Cancelled)).unwrap();
    assert_eq!(bench.end().await, HookOutcome::Cancelled);
    assert!(matches!(bench.end().await, HookOutcome::Unknown(_)));
}

#[tokio::test(start_paused = true)]
async fn who_is_waited_for_is_told_and_so_is_that_it_came() {
    let mut bench = SessionFixture::open();
    bench.sessions.expect([(&workload("db"), Condition { connected: false, ..Condition::default() })]);
    bench.run("a");
    let HookUpdate::Progress { text: Some(text), .. } = bench.reports.recv().await.unwrap().news else { panic!() };
    assert_eq!(text, "waits for db to connect");
    let (visit, mut told) = bench.dial(greeting("1"));
    assert_eq!(words(&mut told), ["step"]);
    let HookUpdate::Progress { text: Some(text), .. } = bench.reports.recv().await.unwrap().news else { panic!() };
    assert_eq!(text, "sent to the workload");
    bench.done(&visit, "a");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_cancelled_at_once_and_blocked_when_its_time_is_over() {
    let mut bench = SessionFixture::open();
    bench.run("a");
    bench.sessions.cancel("a");
    assert_eq!(bench.end().await, HookOutcome::Cancelled);
    bench.run("b");
    assert_eq!(bench.end().await, HookOutcome::Blocked("the workload db did not connect in time".into()));
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_life_may_have_sent_is_taken_up_or_lost_and_never_sent() {
    for (greeting, expected) in [
        (greeting("1"), Some("lost")),
        (knowing("1", "a", Some(HookOutcome::Done)), Some("done")),
        (knowing("1", "a", None), None),
    ] {
        for dials_first in [true, false] {
            let mut bench = SessionFixture::open();
            bench.sessions.expect([(&workload("db"), Condition::default())]);
            let mut line = None;
            if dials_first {
                line = Some(bench.dial(greeting.clone()));
            }
            bench.sessions.run(&task("a"), terms(true));
            let (visit, mut told) = line.unwrap_or_else(|| bench.dial(greeting.clone()));
            match expected {
                Some("lost") => assert!(lost(&bench.end().await)),
                Some(_) => assert_eq!(bench.end().await, HookOutcome::Done),
                None => bench.done(&visit, "a"),
            }
            assert_eq!(words(&mut told), if expected.is_none() { vec!["deadline"] } else { vec![] });
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_an_earlier_life_sent_to_one_that_does_not_come_back_is_lost() {
    let mut bench = SessionFixture::open();
    bench.sessions.expect([(&workload("db"), Condition::default())]);
    bench.sessions.run(&task("a"), terms(true));
    assert!(timeout(29 * SECOND, bench.end()).await.is_err());
    assert!(lost(&bench.end().await));
    bench.sessions.run(&task("b"), terms(true));
    assert!(lost(&bench.end().await));
}

#[tokio::test(start_paused = true)]
async fn nobody_speaks_for_another_workload() {
    let mut bench = SessionFixture::open();
    let (_, mut told) = bench.dial(greeting("1"));
    bench.run("a");
    let other = Hello { workload: workload("other"), ..knowing("1", "a", Some(HookOutcome::Done)) };
    let (visit, _line) = bench.dial(other);
    bench.sessions.report(&visit, "a", FromWorkload::Ended(HookOutcome::Done)).unwrap();
    assert!(timeout(5 * SECOND, bench.end()).await.is_err());
    assert_eq!(bench.sessions.known("a"), Some(AttemptState::Running));
    assert_eq!(bench.sessions.claims(), [(workload("other").name, "a".to_owned(), Some(HookOutcome::Done))]);
    bench.sessions.dismiss_claim(&workload("other").name, "a");
    assert_eq!((bench.sessions.claims(), words(&mut told)), (vec![], vec!["step"]));
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_once_a_second_and_the_last_of_it_is_not_lost() {
    let mut bench = SessionFixture::open();
    let (visit, _line) = bench.dial(greeting("1"));
    bench.run("a");
    for text in (0..100).map(|number: u8| number.to_string()) {
        bench.sessions.report(&visit, "a", FromWorkload::Progress { text, expected_end_in: None }).unwrap();
    }
    let mut texts = Vec::new();
    while let Ok(Some(report)) = timeout(3 * SECOND, bench.reports.recv()).await {
        let HookUpdate::Progress { text: Some(text), .. } = report.news else { continue };
        texts.push(text);
    }
    assert_eq!(texts, ["0", "99"]);
}

#[tokio::test(start_paused = true)]
async fn one_that_does_not_read_is_disconnected_and_may_come_back() {
    let bench = SessionFixture::open();
    let (visit, mut told) = bench.dial(greeting("1"));
    for number in 0..=MAX_UNREAD {
        bench.run(&number.to_string());
    }
    assert_eq!(bench.sessions.hear(&visit, None), Err(SessionClosed));
    assert_eq!(words(&mut told).len(), MAX_UNREAD);
    let known = (0..MAX_UNREAD).map(|number| (number.to_string(), None)).collect();
    let (_, mut told) = bench.dial(Hello { known, ..greeting("1") });
    assert!(words(&mut told).contains(&"step"));
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_one_that_others_stand_in_for_is_given_back() {
    let mut bench = SessionFixture::open();
    let mut stands = greeting("1");
    stands.workload.on_absent = OnAbsent::Command;
    let (_, told) = bench.dial(stands);
    drop(told);
    bench.run("a");
    assert_eq!(bench.end().await, HookOutcome::Blocked("db is not connected".into()));
    bench.run("E.2");
    assert_eq!(
        bench.end().await,
        HookOutcome::Blocked("db is not connected".into()),
        "whom the log does not know to be away"
    );
}

#[tokio::test(start_paused = true)]
async fn the_token_of_a_session_is_not_passed_on() {
    let mut bench = SessionFixture::open();
    let (visit, _line) = bench.dial(greeting("1"));
    bench.run("a");
    let (shown, text) = (visit.shown(), format!("as {}", visit.shown()));
    bench.sessions.report(&visit, "a", FromWorkload::Progress { text: text.clone(), expected_end_in: None }).unwrap();
    let progress = format!("{:?}", bench.reports.recv().await.unwrap().news);
    assert!(progress.contains("as ***.db") && !progress.contains(shown.split('.').next().unwrap()), "{progress}");
    bench.sessions.report(&visit, "a", FromWorkload::Ended(HookOutcome::Failed(text))).unwrap();
    assert_eq!(bench.end().await, HookOutcome::Failed("as ***.db".to_owned()));
}
