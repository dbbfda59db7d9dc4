//! The Patroni adapter against a stand-in.

mod cluster;

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use allclear::core::model::drill::Mode;
use allclear::core::model::workload::{Intent, Phase};
use allclear::hooks::{Adapter, HookCommand, HookOutcome, HookTask, HookUpdate, HttpHook};
use allclear::http_client::{Login, Options};
use serde_json::json;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use self::cluster::{Accepted, CHECK, Patroni};
use crate::workloads::bench::{ATTEMPT, Bench, end, next, task, until, within};
use crate::workloads::certificates::Authority;

fn asking(intent: Intent, phase: Phase) -> HookTask {
    HookTask { intent, phase, ..task() }
}

#[tokio::test]
async fn the_leader_is_moved_to_the_preferred_standby_and_that_can_be_confirmed() {
    let patroni = Patroni::start().await;
    assert_eq!(patroni.outcome(&asking(Intent::Confirm, Phase::Failover)).await, HookOutcome::NotDone);
    assert_eq!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, HookOutcome::Done);
    assert_eq!(patroni.switchovers(), [json!({ "leader": "db-0", "candidate": "db-2" })]);
    assert_eq!(patroni.outcome(&asking(Intent::Confirm, Phase::Failover)).await, HookOutcome::Done);
    assert_eq!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, HookOutcome::NotApplicable);
    assert_eq!(patroni.switchovers().len(), 1);
}

/// A configuration may give members an address without a host, or an address that every machine has.
#[tokio::test]
async fn members_that_advertise_no_address_of_their_own_are_asked_through_this_vms_patroni() {
    for advertised in ["http://:8008/patroni", "http://0.0.0.0:1/patroni"] {
        let patroni = Patroni::start().await;
        patroni.with(|cluster| cluster.advertised = Some(advertised));
        assert_eq!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, HookOutcome::Done, "{advertised}");
        assert_eq!(patroni.switchovers().len(), 1);
    }
}

/// Behind an address that every machine has, the leader answers for the followers, and the leader itself does not lag.
#[tokio::test]
async fn nobody_is_fit_by_the_word_of_another_member() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| cluster.lag = json!("unknown"));
    let ended = patroni.outcome(&asking(Intent::Run, Phase::Failover)).await;
    assert!(matches!(&ended, HookOutcome::Blocked(why) if why.contains("the lag of db-1 is unknown")), "{ended}");
    assert_eq!(patroni.switchovers().len(), 0);
}

#[tokio::test]
async fn without_a_fit_standby_nothing_is_asked_for() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| cluster.states = vec![("db-0", ""), ("db-1", "starting"), ("db-2", "stopped")]);
    let ended = patroni.outcome(&asking(Intent::Run, Phase::Failover)).await;
    assert!(matches!(&ended, HookOutcome::Blocked(why) if why.contains("db-1 is not streaming")), "{ended}");
    assert_eq!(patroni.switchovers().len(), 0);
}

const NOT_SYNCHRONOUS: (u16, &str) = (412, "candidate name does not match with sync_standby");
const NO_GOOD: (u16, &str) = (412, "switchover is not possible: no good candidates have been found");
const FAILED: (u16, &str) = (503, "Switchover failed");

#[tokio::test]
async fn a_candidate_that_is_refused_is_passed_over_for_the_next_one() {
    for refusal in [NOT_SYNCHRONOUS, NO_GOOD, FAILED] {
        let patroni = Patroni::start().await;
        patroni.with(|cluster| cluster.refusals = BTreeMap::from([("db-2", refusal)]));
        assert_eq!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, HookOutcome::Done, "{refusal:?}");
        let asked = patroni.switchovers().into_iter().map(|wanted| wanted["candidate"].clone());
        assert_eq!(asked.collect::<Vec<_>>(), ["db-2", "db-1"]);
    }
}

#[tokio::test]
async fn where_all_are_refused_each_refusal_is_told() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| cluster.refusals = BTreeMap::from([("db-2", NO_GOOD), ("db-1", FAILED)]));
    let ended = patroni.outcome(&asking(Intent::Run, Phase::Failover)).await;
    let is_told = |why: &String| {
        [("db-2", NO_GOOD), ("db-1", FAILED)].iter().all(|(name, (_, text))| why.contains(name) && why.contains(text))
    };
    assert!(matches!(&ended, HookOutcome::Blocked(why) if is_told(why)), "{ended}");
    assert_eq!(patroni.switchovers().len(), 2);
}

/// Such an attempt has cost writes, so the next candidate waits for the next attempt, and attempts are few.
#[tokio::test]
async fn a_switchover_that_stopped_writes_in_vain_has_failed() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| {
        cluster.refusals = BTreeMap::from([("db-2", FAILED)]);
        cluster.is_stopped_in_vain = true;
    });
    let ended = patroni.outcome(&asking(Intent::Run, Phase::Failover)).await;
    assert!(
        matches!(&ended, HookOutcome::Failed(why) if why.contains("the switchover failed") && why.contains(FAILED.1)),
        "{ended}"
    );
    assert_eq!(patroni.switchovers().len(), 1);
}

#[tokio::test]
async fn a_switchover_whose_answer_is_lost_is_unknown_and_can_be_confirmed() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| cluster.accepted = Accepted::AnswerLost);
    assert!(matches!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, HookOutcome::Unknown(_)));
    assert_eq!(patroni.outcome(&asking(Intent::Confirm, Phase::Failover)).await, HookOutcome::Done);
}

/// Patroni cannot take back a switchover.
#[tokio::test]
async fn a_switchover_that_is_cancelled_after_the_request_is_unknown() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| cluster.accepted = Accepted::NeverMade);
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&asking(Intent::Run, Phase::Failover), &patroni.command(&bench));
    until(|| !patroni.switchovers().is_empty()).await;
    runner.cancel(ATTEMPT);
    let ended = end(&mut reports).await;
    assert!(matches!(&ended, HookOutcome::Unknown(why) if why.contains("cancelled during the switchover")), "{ended}");
}

#[tokio::test]
async fn a_switchover_that_is_cancelled_before_the_request_has_stopped() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let argv = HttpHook { adapter: Adapter::Patroni, ..HttpHook::at(&url) }.command();
    runner.run(&asking(Intent::Run, Phase::Failover), &HookCommand { argv, ..bench.shell("") });
    let (mut connection, _) = silent.accept().await.unwrap();
    connection.read_u8().await.unwrap();
    runner.cancel(ATTEMPT);
    assert_eq!(end(&mut reports).await, HookOutcome::Cancelled);
}

#[tokio::test]
async fn a_dry_run_switches_nothing_over() {
    let patroni = Patroni::start().await;
    let task = HookTask { drill: Some(Mode::DryRun), ..asking(Intent::Run, Phase::Failover) };
    assert_eq!(patroni.outcome(&task).await, HookOutcome::Done);
    let asked = patroni.switchovers();
    assert!(asked.iter().all(|wanted| wanted.get("leader").is_none()) && asked.len() == 1, "{asked:?}");
    patroni.with(|cluster| cluster.refusals = BTreeMap::from([(CHECK, (401, "no auth header received"))]));
    let ended = patroni.outcome(&task).await;
    assert!(matches!(&ended, HookOutcome::Blocked(why) if why.contains("password_file")), "{ended}");
}

#[tokio::test]
async fn a_check_tells_all_that_is_wrong_and_asks_for_no_switchover() {
    let patroni = Patroni::start().await;
    let check = asking(Intent::Run, Phase::Check);
    assert_eq!(patroni.outcome(&check).await, HookOutcome::Done);
    let members = [("db-0", "db-0"), ("db-1", "vm-1"), ("db-9", "vm-9")];
    let members = members.map(|(name, vm)| (name.to_owned(), vm.to_owned())).into();
    let ended = patroni.outcome_of(&check, HttpHook { members, ..HttpHook::default() }).await;
    for part in ["db-2 is not in `members`", "`members` lists db-9 on vm-9", "db-1 is on vm-1, and the replica"] {
        assert!(matches!(&ended, HookOutcome::Failed(why) if why.contains(part)), "{part}: {ended}");
    }
    patroni.with(|cluster| {
        cluster.states = vec![("db-0", ""), ("db-1", "start failed"), ("db-2", "creating replica")];
        cluster.refusals = BTreeMap::from([(CHECK, (401, "no auth header received"))]);
    });
    let ended = patroni.outcome(&check).await;
    for part in [
        "db-1 is not streaming, but in the state \"start failed\"",
        "creating replica",
        "no standby could take over now",
    ] {
        assert!(matches!(&ended, HookOutcome::Failed(why) if why.contains(part)), "{part}: {ended}");
    }
    patroni.with(|cluster| cluster.states[1].1 = "streaming");
    patroni.with(|cluster| cluster.states[2].1 = "streaming");
    let ended = patroni.outcome(&check).await;
    assert!(
        matches!(&ended, HookOutcome::Failed(why) if why.contains("db-0 would refuse a switchover: 401")),
        "{ended}"
    );
    let asked = patroni.switchovers();
    assert!(asked.iter().all(|wanted| wanted.get("leader").is_none()) && !asked.is_empty(), "{asked:?}");
}

#[tokio::test]
async fn over_https_members_are_asked_at_their_own_addresses_with_the_login() {
    let (authority, folder) = (Authority::new(), tempfile::tempdir().unwrap());
    let patroni = Patroni::start_with(Some(authority.server("127.0.0.1"))).await;
    let password_file = folder.path().join("password");
    std::fs::write(&password_file, "open sesame").unwrap();
    std::fs::set_permissions(&password_file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let login = Some(Login::Basic { username: "db".to_owned(), password_file });
    let options = Options { ca: Some(authority.file(folder.path(), "ca.pem")), identity: None, login };
    let hook = HttpHook { options, ..HttpHook::default() };
    assert_eq!(patroni.outcome_of(&asking(Intent::Run, Phase::Failover), hook).await, HookOutcome::Done);
    assert_eq!(patroni.switchovers().len(), 1);
    let posts = patroni.server.requests("POST");
    assert_eq!(posts[0].headers["authorization"], "Basic ZGI6b3BlbiBzZXNhbWU=");
}

#[tokio::test]
async fn a_restore_waits_until_the_member_streams_again() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| {
        cluster.leader = "db-2";
        cluster.states[0].1 = "starting";
    });
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&asking(Intent::Run, Phase::Restore), &patroni.command(&bench));
    let HookUpdate::Progress { text, .. } = next(&mut reports).await else { panic!("it waits") };
    assert_eq!(text.as_deref(), Some("db-0 is not streaming, but in the state \"starting\""));
    patroni.with(|cluster| cluster.states[0].1 = "streaming");
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    assert_eq!(patroni.switchovers().len(), 0);
}

#[tokio::test]
async fn a_restore_ends_at_its_deadline() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| {
        cluster.leader = "db-2";
        cluster.states[0].1 = "starting";
    });
    let task = HookTask { deadline: within(Duration::from_secs(2)), ..asking(Intent::Run, Phase::Restore) };
    assert_eq!(patroni.outcome(&task).await, HookOutcome::TimedOut);
}
