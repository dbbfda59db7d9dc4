//! Whatever happens to the replica or to a supervisor, a hook runs once, and no hook is left behind unnoticed.

use std::fs;
use std::time::Duration;

use allclear::hooks::{AttemptState, HookEnvironment, HookOutcome, Runner, SpoolOpenError};
use nix::sys::signal::Signal;

use crate::workloads::bench::{ATTEMPT, Bench, end, lives, send, task, until};
use crate::workloads::stand_in::{kill, replica};

/// Runs until the file `go` exists; records each start.
const PATIENT: &str = "echo $$ >> $BENCH/ran; while [ ! -e $BENCH/go ]; do sleep 0.02; done";

#[tokio::test]
async fn a_killed_replica_finds_its_hook_running_and_waits_for_it() {
    let bench = Bench::new();
    let before = replica(&bench, PATIENT);
    let hook = bench.process("ran").await;
    kill(before);

    let (runner, mut reports) = bench.open();
    assert_eq!(runner.known(ATTEMPT), Some(AttemptState::Running));
    runner.run(&task(), &bench.shell(PATIENT));
    assert!(lives(hook));
    fs::write(bench.path("go"), "").unwrap();
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    assert_eq!(bench.process("ran").await, hook, "it ran once");
}

#[tokio::test]
async fn a_killed_replica_finds_the_outcome_of_a_hook_that_ended_meanwhile() {
    let bench = Bench::new();
    let before = replica(&bench, &format!("{PATIENT}; echo the disk is full >&2; exit 1"));
    let hook = bench.process("ran").await;
    kill(before);
    fs::write(bench.path("go"), "").unwrap();
    until(|| bench.attempt().join("outcome.json").exists()).await;

    let (runner, mut reports) = bench.open();
    let expected = HookOutcome::Failed("the disk is full".into());
    assert_eq!(runner.known(ATTEMPT), Some(AttemptState::Ended(expected.clone())));
    runner.run(&task(), &bench.shell(PATIENT));
    assert_eq!(end(&mut reports).await, expected);
    assert_eq!(bench.process("ran").await, hook, "it ran once");
}

#[tokio::test]
async fn a_stopped_replica_leaves_its_hook_running_for_the_next() {
    let bench = Bench::new();
    let (runner, _) = bench.open();
    runner.run(&task(), &bench.shell(PATIENT));
    let hook = bench.process("ran").await;
    drop(runner);
    let (runner, mut reports) = bench.open();
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled, "one begun by another replica can be cancelled too");
    assert!(!lives(hook));
}

/// SIGTERM from another sender ends the hook half way, and is no cancellation by the cluster.
#[tokio::test]
async fn the_shutdown_of_the_vm_leaves_an_unknown_outcome_and_no_cancellation() {
    for hook in [PATIENT, "trap 'exit 0' TERM; echo $$ > $BENCH/ran; while :; do sleep 0.02; done"] {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        runner.run(&task(), &bench.shell(hook));
        let process = bench.process("ran").await;
        send(bench.supervisor(), Signal::SIGTERM);
        // The hook may have ended by the signal to its supervisor.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(process), Signal::SIGTERM);
        let ended = end(&mut reports).await;
        assert!(matches!(&ended, HookOutcome::Unknown(reason) if reason.contains("SIGTERM")), "{hook}: {ended}");
        assert!(!lives(process));
        drop(runner);
        let (runner, _) = bench.open();
        assert_eq!(runner.known(ATTEMPT), Some(AttemptState::Ended(ended)), "the outcome stays");
    }
}

/// A shutdown reaches the hook too, which may end with any exit code before its supervisor has handled the signal.
#[tokio::test]
async fn a_hook_that_ends_together_with_a_signal_to_its_supervisor_is_unknown_whatever_it_says() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell(PATIENT));
    let hook = bench.process("ran").await;
    for signal in [Signal::SIGSTOP, Signal::SIGTERM] {
        send(bench.supervisor(), signal);
    }
    fs::write(bench.path("go"), "").unwrap();
    until(|| !lives(hook)).await;
    send(bench.supervisor(), Signal::SIGCONT);
    let ended = end(&mut reports).await;
    assert!(matches!(&ended, HookOutcome::Unknown(reason) if reason.contains("SIGTERM")), "{ended}");
}

#[tokio::test]
async fn a_cancellation_goes_on_when_its_replica_ended_between_the_record_and_the_signal() {
    let bench = Bench::new();
    let before = replica(&bench, PATIENT);
    let hook = bench.process("ran").await;
    kill(before);
    fs::write(bench.attempt().join("cancel.json"), r#"{"at_ms": 7}"#).unwrap();
    let (_runner, mut reports) = bench.open();
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled);
    assert!(!lives(hook));
}

#[tokio::test]
async fn a_cancellation_that_cannot_be_recorded_ends_its_hook_with_an_unknown_outcome() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell(PATIENT));
    let hook = bench.process("ran").await;
    fs::create_dir_all(bench.attempt().join("cancel.json/in-the-way")).unwrap();
    runner.cancel(ATTEMPT);
    assert!(matches!(end(&mut reports).await, HookOutcome::Unknown(_)));
    assert!(!lives(hook));
}

#[tokio::test]
async fn the_deadline_holds_though_no_replica_is_there() {
    let bench = Bench::new();
    let (runner, _) = bench.open();
    let mut task = task();
    task.deadline = crate::workloads::bench::within(Duration::from_secs(2));
    runner.run(&task, &bench.shell(PATIENT));
    let hook = bench.process("ran").await;
    drop(runner);
    until(|| !lives(hook)).await;
    until(|| bench.attempt().join("outcome.json").exists()).await;
    let (runner, _) = bench.open();
    assert_eq!(runner.known(ATTEMPT), Some(AttemptState::Ended(HookOutcome::TimedOut)));
}

#[tokio::test]
async fn an_outcome_is_told_when_it_is_written_and_not_when_its_supervisor_is_gone() {
    let bench = Bench::new();
    let stays = bench.path("stays");
    let script = "echo $$ > {stays}; {allclear} \"$@\"; while :; do sleep 0.1; done";
    let script = script.replace("{allclear}", env!("CARGO_BIN_EXE_allclear"));
    let supervisor = bench.program("supervisor", &script.replace("{stays}", stays.to_str().unwrap()));
    let (runner, mut reports) = Runner::open(&bench.spool(), supervisor, HookEnvironment::default()).unwrap();
    runner.run(&task(), &bench.shell("exit 3"));
    assert_eq!(end(&mut reports).await, HookOutcome::Failed("exit status 3, nothing on standard error".into()));
    assert!(lives(bench.process("stays").await));
}

#[tokio::test]
async fn what_is_said_before_there_is_an_outcome_is_no_reason_to_settle() {
    let bench = Bench::new();
    let supervisor =
        bench.program("supervisor", &format!("echo early; exec {} \"$@\"", env!("CARGO_BIN_EXE_allclear")));
    let (runner, mut reports) = Runner::open(&bench.spool(), supervisor, HookEnvironment::default()).unwrap();
    // Longer than the time between two checks of a held lock.
    runner.run(&task(), &bench.shell("sleep 2; exit 3"));
    assert_eq!(end(&mut reports).await, HookOutcome::Failed("exit status 3, nothing on standard error".into()));
}

#[tokio::test]
async fn when_a_supervisor_is_killed_its_hook_is_ended_and_the_outcome_is_lost() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let script = r#"sh -c 'trap "" TERM; echo $$ > $BENCH/grandchild; while :; do sleep 0.05; done' & echo $$ > $BENCH/ran; wait"#;
    runner.run(&task(), &bench.shell(script));
    let (hook, grandchild) = (bench.process("ran").await, bench.process("grandchild").await);
    send(bench.supervisor(), Signal::SIGKILL);
    let ended = end(&mut reports).await;
    assert_eq!(ended, HookOutcome::Lost("the supervisor of the hook was killed while the hook ran".into()));
    assert!(!lives(hook) && !lives(grandchild));
    drop(runner);
    let (runner, _) = bench.open();
    assert_eq!(runner.known(ATTEMPT), Some(AttemptState::Ended(ended)), "the outcome stays");
}

#[tokio::test]
async fn when_replica_and_supervisor_are_killed_the_next_replica_ends_the_hook() {
    let bench = Bench::new();
    let before = replica(&bench, PATIENT);
    let hook = bench.process("ran").await;
    kill(before);
    send(bench.supervisor(), Signal::SIGKILL);
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell(PATIENT));
    assert!(matches!(end(&mut reports).await, HookOutcome::Lost(_)));
    assert!(!lives(hook));
    assert_eq!(bench.process("ran").await, hook, "it ran once");
}

#[tokio::test]
async fn two_replicas_do_not_share_a_spool() {
    let bench = Bench::new();
    let (runner, _reports) = bench.open();
    let second = || Runner::open(&bench.spool(), "/bin/false".into(), HookEnvironment::default());
    assert!(matches!(second(), Err(SpoolOpenError::InUse(_))));
    drop(runner);
    assert!(second().is_ok());
}
