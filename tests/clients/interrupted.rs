//! A workload that is killed and started again knows its former attempts from its journal.

use std::fs;
use std::io::Write as _;

use allclear::wire::pb::allclear::workload::v1;
use allclear::wire::pb::allclear::workload::v1::{Fence, Intent, Phase};

use crate::clients::bench::{Bench, Puppet, Tongue, python};
use crate::clients::in_both;
use crate::clients::replica::{Session, run, step};

in_both!(
    what_was_done_in_a_former_life_is_told_and_not_run_again,
    what_was_not_ended_in_a_former_life_is_asked_about,
    what_was_acknowledged_is_not_told_again,
    a_former_lifes_fence_holds,
    a_line_that_was_being_written_when_it_was_killed_does_no_harm,
    a_journal_that_cannot_be_read_is_not_taken_for_an_empty_one,
    a_journal_is_of_one_process,
    what_cannot_be_written_into_the_journal_is_not_begun,
);

async fn life(bench: &mut Bench) -> (Puppet, Session) {
    let mut workload = bench.workload();
    let session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    (workload, session)
}

async fn what_was_done_in_a_former_life_is_told_and_not_run_again(mut bench: Bench) {
    let (mut workload, mut session) = life(&mut bench).await;
    let boot = session.hello.boot.clone();
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 done").await;
    assert_eq!(session.outcome("a1").await, "done");
    workload.kill().await;

    let (workload, mut session) = life(&mut bench).await;
    assert_ne!(session.hello.boot, boot);
    assert_eq!(session.known(), ["a1 done"]);
    session.acknowledge("a1").await;
    session.step(&step("a2", Phase::Checkpoint, Intent::Confirm)).await;
    assert_eq!(session.settled("a2").await, "done");
    session.step(&run("a3", Phase::Checkpoint)).await;
    assert_eq!(session.settled("a3").await, "done");
    session.step(&run("a1", Phase::Checkpoint)).await;
    assert_eq!(session.settled("a1").await, "done");
    assert_eq!(workload.stop().await, Vec::<String>::new(), "nothing runs");
}

async fn what_was_not_ended_in_a_former_life_is_asked_about(mut bench: Bench) {
    let (mut workload, session) = life(&mut bench).await;
    for (attempt, phase) in [("a1", Phase::Failover), ("a2", Phase::Checkpoint)] {
        session.step(&run(attempt, phase)).await;
        assert!(workload.line().await.unwrap().starts_with(attempt));
    }
    workload.kill().await;

    let (mut workload, mut session) = life(&mut bench).await;
    assert_eq!(session.known(), Vec::<String>::new());
    session.step(&step("a3", Phase::Checkpoint, Intent::Confirm)).await;
    assert_eq!(session.settled("a3").await, "unknown: it was begun, and the journal does not say that it was done");
    session.step(&run("a2", Phase::Checkpoint)).await;
    assert_eq!(session.settled("a2").await, "unknown: the workload was restarted while it ran");
    session.step(&step("a4", Phase::Failover, Intent::Confirm)).await;
    workload.says("a4 confirm failover journaled=unknown").await;
    workload.tell("a4 not_done").await;
    assert_eq!(session.settled("a4").await, "not_done");
    session.step(&run("a5", Phase::Failover)).await;
    workload.says("a5 run failover journaled=not_done").await;
    workload.tell("a5 done").await;
    assert_eq!(session.settled("a5").await, "done");
}

async fn what_was_acknowledged_is_not_told_again(mut bench: Bench) {
    let (mut workload, mut session) = life(&mut bench).await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 done").await;
    assert_eq!(session.settled("a1").await, "done");
    // the next step is received after the acknowledgement
    session.step(&step("a2", Phase::Failover, Intent::Confirm)).await;
    workload.says("a2 confirm failover").await;
    workload.stop().await;
    let (_workload, session) = life(&mut bench).await;
    assert_eq!(session.known(), Vec::<String>::new());
}

async fn a_former_lifes_fence_holds(mut bench: Bench) {
    let fenced =
        |attempt: &str, term| v1::Step { fence: Some(Fence { term, sequence: 1 }), ..run(attempt, Phase::Checkpoint) };
    let (mut workload, session) = life(&mut bench).await;
    session.step(&fenced("a1", 7)).await;
    workload.says("a1 run checkpoint").await;
    workload.kill().await;
    let (_workload, mut session) = life(&mut bench).await;
    session.step(&fenced("a2", 6)).await;
    assert_eq!(session.settled("a2").await, "stale");
}

async fn a_line_that_was_being_written_when_it_was_killed_does_no_harm(mut bench: Bench) {
    let (mut workload, mut session) = life(&mut bench).await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 done").await;
    assert_eq!(session.outcome("a1").await, "done");
    workload.kill().await;
    let mut journal = fs::File::options().append(true).open(bench.journal()).unwrap();
    journal.write_all(b"{\"begun\":{\"attempt\":\"a2\",\"st").unwrap();
    let (mut workload, mut session) = life(&mut bench).await;
    assert_eq!(session.known(), ["a1 done"]);
    session.step(&run("a2", Phase::Failover)).await;
    workload.says("a2 run failover").await;
    workload.tell("a2 done").await;
    while session.report().await.0 == "a1" {}
    workload.kill().await;
    let (_workload, session) = life(&mut bench).await;
    assert_eq!(session.known(), ["a1 done", "a2 done"]);
}

async fn a_journal_that_cannot_be_read_is_not_taken_for_an_empty_one(bench: Bench) {
    let begun = "{\"journal\":{\"version\":1}}\n";
    let newer = "{\"journal\":{\"version\":2}}\n";
    for text in
        ["", "rubbish\n", newer, &format!("{begun}rubbish\n{begun}"), "{\"acknowledged\":{\"attempt\":\"a1\"}}\n"]
    {
        fs::write(bench.journal(), text).unwrap();
        let said = bench.workload().line().await.unwrap();
        assert!(said.starts_with("cannot start: ") && said.contains("cannot be read"), "{text:?}: {said}");
        assert_eq!(fs::read_to_string(bench.journal()).unwrap(), text, "it is left as it is");
    }
}

async fn a_journal_is_of_one_process(mut bench: Bench) {
    let (_workload, _session) = life(&mut bench).await;
    let said = bench.workload().line().await.unwrap();
    assert!(said.starts_with("cannot start: ") && said.contains("in use by another process"), "{said}");
}

async fn what_cannot_be_written_into_the_journal_is_not_begun(mut bench: Bench) {
    let (mut workload, mut session) = life(&mut bench).await;
    // As on a full disk: the write breaks off.
    let room = fs::metadata(bench.journal()).unwrap().len() + 10;
    workload.tell(&format!("room {room}")).await;
    workload.says("has room").await;
    for attempt in ["a1", "a2"] {
        session.step(&run(attempt, Phase::Checkpoint)).await;
        let outcome = session.settled(attempt).await;
        assert!(outcome.starts_with("blocked: the workload cannot write its journal: "), "{outcome}");
    }
    workload.tell("room enough").await;
    workload.says("has room").await;
    session.step(&run("a3", Phase::Checkpoint)).await;
    workload.says("a3 run checkpoint").await;
    workload.tell("a3 done").await;
    assert_eq!(session.outcome("a3").await, "done");
    workload.kill().await;
    let (_workload, session) = life(&mut bench).await;
    assert!(session.known().contains(&"a3 done".to_owned()), "{:?}", session.known());
}

#[tokio::test]
async fn a_journal_is_read_by_the_other_language() {
    let Some(python) = python() else { return };
    for (first, second) in [(Tongue::Rust, python.clone()), (python, Tongue::Rust)] {
        let mut bench = Bench::new(first);
        let (mut workload, mut session) = life(&mut bench).await;
        for (attempt, phase) in [("a1", Phase::Checkpoint), ("a2", Phase::Failover)] {
            session.step(&run(attempt, phase)).await;
            assert!(workload.line().await.unwrap().starts_with(attempt));
        }
        workload.tell("a1 failed no läck").await;
        assert_eq!(session.outcome("a1").await, "failed: no läck");
        workload.kill().await;
        bench.tongue = second;
        let (mut workload, session) = life(&mut bench).await;
        assert_eq!(session.known(), ["a1 failed: no läck"]);
        session.step(&step("a3", Phase::Failover, Intent::Confirm)).await;
        workload.says("a3 confirm failover journaled=unknown").await;
    }
}
