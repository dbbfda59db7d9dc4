//! Command hooks: cases of this kind only, beside `contract.rs`.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use allclear::core::model::id::VmName;
use allclear::core::model::time::Timestamp;
use allclear::hooks::{HookCommand, HookOutcome, HookTask, HookUpdate};
use serde_json::{Value, json};

use crate::workloads::bench::{ATTEMPT, Bench, LIMIT, end, next, outcome, task, until};

#[tokio::test]
async fn a_hook_sees_the_facts_and_nothing_else_of_the_environment() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut task = task();
    // A wrong wall clock is shown unchanged, and neither shortens nor extends the deadline.
    task.deadline.on_the_wall = Timestamp(4_102_444_800_123);
    let mut command = HookCommand { argv: vec!["/usr/bin/env".into()], ..bench.shell("") };
    command.env.insert("PGPORT".into(), "5433".into());
    command.env.insert("LANG".into(), "de_DE.UTF-8".into());
    command.shown.extend(["PGPORT", "LANG", "ALLCLEAR_VM"].map(str::to_owned));
    command.env.insert("ALLCLEAR_VM".into(), "not this one".into());
    runner.run(&task, &command);
    assert_eq!(end(&mut reports).await, HookOutcome::Done);

    let printed = bench.printed("stdout");
    let mut seen: BTreeMap<_, _> = printed.lines().map(|line| line.split_once('=').unwrap()).collect();
    let left = Duration::from_millis(seen.remove("ALLCLEAR_TIME_LEFT_MS").unwrap().parse().unwrap());
    assert!((LIMIT..=LIMIT * 2).contains(&left), "{left:?}");
    let folder = bench.folder.path().to_str().unwrap();
    let expected = BTreeMap::from([
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/"),
        ("LANG", "de_DE.UTF-8"),
        ("BENCH", folder),
        ("PGPORT", "5433"),
        ("ALLCLEAR_EVENT_ID", "a1-b2"),
        ("ALLCLEAR_EVENT_TYPE", "Redeploy"),
        ("ALLCLEAR_EVENT_SOURCE", "User"),
        ("ALLCLEAR_EVENT_RESOURCES", "db-0 other-7"),
        ("ALLCLEAR_PHASE", "failover"),
        ("ALLCLEAR_WORKLOAD", "postgres"),
        ("ALLCLEAR_GROUP", "orders-db"),
        ("ALLCLEAR_VM", "db-0"),
        ("ALLCLEAR_ATTEMPT", ATTEMPT),
        ("ALLCLEAR_STEP", "A1-b2@1500/db-0/postgres/failover/0"),
        ("ALLCLEAR_FENCE", "3.17"),
        ("ALLCLEAR_INTENT", "run"),
        ("ALLCLEAR_DEADLINE", "2100-01-01T00:00:00.123Z"),
        ("ALLCLEAR_AVOID_VMS", "db-0"),
        ("ALLCLEAR_PREFER_VMS", "db-2 db-1"),
        ("ALLCLEAR_TRACEPARENT", ""),
        ("ALLCLEAR_MODE", "live"),
    ]);
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn the_same_facts_are_on_standard_input_as_json() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let mut task = task();
    task.deadline.on_the_wall = Timestamp(4_102_444_800_000);
    task.group = None;
    task.vm = VmName::new("db\0-0");
    runner.run(&task, &bench.shell("cat"));
    assert_eq!(end(&mut reports).await, HookOutcome::Done);

    let mut facts: Value = serde_json::from_str(&bench.printed("stdout")).unwrap();
    assert!(facts.as_object_mut().unwrap().remove("time_left_ms").unwrap().as_u64().unwrap() > 0);
    let expected = json!({
        "event_id": "a1-b2", "event_type": "Redeploy", "event_source": "User", "event_resources": ["db-0", "other-7"],
        "phase": "failover", "workload": "postgres", "group": null, "vm": "db\0-0", "attempt": ATTEMPT, "intent": "run",
        "step": "A1-b2@1500/db-0/postgres/failover/0", "fence": "3.17",
        "deadline": "2100-01-01T00:00:00Z", "avoid_vms": ["db-0"], "prefer_vms": ["db-2", "db-1"],
        "traceparent": null, "mode": "live",
    });
    assert_eq!(facts, expected);
}

#[tokio::test]
async fn the_exit_status_is_the_outcome() {
    let failed = |reason: &str| HookOutcome::Failed(reason.to_owned());
    // The hook ended half way.
    let killed = |reason: &str| HookOutcome::Unknown(reason.to_owned());
    for (script, expected) in [
        ("exit 0", HookOutcome::Done),
        ("echo warning >&2; exit 0", HookOutcome::Done),
        ("exit 11", HookOutcome::NotApplicable),
        ("exit 12", HookOutcome::NotDone),
        ("echo the reply was lost >&2; exit 13", HookOutcome::Unknown("the reply was lost".into())),
        ("exit 13", HookOutcome::Unknown("the hook reports an unknown outcome".into())),
        ("echo no healthy standby >&2; exit 75", HookOutcome::Blocked("no healthy standby".into())),
        ("exit 75", HookOutcome::Blocked("exit status 75, nothing on standard error".into())),
        ("exit 3", failed("exit status 3, nothing on standard error")),
        ("echo first >&2; printf 'the last  \\n\\n' >&2; exit 1", failed("the last")),
        ("printf 'no newline' >&2; exit 1", failed("no newline")),
        ("kill -SEGV $$", killed("killed by SIGSEGV")),
        ("kill -TERM $$", killed("killed by SIGTERM")),
        ("exit 137", killed("killed by SIGKILL")),
        ("exit 143", killed("killed by SIGTERM")),
        ("echo out of memory >&2; kill -9 $$", killed("killed by SIGKILL: out of memory")),
    ] {
        assert_eq!(outcome(script).await, expected, "{script}");
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_is_failed_with_its_name() {
    let bench = Bench::new();
    let plain = bench.path("plain");
    fs::write(&plain, "no program").unwrap();
    let plain = plain.to_str().unwrap();
    for (argv, reason) in [
        (vec!["/nowhere/hook"], "cannot start /nowhere/hook: the program or its interpreter does not exist".to_owned()),
        (
            vec!["no-such-program-on-the-path"],
            "cannot start no-such-program-on-the-path: the program or its interpreter does not exist".to_owned(),
        ),
        (vec![plain], format!("cannot start {plain}: the program may not be executed")),
        (vec!["/bin/echo", "a\0b"], "cannot start /bin/echo: ".to_owned()),
        (vec![], "the command is empty".to_owned()),
    ] {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        let argv = argv.into_iter().map(str::to_owned).collect();
        runner.run(&task(), &HookCommand { argv, ..HookCommand::default() });
        let ended = end(&mut reports).await;
        assert!(matches!(&ended, HookOutcome::Failed(said) if said.starts_with(&reason)), "{ended}");
    }
}

#[tokio::test]
async fn output_is_kept_up_to_64_kib_and_never_makes_a_hook_wait() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let loud = "head -c 10000000 /dev/zero | tr '\\0' x; head -c 10000000 /dev/zero | tr '\\0' y >&2";
    runner.run(&task(), &bench.shell(&format!("{loud}; echo >&2; echo the end >&2; exit 1")));
    assert_eq!(end(&mut reports).await, HookOutcome::Failed("the end".into()));
    for (kept, byte) in [(bench.printed("stdout"), b'x'), (bench.printed("stderr"), b'y')] {
        assert!(kept.as_bytes()[..64 * 1024].iter().all(|found| *found == byte));
        assert!(kept.len() < 64 * 1024 + 100 && kept.ends_with("is not kept]\n"));
    }
}

#[tokio::test]
async fn a_hook_that_leaves_a_server_running_is_done_when_it_exits() {
    for (status, expected) in [(0, HookOutcome::Done), (11, HookOutcome::NotApplicable)] {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        runner.run(&task(), &bench.shell(&format!("sleep 60 & echo $! > $BENCH/server; exit {status}")));
        assert_eq!(end(&mut reports).await, expected);
        assert!(crate::workloads::bench::lives(bench.process("server").await));
    }
}

#[tokio::test]
async fn the_last_progress_comes_before_the_end() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell("echo expect: 5; echo noise; echo progress: settled"));
    let mut last = None;
    let ended = loop {
        match next(&mut reports).await {
            HookUpdate::Progress { text, .. } => last = text,
            HookUpdate::MoreTime { needs } => panic!("{needs:?}"),
            HookUpdate::Ended(ended) => break ended,
        }
    };
    assert_eq!((last.as_deref(), ended), (Some("settled"), HookOutcome::Done));
}

/// Each progress message would be an entry of the log.
#[tokio::test]
async fn a_flood_of_progress_is_passed_on_once_a_second() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    // A line cut off in the middle does not count as a line.
    let flood = "yes | timeout 3 awk '{ print \"progress: \" NR }'; echo; echo progress: the last";
    let begun = Instant::now();
    runner.run(&task(), &bench.shell(flood));
    let mut told = Vec::new();
    while let HookUpdate::Progress { text, .. } = next(&mut reports).await {
        told.push(text.unwrap());
    }
    // One line at once, one for each second that began, and the last one.
    let seconds = begun.elapsed().as_secs();
    assert!(u64::try_from(told.len()).unwrap() <= seconds + 2, "{told:?} in {seconds} s");
    assert_eq!(told.last().unwrap(), "the last");
}

#[tokio::test]
async fn forgetting_waits_for_no_disk() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &bench.shell("exit 0"));
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    runner.forget(ATTEMPT);
    // This test has the only thread of its runtime until the test waits.
    assert_eq!((runner.known(ATTEMPT), bench.attempt().exists()), (None, true));
    until(|| !bench.attempt().exists()).await;
}

/// The last tasks are requested long before their folders are removed.
#[tokio::test]
async fn what_is_asked_for_again_while_its_folder_is_removed_is_begun_anew_once() {
    const MANY: usize = 20;
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let tasks: Vec<_> = (0..MANY).map(|number| HookTask { attempt: format!("again-{number:02}"), ..task() }).collect();
    for round in 1..=2 {
        for task in &tasks {
            runner.run(task, &bench.shell("echo $ALLCLEAR_ATTEMPT >> $BENCH/ran"));
        }
        for _ in 0..MANY {
            let report = tokio::time::timeout(LIMIT, reports.recv()).await.unwrap().unwrap();
            assert_eq!(report.news, HookUpdate::Ended(HookOutcome::Done), "{} in round {round}", report.attempt);
        }
        let mut ran: Vec<_> = fs::read_to_string(bench.path("ran")).unwrap().lines().map(str::to_owned).collect();
        ran.sort_unstable();
        let expected = tasks.iter().flat_map(|task| vec![task.attempt.clone(); round]);
        assert_eq!(ran, expected.collect::<Vec<_>>());
        for task in &tasks {
            runner.forget(&task.attempt);
        }
    }
    until(|| tasks.iter().all(|task| !bench.spool().join(&task.attempt).exists())).await;
}

#[tokio::test]
async fn many_attempts_run_side_by_side() {
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    for number in 0..20 {
        let mut task = task();
        task.attempt = number.to_string();
        runner.run(&task, &bench.shell("exit 0"));
    }
    for _ in 0..20 {
        let report = tokio::time::timeout(LIMIT, reports.recv()).await.unwrap().unwrap();
        assert_eq!(report.news, HookUpdate::Ended(HookOutcome::Done));
    }
    assert_eq!(runner.attempts().len(), 20);
}
