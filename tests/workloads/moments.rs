//! Kills at any time between the request for a hook and the hook's end: the times are spread over this interval.

use std::fs;
use std::time::Duration;

use allclear::hooks::{AttemptState, HookOutcome, HookUpdate};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::sleep;

use crate::workloads::bench::{ATTEMPT, Bench, end, lives, next, task, until};
use crate::workloads::stand_in;

const STEP: Duration = Duration::from_micros(400);
const SCRIPT: &str = "echo $$ >> $BENCH/ran; sleep 0.003";

/// 30 moments, or 10 where long tests do not run.
fn moments() -> impl Iterator<Item = u32> {
    (0..30).step_by(if crate::left_out::runs_long_tests() { 1 } else { 3 })
}

#[tokio::test]
async fn whenever_a_replica_is_killed_its_hook_runs_once_and_the_outcome_is_found() {
    for moment in moments() {
        let bench = Bench::new();
        let before = stand_in::replica(&bench, SCRIPT);
        until(|| bench.path("asked").exists()).await;
        sleep(STEP * moment).await;
        stand_in::kill(before);

        let (runner, mut reports) = bench.open();
        runner.run(&task(), &bench.shell(SCRIPT));
        assert_eq!(end(&mut reports).await, HookOutcome::Done, "moment {moment}");
        assert_eq!(fs::read_to_string(bench.path("ran")).unwrap().lines().count(), 1, "moment {moment}");
    }
}

#[tokio::test]
async fn whenever_a_supervisor_is_killed_the_outcome_is_true_and_nobody_is_left() {
    for moment in moments() {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        runner.run(&task(), &bench.shell(&format!("{SCRIPT}; echo progress: slept; exec sleep 60")));
        sleep(STEP * moment).await;
        kill_supervisor(&bench).await;
        let ended = loop {
            if let HookUpdate::Ended(ended) = next(&mut reports).await {
                break ended;
            }
        };
        let ran: Vec<i32> = fs::read_to_string(bench.path("ran"))
            .unwrap_or_default()
            .lines()
            .map(|line| line.parse().unwrap())
            .collect();
        assert!(!ran.iter().copied().any(lives), "moment {moment}");
        match (&ended, ran.len()) {
            (HookOutcome::Blocked(_), 0) | (HookOutcome::Lost(_), 0 | 1) => {}
            (_, times) => panic!("moment {moment}: {ended}, ran {times} times"),
        }
        assert_eq!(runner.known(ATTEMPT), Some(AttemptState::Ended(ended)));
    }
}

/// The supervisor may not even exist yet.
async fn kill_supervisor(bench: &Bench) {
    let folder = bench.attempt();
    let mut found = None;
    until(|| {
        found = fs::read_dir("/proc").unwrap().filter_map(Result::ok).find_map(|entry| {
            let arguments = fs::read(entry.path().join("cmdline")).ok()?;
            let expected = format!("\0supervise\0{}\0", folder.display());
            arguments.ends_with(expected.as_bytes()).then(|| entry.file_name().to_str()?.parse().ok()).flatten()
        });
        found.is_some()
    })
    .await;
    // Fails only if the supervisor has just ended.
    let _ = kill(Pid::from_raw(found.unwrap()), Signal::SIGKILL);
}
