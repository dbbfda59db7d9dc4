//! Deadlines and cancellation reach every process of a hook, except processes that the hook detaches.

use std::time::Duration;

use allclear::hooks::{HookCommand, HookOutcome};

use crate::workloads::bench::{ATTEMPT, Bench, end, lives, processes, task, until, within};

/// A grandchild process that ignores SIGTERM.
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
    assert_eq!(end(&mut reports).await, HookOutcome::TimedOut);
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
    assert_eq!(end(&mut reports).await, HookOutcome::TimedOut);
    assert!(!lives(grandchild));
}

#[tokio::test]
async fn a_deadline_in_the_past_starts_nothing() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut task = task();
    task.deadline = within(Duration::ZERO);
    runner.run(&task, &bench.shell("echo ran > $BENCH/ran"));
    assert_eq!(end(&mut reports).await, HookOutcome::TimedOut);
    assert!(!bench.path("ran").exists());
}

#[tokio::test]
async fn cancelling_ends_every_process_of_a_hook() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell(STUBBORN));
    let grandchild = bench.process("grandchild").await;
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled);
    assert!(!lives(grandchild));
}

#[tokio::test]
async fn what_is_cancelled_at_once_is_cancelled_whether_it_had_begun_or_not() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell("exec sleep 60"));
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled);
}

#[tokio::test]
async fn cancelling_is_always_answered() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled, "it was never begun");
    runner.run(&task(), &bench.shell("exit 0"));
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Done, "it had ended by itself");
}

#[tokio::test]
async fn what_went_to_another_group_is_ended_with_its_hook() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut hook =
        bench.shell("set -m; (trap '' TERM; echo $BASHPID > $BENCH/astray; while :; do sleep 0.05; done) & wait");
    hook.argv[0] = "/bin/bash".into();
    runner.run(&task(), &hook);
    let astray = bench.process("astray").await;
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled);
    assert!(!lives(astray));
}

/// What is left would go on beside the next attempt. A hook that has done its work may leave a server running.
#[tokio::test]
async fn what_an_unsuccessful_hook_left_running_is_ended_before_its_outcome_is_told() {
    for end_of_the_hook in ["exit 1", "exit 12", "exit 13", "exit 75", "kill -KILL $$"] {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        let mut hook = bench.shell(&format!(
            "sleep 60 & echo $! > $BENCH/child; set -m; sleep 60 & echo $! > $BENCH/astray; {end_of_the_hook}"
        ));
        hook.argv[0] = "/bin/bash".into();
        runner.run(&task(), &hook);
        let ended = end(&mut reports).await;
        for name in ["child", "astray"] {
            assert!(!lives(bench.process(name).await), "{name} after {end_of_the_hook}: {ended}");
        }
    }
}

#[tokio::test]
async fn what_a_failed_hook_left_running_is_killed_if_it_ignores_sigterm() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let script = STUBBORN.replace("wait", "until [ -s $BENCH/grandchild ]; do sleep 0.01; done; exit 3");
    runner.run(&task(), &bench.shell(&script));
    assert_eq!(end(&mut reports).await, HookOutcome::Failed("exit status 3, nothing on standard error".into()));
    assert!(!lives(bench.process("grandchild").await));
}

/// A database started by a hook does this, too. Such a process cannot be distinguished from a hook meant to stay.
#[tokio::test]
async fn what_began_a_session_of_its_own_outlives_its_hook() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell("setsid sh -c 'echo $$ > $BENCH/daemon; exec sleep 60' & exec sleep 60"));
    let daemon = bench.process("daemon").await;
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled);
    assert!(lives(daemon));
}

/// The bomb uses all processes allowed to its user and ignores SIGTERM, and each process may move to a group of its
/// own.
const BOMB: &str = "$SIG{TERM} = 'IGNORE'; \
     while (1) { defined(fork()) or select(undef, undef, undef, 0.05); setpgrp if $ENV{ASTRAY}; }";

#[tokio::test]
async fn a_hook_that_forks_without_end_is_ended_with_all_of_it() {
    if !crate::left_out::is_root() {
        return;
    }
    for astray in ["", "1"] {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        let folder = bench.folder.path().to_str().unwrap();
        let argv = ["/usr/bin/prlimit", "--nproc=150", "/usr/bin/perl", "-e", BOMB, folder].map(str::to_owned).into();
        let mut hook = HookCommand { argv, user: Some("nobody".into()), ..bench.shell("") };
        hook.env.insert("ASTRAY".into(), astray.into());
        runner.run(&task(), &hook);
        until(|| processes(folder).len() > 100).await;
        runner.cancel(ATTEMPT);
        assert_eq!(end(&mut reports).await, HookOutcome::Cancelled, "astray: {astray:?}");
        until(|| !processes(folder).into_iter().any(lives)).await;
    }
}
