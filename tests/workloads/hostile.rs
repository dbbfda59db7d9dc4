//! No content of the spool stops a replica, and no hook in the spool is run unless the hook is known not to have run.

use std::fs;
use std::os::unix::fs::symlink;

use allclear::hooks::{AttemptState, HookEnvironment, HookOutcome, Runner};

use crate::workloads::bench::{ATTEMPT, Bench, LIMIT, end, open, task, until};

#[tokio::test]
async fn a_broken_folder_is_lost_and_goes_when_it_is_forgotten() {
    for (file, content) in [
        ("outcome.json", "{\"ended\": {\"outcome\": \"do"),
        ("outcome.json", "{\"ended\": {\"outcome\": \"splendid\"}, \"at_ms\": 1}"),
        ("outcome.json", "\0\0\0\0"),
        ("request.json", "not json"),
        ("mark.json", "{}"),
        ("mark.json", "{\"place\": \"\", \"supervisor\": {\"pid\": 99999999999, \"started\": -1}}"),
    ] {
        let bench = Bench::new();
        fs::create_dir_all(bench.attempt()).unwrap();
        fs::write(bench.attempt().join(file), content).unwrap();
        let (runner, mut reports) = bench.open();
        assert!(matches!(end(&mut reports).await, HookOutcome::Lost(_)), "{file} {content}");
        runner.run(&task(), &bench.shell("echo ran > $BENCH/ran"));
        assert!(matches!(end(&mut reports).await, HookOutcome::Lost(_)));
        drop(runner);
        let (runner, _) = bench.open();
        assert!(
            matches!(runner.known(ATTEMPT), Some(AttemptState::Ended(HookOutcome::Lost(_)))),
            "also after a restart"
        );
        runner.forget(ATTEMPT);
        until(|| !bench.attempt().exists()).await;
        assert!(!bench.path("ran").exists());
    }
}

#[tokio::test]
async fn a_mark_that_names_somebody_else_ends_nobody() {
    let bench = Bench::new();
    fs::create_dir_all(bench.attempt()).unwrap();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let numbers = fs::read_link("/proc/self/ns/pid").unwrap();
    let place = format!("{} {}", boot.trim(), numbers.display());
    // The bystander leads a session of its own, as a supervisor does.
    let mut bystander = std::process::Command::new("setsid").args(["sleep", "60"]).spawn().unwrap();
    for pid in [0, 1, -1, bystander.id().cast_signed(), std::process::id().cast_signed()] {
        let _ = fs::remove_file(bench.attempt().join("outcome.json"));
        let mark = serde_json::json!({"place": place, "supervisor": {"pid": pid, "started": 1}});
        fs::write(bench.attempt().join("mark.json"), mark.to_string()).unwrap();
        let (_runner, mut reports) = bench.open();
        assert!(matches!(end(&mut reports).await, HookOutcome::Lost(_)));
    }
    let lives = bystander.try_wait().unwrap().is_none();
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert!(lives);
}

#[tokio::test]
async fn strange_things_in_the_spool_are_left_alone() {
    let bench = Bench::new();
    fs::create_dir_all(bench.spool()).unwrap();
    fs::create_dir(bench.spool().join("lost+found")).unwrap();
    fs::create_dir(bench.spool().join(".gone-17")).unwrap();
    fs::write(bench.spool().join("README"), "a file where folders are").unwrap();
    fs::create_dir(bench.path("elsewhere")).unwrap();
    symlink(bench.path("elsewhere"), bench.spool().join("17")).unwrap();
    let strange = bench.spool().join("strange");
    fs::create_dir(&strange).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(strange.join("outcome.json")).status().unwrap();
    assert!(pipe.success());
    fs::create_dir(strange.join("mark.json")).unwrap();
    symlink("/dev/zero", strange.join("request.json")).unwrap();

    let (runner, _reports) = bench.open();
    until(|| {
        runner.attempts().iter().all(|(_, standing)| matches!(standing, AttemptState::Ended(HookOutcome::Lost(_))))
    })
    .await;
    let names: Vec<_> = runner.attempts().into_iter().map(|(attempt, _)| attempt).collect();
    assert_eq!(names, ["strange"]);
    assert!(bench.spool().join("lost+found").exists() && !bench.spool().join(".gone-17").exists());
    assert_eq!(fs::read_dir(bench.path("elsewhere")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_was_asked_for_and_never_begun_is_begun_when_it_is_asked_for_again() {
    let bench = Bench::new();
    fs::create_dir_all(bench.attempt()).unwrap();
    fs::write(bench.attempt().join("request.json.unfinished"), "{").unwrap();
    let (runner, mut reports) = bench.open();
    assert_eq!(runner.known(ATTEMPT), None);
    runner.run(&task(), &bench.shell("exit 0"));
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
}

#[tokio::test]
async fn an_outcome_that_cannot_be_written_is_written_later() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let outcome = bench.attempt().join("outcome.json");
    runner.run(&task(), &bench.shell("mkdir -p $BENCH/hooks/event%2F1%3Afailover/outcome.json/in-the-way; exit 11"));
    until(|| bench.attempt().join("outcome.json.unfinished").exists()).await;
    fs::remove_dir_all(&outcome).unwrap();
    assert_eq!(end(&mut reports).await, HookOutcome::NotApplicable);
}

#[tokio::test]
async fn after_a_restart_of_the_machine_a_hook_without_an_outcome_is_lost_whatever_is_left_of_the_rest() {
    for left in [&[][..], &[("mark.json", ""), ("outcome.json", "")], &[("outcome.json", "{\"ended\": {\"outco")]] {
        let bench = Bench::new();
        fs::create_dir_all(bench.attempt()).unwrap();
        let request = serde_json::json!({
            "place": "another boot", "argv": ["/bin/true"], "env": {}, "own_env": {}, "user": null, "facts": {},
            "ends_at": { "secs": 0, "nanos": 0 },
        });
        fs::write(bench.attempt().join("request.json"), request.to_string()).unwrap();
        for (file, content) in left {
            fs::write(bench.attempt().join(file), content).unwrap();
        }
        let (runner, mut reports) = bench.open();
        let reason = "the VM or its container restarted while the hook ran";
        assert_eq!(end(&mut reports).await, HookOutcome::Lost(reason.into()), "{left:?}");
        runner.forget(ATTEMPT);
        until(|| !bench.attempt().exists()).await;
    }
}

#[tokio::test]
async fn without_a_supervisor_a_hook_is_blocked_and_not_failed() {
    for supervisor in ["/nowhere/allclear", "/bin/false"] {
        let bench = Bench::new();
        let (runner, mut reports) =
            Runner::open(&bench.spool(), supervisor.into(), HookEnvironment::default()).unwrap();
        runner.run(&task(), &bench.shell("exit 0"));
        let ended = end(&mut reports).await;
        assert!(
            matches!(&ended, HookOutcome::Blocked(reason) if reason.starts_with("the hook was not started: ")),
            "{ended}"
        );
    }
}

#[tokio::test]
async fn a_supervisor_started_by_hand_runs_nothing() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell("echo ran >> $BENCH/ran"));
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    let begun = std::time::Instant::now();
    loop {
        let mut again = std::process::Command::new(env!("CARGO_BIN_EXE_allclear"));
        let again = again.arg("supervise").arg(bench.attempt()).output().unwrap();
        assert!(!again.status.success());
        if String::from_utf8_lossy(&again.stderr).contains("only a replica starts a supervisor") {
            break;
        }
        // The supervisor of the replica has told its outcome, and still holds the lock.
        assert!(begun.elapsed() < LIMIT, "{again:?}");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert_eq!(bench.line("ran").await, "ran");
}

#[tokio::test]
async fn attempts_with_unusable_names_are_refused() {
    let bench = Bench::new();
    let (runner, mut reports) = open(&bench.spool());
    for attempt in [String::new(), "x".repeat(241)] {
        let mut task = task();
        task.attempt = attempt;
        runner.run(&task, &bench.shell("exit 0"));
        let report = tokio::time::timeout(LIMIT, reports.recv()).await.unwrap().unwrap();
        assert!(matches!(report.news, allclear::hooks::HookUpdate::Ended(HookOutcome::Failed(_))));
    }
}
