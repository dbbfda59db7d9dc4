//! Stray standbys, standbys outside the synchronous set, and the logins and rights of a switch.

use super::super::hook::{BLOCKED, DONE, FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{System as _, ThreeNodeBed, is_installed, until};
use super::{Postgresql, READING, Synchronous, open};

fn ask(trio: &ThreeNodeBed, place: usize, what: &str) -> Vec<Vec<String>> {
    until(what, || {
        open(trio, place, READING).and_then(|mut server| server.ask(what)).map_err(|error| error.to_string())
    })
}

fn set(trio: &ThreeNodeBed, place: usize, name: &str, value: &str) {
    ask(trio, place, &format!("alter system set {name} = '{value}'"));
    ask(trio, place, "select pg_reload_conf()");
}

/// The `primary_conninfo` of a standby with a single server, as the hooks and most users write this setting.
fn follows(trio: &ThreeNodeBed, of: &str, place: usize, options: &str) -> String {
    let vm = &trio.vms[place];
    format!("host={} port={} user=postgres application_name={of} {options}", vm.host(), vm.port())
}

/// The standby is in maintenance while the primary moves, and does not learn of the new primary. The next event would
/// leave the new primary alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_that_missed_a_switch_follows_the_new_primary_and_commits_wait_for_it() {
    if !is_installed::<Synchronous>() {
        return;
    }
    let stage = Stage::<Synchronous>::bare().await;
    let trio = &stage.trio;
    set(trio, 1, "primary_conninfo", &follows(trio, "db-1", 0, ""));
    trio.kill(1);
    let ended = Hook::run::<Synchronous>(trio, 0, "failover", &[("ALLCLEAR_PREFER_VMS", "db-2")]);
    assert_eq!((ended.status, stage.primary()), (DONE, 2), "{}", ended.said);
    assert!(ended.said.contains("db-2 is the primary"), "{}", ended.said);
    Synchronous::boot(trio, 1);
    ask(trio, 1, "select 1");
    Hook::until_done::<Synchronous>(trio, 0, "restore", &[]);
    let waited_for = "select application_name from pg_stat_replication where sync_state <> 'async' order by 1";
    until("commits to wait for both standbys", || match ask(trio, 2, waited_for) {
        both if both == [["db-0"], ["db-1"]] => Ok(()),
        found => Err(format!("{found:?}")),
    });
    let ended = Hook::run::<Synchronous>(trio, 0, "check", &[]);
    assert_eq!(ended.status, DONE, "{}", ended.said);
}

/// A standby follows another standby, under the right name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_that_follows_another_standby_is_told_and_follows_the_primary_before_the_next_event() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    set(trio, 1, "primary_conninfo", &follows(trio, "db-1", 2, ""));
    until("a word about it", || {
        let ended = Hook::run::<Postgresql>(trio, 0, "check", &[]);
        let is_told = ended.said.contains("db-1 streams from db-2 and not from db-0: run its restore hook");
        if ended.status == FAILED && is_told { Ok(()) } else { Err(format!("{ended:?}")) }
    });
    let ended = Hook::run::<Postgresql>(trio, 1, "ready", &[]);
    assert!(ended.status == BLOCKED && ended.said.contains("streams from db-2"), "{ended:?}");
    Hook::until_done::<Postgresql>(trio, 2, "checkpoint", &[]);
    Hook::until_done::<Postgresql>(trio, 1, "ready", &[]);
    let followers = "select application_name from pg_stat_replication where state = 'streaming' order by 1";
    assert_eq!(ask(trio, 0, followers), [["db-1"], ["db-2"]]);
}

/// With an incomplete synchronous set, the failure of one standby stops every commit, although another standby streams.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_for_which_no_commit_waits_is_told_and_takes_the_place_of_the_one_that_leaves() {
    if !is_installed::<Synchronous>() {
        return;
    }
    let stage = Stage::<Synchronous>::bare().await;
    let trio = &stage.trio;
    for (names, mode, told) in [
        (r#"FIRST 1 ("db-2")"#, "FIRST 1", "no commit on db-0 waits for db-1"),
        ("", "FIRST 1", "no commit on db-0 waits for db-1 and db-2"),
        ("2 (*)", "FIRST 1", "make them agree"),
        (r#"ANY 1 ("db-1", "db-2")"#, "FIRST 1", "make them agree"),
    ] {
        set(trio, 0, "synchronous_standby_names", names);
        let ended = Hook::run::<Synchronous>(trio, 0, "check", &[("SYNCHRONOUS", mode)]);
        assert!(ended.status == FAILED && ended.said.contains(told), "{names}: {ended:?}");
    }
    set(trio, 0, "synchronous_standby_names", r#"FIRST 1 ("db-2")"#);
    Hook::until_done::<Synchronous>(trio, 2, "drain", &[]);
    assert_eq!(ask(trio, 0, "show synchronous_standby_names"), [[r#"FIRST 1 ("db-1")"#]]);
}

/// Waiting grants no right and repairs no password: the event of a user would go on without a failover.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_switch_that_lacks_a_right_or_the_login_of_a_standby_fails_before_it_stops_anything() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    ask(trio, 0, "create role weak login in role pg_monitor");
    let unknown = ("PRIMARY_CONNINFO", "user=nobody_known");
    for mode in [("ALLCLEAR_MODE", "dry_run"), ("ALLCLEAR_MODE", "drill")] {
        // A login that exists, and may not replicate; a server without SSL.
        for (setting, told) in [
            (("PGUSER", "weak"), "db-0: weak is no superuser"),
            (unknown, "db-0 cannot come back as a standby of db-2: PRIMARY_CONNINFO"),
            (("PRIMARY_CONNINFO", "user=weak"), "db-0 cannot come back as a standby of db-2: PRIMARY_CONNINFO"),
            (("PRIMARY_CONNINFO", "sslmode=require"), "db-0 cannot come back as a standby of db-2: PRIMARY_CONNINFO"),
        ] {
            let told_to = [setting, mode, ("ALLCLEAR_PREFER_VMS", "db-2")];
            until(told, || match Hook::run::<Postgresql>(trio, 0, "failover", &told_to) {
                ended if ended.status == FAILED && ended.said.contains(told) => Ok(()),
                ended => Err(format!("{ended:?}")),
            });
        }
    }
    for phase in ["checkpoint", "drain"] {
        let ended = Hook::run::<Synchronous>(trio, 1, phase, &[("PGUSER", "weak")]);
        assert_eq!(ended.status, FAILED, "{phase}: {ended:?}");
    }
    assert_eq!(stage.primary(), 0);
    // The VM does not come back, and would take the primary with it.
    let ended = Hook::run::<Postgresql>(trio, 0, "failover", &[unknown, ("ALLCLEAR_EVENT_TYPE", "Preempt")]);
    assert_eq!(ended.status, DONE, "{ended:?}");
    assert_ne!(stage.primary(), 0);
}

/// A switch drops options of a connection, leaves slots behind, and ends the backups of other programs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn whatever_a_switch_would_drop_is_told_before_it() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    let check = || Hook::run::<Postgresql>(trio, 0, "check", &[]);
    let awaited = |status, told: &str| {
        until(told, || match check() {
            ended if ended.status == status && ended.said.contains(told) => Ok(()),
            ended => Err(format!("{ended:?}")),
        });
    };
    set(trio, 1, "primary_conninfo", &follows(trio, "db-1", 0, "sslmode=allow sslsni=1 keepalives_idle=17"));
    awaited(FAILED, "db-1: its primary_conninfo has sslmode, which a switch would drop");
    assert!(!check().said.contains("sslsni"), "the default is no loss");
    set(trio, 1, "primary_conninfo", &follows(trio, "db-1", 0, "sslmode=prefer keepalives_idle=17"));
    awaited(DONE, "db-1: a switch drops keepalives_idle of its primary_conninfo");
    ask(trio, 1, "select pg_create_physical_replication_slot('left', true)");
    awaited(FAILED, "db-1: the replication slot left on this standby has no reader");
    ask(trio, 1, "select pg_drop_replication_slot('left')");
    ask(trio, 0, "select pg_create_physical_replication_slot('archive', true)");
    let start = if ask(trio, 0, "show server_version_num")[0][0].parse::<u32>().unwrap() >= 150_000 {
        "select pg_backup_start('a backup', true)"
    } else {
        "select pg_start_backup('a backup', true, false)"
    };
    let mut backup = open(trio, 0, READING).unwrap();
    backup.ask(start).unwrap();
    let ended = Hook::run::<Postgresql>(trio, 0, "failover", &[("ALLCLEAR_MODE", "dry_run")]);
    let told = "the switch ends 1 base backup; these replication slots stay on db-0: archive";
    assert!(ended.status == DONE && ended.said.contains(told), "{ended:?}");
}
