//! The course of a step: run, reported, cancelled, repeated, refused.

use allclear::wire::pb::allclear::workload::v1;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Tell;
use allclear::wire::pb::allclear::workload::v1::{Fence, Intent, Mode, Phase, Role};

use crate::clients::bench::Bench;
use crate::clients::in_both;
use crate::clients::replica::{run, step};

in_both!(
    an_outcome_is_told_until_it_is_acknowledged,
    a_handler_is_told_what_it_has_to_know,
    progress_and_the_wish_for_time_are_passed_on,
    what_is_cancelled_ends,
    what_has_no_time_left_is_cancelled,
    what_does_not_heed_that_it_is_cancelled_has_an_unknown_outcome,
    a_failure_is_told_with_its_reason,
    an_attempt_that_comes_twice_runs_once,
    attempts_at_one_step_run_one_after_the_other,
    a_stale_step_is_refused,
    a_dry_run_runs_no_hook_but_a_check,
    what_is_taken_back_may_be_run_again,
    a_hook_that_nobody_knows_fails,
);

async fn an_outcome_is_told_until_it_is_acknowledged(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 done").await;
    for _ in 0..3 {
        assert_eq!(session.outcome("a1").await, "done");
    }
    session.acknowledge("a1").await;
    session.step(&run("a2", Phase::Failover)).await;
    workload.says("a2 run failover").await;
    workload.tell("a2 done").await;
    // reports in flight at the acknowledgement may still arrive
    while session.report().await.0 == "a1" {}
    for _ in 0..3 {
        assert_eq!(session.outcome("a2").await, "done");
    }
    assert_eq!(workload.stop().await, Vec::<String>::new());
}

async fn a_handler_is_told_what_it_has_to_know(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    let peer =
        |vm: &str, role: Role, connected, affected| v1::Peer { vm: vm.into(), role: role.into(), connected, affected };
    let members = vec![
        peer("db-0", Role::Primary, true, true),
        peer("db-1", Role::Replica, true, false),
        peer("db-2", Role::Replica, false, false),
    ];
    let (avoid, prefer) = (vec!["db-0".into(), "db-2".into()], vec!["db-1".into()]);
    let asked = v1::Step { members, avoid, prefer, ..step("a1", Phase::Failover, Intent::Confirm) };
    session.step(&asked).await;
    workload
        .says("a1 confirm failover members=db-0:primary:affected,db-1:replica,db-2:replica:gone avoid=db-0,db-2 prefer=db-1")
        .await;
}

async fn progress_and_the_wish_for_time_are_passed_on(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 progress half of it").await;
    let progress = v1::Progress { text: "half of it".into(), expected_end_in_ms: None };
    assert_eq!(session.report().await, ("a1".into(), News::Progress(progress)));
    // at most once a second, and then only the last report
    for line in ["a1 progress more of it", "a1 progress nearly all of it", "a1 expect 1500"] {
        workload.tell(line).await;
    }
    let last = v1::Progress { text: "nearly all of it".into(), expected_end_in_ms: Some(1500) };
    assert_eq!(session.report().await, ("a1".into(), News::Progress(last)));
    workload.tell("a1 more 360000").await;
    assert_eq!(session.report().await, ("a1".into(), News::Extension(v1::Extension { needs_ms: 360_000 })));
    let deadline = v1::Deadline { attempt: "a1".into(), time_left_ms: 330_000, deadline_unix_ms: 0 };
    session.tell(Tell::Deadline(deadline)).await;
    // the next step is received after the deadline
    session.step(&run("a2", Phase::Failover)).await;
    workload.says("a2 run failover").await;
    workload.tell("a1 minutes").await;
    workload.says("a1 has 5 min").await;
    workload.tell("a1 done").await;
    assert_eq!(session.settled("a1").await, "done");
}

async fn what_is_cancelled_ends(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    session.tell(Tell::Cancel(v1::Cancel { attempt: "a1".into(), reason: "the event is gone".into() })).await;
    workload.says("a1 cancelled").await;
    assert_eq!(session.settled("a1").await, "cancelled");
}

/// A handler in Python may end without an outcome, which means "done" in an attempt that was not cancelled.
#[tokio::test]
async fn in_python_a_cancelled_handler_that_says_nothing_has_an_unknown_outcome() {
    let Some(tongue) = crate::clients::bench::python() else { return };
    let mut bench = Bench::new(tongue);
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 mute").await;
    workload.says("a1 is mute").await;
    session.tell(Tell::Cancel(v1::Cancel { attempt: "a1".into(), reason: "the event is gone".into() })).await;
    assert_eq!(session.settled("a1").await, "unknown: it was cancelled, and the handler ended without an Outcome");
}

async fn what_has_no_time_left_is_cancelled(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&v1::Step { time_left_ms: 0, ..run("a1", Phase::Checkpoint) }).await;
    assert_eq!(session.settled("a1").await, "blocked: its time was up before it could begin");
    session.step(&run("a2", Phase::Checkpoint)).await;
    workload.says("a2 run checkpoint").await;
    let deadline = v1::Deadline { attempt: "a2".into(), time_left_ms: 10, deadline_unix_ms: 0 };
    session.tell(Tell::Deadline(deadline)).await;
    workload.says("a2 cancelled").await;
    assert_eq!(session.settled("a2").await, "cancelled");
}

async fn what_does_not_heed_that_it_is_cancelled_has_an_unknown_outcome(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 deaf").await;
    workload.says("a1 is deaf").await;
    session.tell(Tell::Cancel(v1::Cancel { attempt: "a1".into(), reason: "the event is gone".into() })).await;
    assert_eq!(session.settled("a1").await, "unknown: it was cancelled, and did not end within 4 s");
    session.step(&run("a2", Phase::Checkpoint)).await;
    workload.says("a2 run checkpoint journaled=unknown").await;
}

async fn a_failure_is_told_with_its_reason(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 failed the disk is full").await;
    assert_eq!(session.settled("a1").await, "failed: the disk is full");
    session.step(&run("a2", Phase::Checkpoint)).await;
    workload.says("a2 run checkpoint journaled=failed").await;
    workload.tell("a2 blocked a backup runs").await;
    assert_eq!(session.settled("a2").await, "blocked: a backup runs");
}

async fn an_attempt_that_comes_twice_runs_once(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    let asked = run("a1", Phase::Checkpoint);
    session.step(&asked).await;
    workload.says("a1 run checkpoint").await;
    session.step(&asked).await;
    workload.tell("a1 done").await;
    assert_eq!(session.settled("a1").await, "done");
    // also after the acknowledgement
    session.step(&asked).await;
    assert_eq!(session.settled("a1").await, "done");
    assert_eq!(workload.stop().await, Vec::<String>::new());
}

async fn attempts_at_one_step_run_one_after_the_other(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Failover)).await;
    workload.says("a1 run failover").await;
    session.step(&step("a2", Phase::Failover, Intent::Confirm)).await;
    session.step(&run("a3", Phase::Failover)).await;
    session.step(&run("a4", Phase::Checkpoint)).await;
    workload.says("a4 run checkpoint").await;
    workload.tell("a1 done").await;
    assert_eq!(session.settled("a1").await, "done");
    workload.says("a2 confirm failover journaled=done").await;
    workload.tell("a2 done").await;
    assert_eq!(session.settled("a2").await, "done");
    assert_eq!(session.settled("a3").await, "done", "and it does not run");
    workload.tell("a4 done").await;
    assert_eq!(session.settled("a4").await, "done");
    assert_eq!(workload.stop().await, Vec::<String>::new());
}

async fn a_stale_step_is_refused(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    let fenced = |attempt: &str, term, sequence| v1::Step {
        fence: Some(Fence { term, sequence }),
        ..run(attempt, Phase::Checkpoint)
    };
    session.step(&fenced("a5", 2, 5)).await;
    workload.says("a5 run checkpoint").await;
    session.step(&fenced("a9", 1, 9)).await;
    for _ in 0..2 {
        assert_eq!(session.outcome("a9").await, "stale");
    }
    // for another event a lower sequence may come later
    let event = Some(v1::Event { id: "e2".into(), ..v1::Event::default() });
    session.step(&v1::Step { event, step: "another".into(), ..fenced("a6", 2, 1) }).await;
    workload.says("a6 run checkpoint").await;
    session.step(&fenced("a4", 2, 4)).await;
    while session.report().await.0 != "a4" {}
    for attempt in ["a4", "a9"] {
        session.acknowledge(attempt).await;
    }
    workload.tell("a5 done").await;
    while session.report().await.0 != "a5" {}
    assert_eq!(workload.stop().await, Vec::<String>::new());
}

async fn a_dry_run_runs_no_hook_but_a_check(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    let dry = |attempt: &str, phase| v1::Step { mode: Mode::DryRun.into(), ..run(attempt, phase) };
    session.step(&dry("a1", Phase::Checkpoint)).await;
    assert_eq!(session.settled("a1").await, "not_applicable");
    session.step(&dry("a2", Phase::Failover)).await;
    workload.says("a2 run failover dry").await;
    workload.tell("a2 done").await;
    assert_eq!(session.settled("a2").await, "done");
    session.step(&run("a3", Phase::Failover)).await;
    workload.says("a3 run failover").await;
    session.step(&dry("a4", Phase::Check)).await;
    workload.says("a4 run check dry").await;
    workload.tell("a4 failed no right to switch").await;
    assert_eq!(session.settled("a4").await, "failed: no right to switch");
}

async fn what_is_taken_back_may_be_run_again(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    let moves = [
        ("a1", Intent::Run, "run", "", "done"),
        ("a2", Intent::Undo, "undo", " journaled=done", "done"),
        ("a3", Intent::Run, "run", " journaled=not_done", "done"),
        // the role has changed without a hook
        ("a4", Intent::Confirm, "confirm", " journaled=done", "not_done"),
        ("a5", Intent::Run, "run", " journaled=not_done", "done"),
    ];
    for (attempt, intent, word, journaled, answer) in moves {
        session.step(&step(attempt, Phase::Failover, intent)).await;
        workload.says(&format!("{attempt} {word} failover{journaled}")).await;
        workload.tell(&format!("{attempt} {answer}")).await;
        assert_eq!(session.settled(attempt).await, answer);
    }
}

async fn a_hook_that_nobody_knows_fails(mut bench: Bench) {
    let workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    session.step(&v1::Step { ordinal: 7, ..run("a1", Phase::Checkpoint) }).await;
    let unknown = "failed: this workload has no such hook; was it registered by another version?";
    assert_eq!(session.settled("a1").await, unknown);
    session.step(&step("a2", Phase::Checkpoint, Intent::Unspecified)).await;
    let newer = "failed: this workload does not know what the replica asks for; is the replica newer?";
    assert_eq!(session.settled("a2").await, newer);
    session.step(&step("a3", Phase::Checkpoint, Intent::Undo)).await;
    assert_eq!(session.settled("a3").await, "not_applicable");
    workload.stop().await;
}
