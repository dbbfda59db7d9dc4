//! The session itself: its registration, its heartbeats, and its end.

use std::sync::atomic::Ordering;

use allclear::wire::pb::allclear::workload::v1;
use allclear::wire::pb::allclear::workload::v1::from_workload::Message as Said;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::to_workload::Message as Tell;
use allclear::wire::pb::allclear::workload::v1::{Hook, OnAbsent, OnFailure, Phase, Role, RunsOn};
use tonic::Status;

use crate::clients::bench::Bench;
use crate::clients::in_both;
use crate::clients::replica::{Replica, run};

in_both!(
    the_first_message_says_all_that_was_registered,
    a_warning_about_the_registration_is_told_with_its_place,
    heartbeats_keep_the_session_and_a_role_is_told_at_once,
    a_replica_that_falls_silent_is_dialled_again,
    a_workload_waits_for_a_replica_that_is_not_there_yet,
    a_session_that_is_sent_away_or_refused_is_tried_again,
    a_lost_session_is_taken_up_where_it_was,
    a_workload_that_leaves_says_so,
    what_is_not_acknowledged_at_the_stop_is_delivered_again_before_the_goodbye,
    a_workload_that_may_not_leave_is_told_why,
    a_workload_that_leaves_a_replica_that_stops_is_told_so,
);

async fn the_first_message_says_all_that_was_registered(mut bench: Bench) {
    let _workload = bench.forgetful();
    let mut hello = bench.replica.dialled().await.hello;
    assert!(hello.boot.len() >= 8, "{hello:?}");
    hello.boot.clear();
    let checkpoint = Hook {
        phase: Phase::Checkpoint.into(),
        timeout_ms: Some(20_000),
        attempts: Some(3),
        worst_ms: Some(5_000),
        on_failure: OnFailure::Continue.into(),
        optional_if_short: true,
        event_types: vec!["Reboot".into(), "Redeploy".into()],
        ..Hook::default()
    };
    let failover = Hook {
        phase: Phase::Failover.into(),
        can_confirm: true,
        can_undo: true,
        can_dry_run: true,
        runs_on: RunsOn::Peer.into(),
        min_freeze_ms: Some(4_000),
        fresh_for_ms: Some(30_000),
        exclusive: true,
        ..Hook::default()
    };
    let expected = v1::Hello {
        versions: vec![1],
        workload: "orders".into(),
        group: Some("shop".into()),
        boot: String::new(),
        lease_ms: Some(2_000),
        retain_ms: Some(3_600_000),
        on_absent: OnAbsent::Skip.into(),
        after: vec!["cache".into()],
        hooks: vec![checkpoint, failover, Hook { phase: Phase::Check.into(), ..Hook::default() }],
        role: Role::Replica.into(),
        known: vec![],
    };
    assert_eq!(hello, expected);
}

async fn a_warning_about_the_registration_is_told_with_its_place(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let place = Some("hooks[0].can_confirm".to_owned());
    let problems = vec![v1::Problem { place, message: "a doubt".into() }];
    let _session = bench.replica.dialled().await.welcome_with(v1::Welcome { problems, ..v1::Welcome::default() }).await;
    workload.says("connected to db-0").await;
    workload.says("problem hooks[0].can_confirm: a doubt").await;
}

async fn heartbeats_keep_the_session_and_a_role_is_told_at_once(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    // a lease and more
    for _ in 0..5 {
        assert_eq!(session.heartbeat().await.role(), Role::Unspecified, "as before");
    }
    workload.tell("role primary").await;
    while session.heartbeat().await.role() != Role::Primary {}
    session.cut().await;
    assert_eq!(bench.replica.session().await.hello.role(), Role::Primary);
}

async fn a_replica_that_falls_silent_is_dialled_again(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    session.is_mute.store(true, Ordering::Relaxed);
    let boot = session.hello.boot.clone();
    while session.said().await.is_some() {}
    assert_eq!(bench.replica.session().await.hello.boot, boot, "it is the same process");
    workload.says("connected to db-0").await;
}

async fn a_workload_waits_for_a_replica_that_is_not_there_yet(mut bench: Bench) {
    let socket = bench.folder.path().join("socket");
    std::fs::remove_file(&socket).unwrap();
    let mut workload = bench.forgetful();
    workload.tell("role primary").await;
    bench.replica = Replica::new(&socket);
    let session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.cut().await;
    workload.stop().await;
}

async fn a_session_that_is_sent_away_or_refused_is_tried_again(mut bench: Bench) {
    let mut workload = bench.forgetful();
    bench.replica.dialled().await.refuse(Status::already_exists("another session bears the name")).await;
    let session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.tell(Tell::GoAway(v1::GoAway { reason: "the replica stops".into(), after_ms: 10 })).await;
    bench.replica.dialled().await.refuse(Status::invalid_argument("hooks[0]: no such phase")).await;
    workload.says("refused: hooks[0]: no such phase").await;
    let _session = bench.replica.session().await;
    workload.says("connected to db-0").await;
}

async fn a_lost_session_is_taken_up_where_it_was(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    assert_eq!(session.known(), Vec::<String>::new());
    let asked = run("a1", Phase::Failover);
    session.step(&asked).await;
    workload.says("a1 run failover").await;
    session.cut().await;

    let session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    assert_eq!(session.known(), ["a1 runs"]);
    session.step(&asked).await;
    session.cut().await;
    // while no session exists
    let dialled = bench.replica.dialled().await;
    workload.tell("a1 done").await;
    let mut session = dialled.welcome(&[]).await;
    workload.says("connected to db-0").await;
    assert_eq!(session.outcome("a1").await, "done");
    session.cut().await;

    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    assert_eq!(session.known(), ["a1 done"]);
    assert_eq!(session.outcome("a1").await, "done");
    session.cut().await;

    let dialled = bench.replica.dialled().await;
    let session = dialled.welcome(&["a1"]).await;
    workload.says("connected to db-0").await;
    session.cut().await;
    let session = bench.replica.session().await;
    assert_eq!(session.known(), Vec::<String>::new());
    workload.says("connected to db-0").await;
    assert_eq!(workload.stop().await, Vec::<String>::new(), "it ran once");
}

async fn what_is_not_acknowledged_at_the_stop_is_delivered_again_before_the_goodbye(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    session.step(&run("a1", Phase::Checkpoint)).await;
    workload.says("a1 run checkpoint").await;
    workload.tell("a1 done").await;
    assert_eq!(session.outcome("a1").await, "done");
    workload.tell("stop").await;
    // The replica is lost before the outcome is in its log.
    session.cut().await;
    let mut session = bench.replica.session().await;
    assert_eq!(session.known(), ["a1 done"]);
    // Nothing new begins.
    session.step(&run("a2", Phase::Failover)).await;
    let refused = loop {
        let (attempt, news) = session.report().await;
        if attempt == "a2" {
            break news;
        }
    };
    let News::Outcome(refused) = refused else { panic!("{refused:?} instead of an outcome") };
    assert_eq!(refused.variant, Some(v1::outcome::Variant::Blocked("the workload is stopping".into())));
    session.acknowledge("a1").await;
    loop {
        match session.said().await.expect("a goodbye before the end") {
            Said::Goodbye(goodbye) => break assert!(!goodbye.unregister),
            Said::Heartbeat(_) | Said::Report(_) => {}
            other @ Said::Hello(_) => panic!("{other:?} instead of a goodbye"),
        }
    }
    assert_eq!(session.said().await, None);
    drop(session);
    while let Some(line) = workload.line().await {
        assert!(!line.starts_with("a2"), "{line}");
    }
}

async fn a_workload_that_may_not_leave_is_told_why(mut bench: Bench) {
    for connected in [true, false] {
        let mut workload = bench.forgetful();
        let dialled = bench.replica.dialled().await;
        if connected {
            let mut session = dialled.welcome(&[]).await;
            workload.says("connected to db-0").await;
            workload.tell("leave").await;
            while !matches!(session.said().await, Some(Said::Goodbye(_))) {}
            session.refuse(Status::failed_precondition("event E has yet to put it back")).await;
            workload.says("the registration was not taken back: event E has yet to put it back").await;
        } else {
            workload.tell("leave").await;
            let said = workload.line().await.unwrap();
            assert!(said.starts_with("the workload was not connected, so nothing was taken back: "), "{said}");
            assert!(said.ends_with("; the registration of an earlier run, if there is one, stays"), "{said}");
            drop(dialled);
        }
        assert_eq!(workload.line().await, None);
    }
}

async fn a_workload_that_leaves_a_replica_that_stops_is_told_so(mut bench: Bench) {
    let mut workload = bench.forgetful();
    let mut session = bench.replica.session().await;
    workload.says("connected to db-0").await;
    workload.tell("leave").await;
    while !matches!(session.said().await, Some(Said::Goodbye(_))) {}
    session.tell(Tell::GoAway(v1::GoAway { reason: "the replica stops".into(), after_ms: 10 })).await;
    drop(session);
    workload.says("the registration was not taken back: the replica stops").await;
    assert_eq!(workload.line().await, None);
}

async fn a_workload_that_leaves_says_so(mut bench: Bench) {
    for (word, unregister) in [("stop", false), ("leave", true)] {
        let mut workload = bench.forgetful();
        let mut session = bench.replica.session().await;
        workload.says("connected to db-0").await;
        workload.tell(word).await;
        let goodbye = loop {
            match session.said().await {
                Some(Said::Heartbeat(_)) => {}
                other => break other,
            }
        };
        assert_eq!(goodbye, Some(Said::Goodbye(v1::Goodbye { unregister })));
        assert_eq!(session.said().await, None);
        drop(session);
        assert_eq!(workload.line().await, None);
    }
}
