//! Deadlines and cancelling reach every process of a hook.

use std::time::Duration;

use allclear::workloads::Ended;

use crate::bench::{ATTEMPT, Bench, end, lives, task, within};

/// A grandchild that will not hear of SIGTERM.
const STUBBORN: &str = r#"
    sh -c 'trap "" TERM; echo $$ > $BENCH/grandchild; while :; do sleep 0.05; done' &
    wait"#;

#[tokio::test]
async fn at_the_deadline_a_hook_is_asked_to_end_and_a_late_success_does_not_count() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut task = task();
    task.deadline = within(Duration::from_secs(2));
    runner.run(&task, &bench.shell("trap 'echo TERM > $BENCH/asked; exit 0' TERM; while :; do sleep 0.05; done"));
    assert_eq!(end(&mut reports).await, Ended::TimedOut);
    assert_eq!(bench.line("asked").await, "TERM");
}

#[tokio::test]
async fn at_the_deadline_no_grandchild_stays_behind() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut task = task();
    task.deadline = within(Duration::from_secs(2));
    runner.run(&task, &bench.shell(STUBBORN));
    let grandchild = bench.process("grandchild").await;
    assert_eq!(end(&mut reports).await, Ended::TimedOut);
    assert!(!lives(grandchild));
}

#[tokio::test]
async fn a_deadline_in_the_past_starts_nothing() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut task = task();
    task.deadline = within(Duration::ZERO);
    runner.run(&task, &bench.shell("echo ran > $BENCH/ran"));
    assert_eq!(end(&mut reports).await, Ended::TimedOut);
    assert!(!bench.path("ran").exists());
}

#[tokio::test]
async fn cancelling_ends_every_process_of_a_hook() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell(STUBBORN));
    let grandchild = bench.process("grandchild").await;
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, Ended::Cancelled);
    assert!(!lives(grandchild));
}

#[tokio::test]
async fn what_is_cancelled_at_once_is_cancelled_whether_it_had_begun_or_not() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell("exec sleep 60"));
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, Ended::Cancelled);
}

#[tokio::test]
async fn cancelling_is_always_answered() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, Ended::Cancelled, "it was never begun");
    runner.run(&task(), &bench.shell("exit 0"));
    assert_eq!(end(&mut reports).await, Ended::Done);
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, Ended::Done, "it had ended by itself");
}
