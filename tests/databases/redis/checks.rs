//! Obstacles to the end of a switch are found before its start, and reported.

use allclear::testbed::redis::ask;
use nix::unistd::{Uid, chown};

use super::super::hook::{BLOCKED, DONE, Ended, FAILED, Hook};
use super::super::stage::Stage;
use super::super::trio::{System, ThreeNodeBed, VMS, is_installed, until};
use super::{Redis, Sentinel};

type More<'m> = &'m [(&'m str, &'m str)];

fn check<S: System>(trio: &ThreeNodeBed, more: More<'_>) -> Ended {
    Hook::run::<S>(trio, 0, "check", more)
}

/// The check finds the fault `wrong`, and finds nothing after `mended`.
fn is_found(
    trio: &ThreeNodeBed,
    wrong: &[(usize, &[&str])],
    more: More<'_>,
    reason: &str,
    mended: &[(usize, &[&str])],
) {
    for (place, words) in wrong {
        ask(trio, *place, words).unwrap();
    }
    let ended = check::<Redis>(trio, more);
    assert!(ended.status == FAILED && ended.said.contains(reason), "not {reason:?}: {ended:?}");
    for (place, words) in mended {
        ask(trio, *place, words).unwrap();
    }
    until("all to be well", || match check::<Redis>(trio, &[]) {
        Ended { status: DONE, .. } => Ok(()),
        ended => Err(ended.said),
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_a_switch_would_stumble_over_is_found_by_the_check_before_it() {
    crate::left_out::long!();
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let trio = &stage.trio;
    is_found(trio, &[], &[("REDIS_PASSWORD", "none")], "without any password configured", &[]);
    let members = trio.members(0);
    let two = members.rsplit_once(' ').unwrap().0;
    is_found(trio, &[], &[("MEMBERS", two)], "which MEMBERS does not name", &[]);
    is_found(trio, &[], &[("STATE_DIR", "/proc/nowhere")], "cannot be written by the user of the hooks", &[]);
    let parts: [(&[&str], &str, &[&str]); 5] = [
        (&["CONFIG", "SET", "appendonly", "no"], "keeps nothing on its disk", &["CONFIG", "SET", "appendonly", "yes"]),
        (
            &["CONFIG", "SET", "min-replicas-to-write", "2"],
            "with one VM away 1 are left",
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
        ),
        (
            &["CONFIG", "SET", "replica-read-only", "no"],
            "would take writes, and lose them",
            &["CONFIG", "SET", "replica-read-only", "yes"],
        ),
        (&["CONFIG", "SET", "masterauth", "wrong"], "could not follow db-1: ", &["CONFIG", "SET", "masterauth", ""]),
        (&["REPLICAOF", "127.0.0.1", "1"], "no member is a primary", &["REPLICAOF", "NO", "ONE"]),
    ];
    for (wrong, reason, mended) in parts {
        is_found(trio, &[(0, wrong)], &[], reason, &[(0, mended)]);
    }
    if Uid::effective().is_root() {
        let data = trio.vms[0].data();
        chown(&data, Some(Uid::from_raw(0)), None).unwrap();
        let ended = check::<Redis>(trio, &[]);
        assert!(ended.status == FAILED && ended.said.contains("no right to write in"), "{ended:?}");
        trio.own(&data).unwrap();
    }
}

/// The account may do all but the last steps; everything is still writable when the missing right is found.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_or_a_password_that_is_missing_is_found_before_anything_is_stopped() {
    crate::left_out::long!();
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let trio = &stage.trio;
    let account = [("REDIS_USER", "hooks"), ("REDIS_PASSWORD", "open")];
    let rights = "+info +ping +role +multi +exec +discard +replicaof +config|get +config|set +config|rewrite \
                  +client|list \
                  +client|pause +client|unpause +client|kill";
    let all: Vec<_> =
        ["ACL", "SETUSER", "hooks", "reset", "on", ">open"].into_iter().chain(rights.split(' ')).collect();
    let give_all = || (0..VMS.len()).for_each(|place| drop(ask(trio, place, &all).unwrap()));
    give_all();
    assert_eq!(check::<Redis>(trio, &account).status, DONE);
    for (right, name) in
        [("config|rewrite", "CONFIG REWRITE"), ("replicaof", "REPLICAOF"), ("client|kill", "CLIENT KILL")]
    {
        for place in [0, 1, 2] {
            ask(trio, place, &["ACL", "SETUSER", "hooks", &format!("-{right}")]).unwrap();
        }
        let dry = [account[0], account[1], ("ALLCLEAR_MODE", "dry_run")];
        for ended in [
            check::<Redis>(trio, &account),
            Hook::run::<Redis>(trio, 0, "failover", &dry),
            Hook::run::<Redis>(trio, 0, "failover", &account),
        ] {
            let is_told = ended.said.contains(name) && ended.said.contains("NOPERM");
            assert!(ended.status == FAILED && is_told, "{right}: {ended:?}");
        }
        assert_eq!(stage.primary(), 0);
        give_all();
    }
    // No wait repairs a password, so an event waits for a person; and the member serves all the same.
    let wrong = [account[0], ("REDIS_PASSWORD", "wrong")];
    let ended = Hook::run::<Redis>(trio, 0, "failover", &wrong);
    assert!(ended.status == FAILED && ended.said.contains("WRONGPASS"), "{ended:?}");
    let ended = Hook::run::<Redis>(trio, 0, "ready", &wrong);
    assert!(ended.status == DONE && ended.said.contains("WRONGPASS"), "{ended:?}");
    for phase in ["failover", "drain", "restore", "ready"] {
        Hook::until_done::<Redis>(trio, 0, phase, &account);
    }
    assert_ne!(stage.primary(), 0);
}

/// The reason of a broken link is in the log of the replica alone; the hook repeats the replica's attempt.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn the_primary_s_own_words_to_a_replica_that_it_refuses_are_the_reason() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let trio = &stage.trio;
    let words: [(&[&str], &str); 3] = [
        (&["CONFIG", "SET", "masterauth", ""], "NOAUTH Authentication required"),
        (&["CONFIG", "SET", "masterauth", "wrong"], "WRONGPASS invalid username-password pair"),
        (&["CONFIG", "SET", "masterauth", "limited"], "NOPERM"),
    ];
    ask(trio, 0, &["ACL", "SETUSER", "link", "on", ">limited", "+ping"]).unwrap();
    ask(trio, 0, &["ACL", "SETUSER", "hooks", "on", ">open", "~*", "+@all"]).unwrap();
    ask(trio, 0, &["ACL", "SETUSER", "default", "resetpass", ">secret"]).unwrap();
    for place in [1, 2] {
        ask(trio, place, &["ACL", "SETUSER", "hooks", "on", ">open", "~*", "+@all"]).unwrap();
    }
    let account = [("REDIS_USER", "hooks"), ("REDIS_PASSWORD", "open"), ("ALLCLEAR_TIME_LEFT_MS", "4000")];
    for (setting, reason) in words {
        for place in [1, 2] {
            ask(trio, place, setting).unwrap();
            let user = if reason == "NOPERM" { "link" } else { "" };
            ask(trio, place, &["CONFIG", "SET", "masteruser", user]).unwrap();
            ask(trio, place, &["CLIENT", "KILL", "TYPE", "master"]).unwrap();
        }
        for (place, phase) in [(0, "failover"), (1, "ready"), (1, "restore"), (0, "check")] {
            // Waiting repairs no password: a failover that is blocked would be left out after the budget.
            let is_it = |status| if phase == "failover" { status == FAILED } else { status != DONE };
            until("the reason", || match Hook::run::<Redis>(trio, place, phase, &account) {
                ended if is_it(ended.status) && ended.said.contains(reason) => Ok(()),
                ended => Err(format!("{phase}: {ended:?}")),
            });
        }
    }
}

/// Sentinels find each other and never forget a Sentinel: a later addition takes part in every vote, unknown to the
/// settings.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_sentinel_that_the_settings_do_not_name_is_found() {
    if !is_installed::<Sentinel>() {
        return;
    }
    let stage = Stage::<Sentinel>::bare().await;
    let trio = &stage.trio;
    until("all to be well", || match check::<Sentinel>(trio, &[]) {
        Ended { status: DONE, .. } => Ok(()),
        ended => Err(ended.said),
    });
    let sentinels = trio.members(super::WATCHER);
    let two = sentinels.rsplit_once(' ').unwrap().0;
    let wrong: [((&str, &str), &str); 4] = [
        (("SENTINELS", ""), "a Sentinel watches db-0"),
        (("SENTINELS", two), "which SENTINELS does not name"),
        (("SENTINEL_NAME", "another"), "No such master with that name"),
        (("PRIORITIES", "db-1=10"), "replica-priority 100, and by the settings 10"),
    ];
    for (setting, reason) in wrong {
        let ended = check::<Sentinel>(trio, &[setting]);
        assert!(ended.status == FAILED && ended.said.contains(reason), "not {reason:?}: {ended:?}");
    }
    // A refusal of Sentinel fails a switch, and says nothing about a member that serves.
    let refused = [("SENTINEL_PASSWORD", "none")];
    for (place, phase, status) in [(0, "failover", FAILED), (0, "ready", DONE), (1, "ready", DONE)] {
        let ended = Hook::run::<Sentinel>(trio, place, phase, &refused);
        assert!(ended.status == status && ended.said.contains("ERR AUTH"), "{place} {phase}: {ended:?}");
    }
    let ended = Hook::run::<Sentinel>(trio, 0, "failover", &[("SENTINELS", "")]);
    assert!(ended.status == FAILED && ended.said.contains("a Sentinel watches db-0"), "{ended:?}");
    assert_eq!(stage.primary(), 0);
    // A replica of nobody is not ready.
    ask(trio, 1, &["REPLICAOF", "127.0.0.1", "1"]).unwrap();
    let ended = Hook::run::<Sentinel>(trio, 1, "ready", &refused);
    assert_eq!(ended.status, BLOCKED, "{ended:?}");
}

/// A replica may announce itself by a name, as with Sentinel's resolve-hostnames; any spelling of the address is a
/// name.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_member_that_is_announced_by_a_name_is_known_by_its_address() {
    if !is_installed::<Redis>() {
        return;
    }
    let stage = Stage::<Redis>::bare().await;
    let trio = &stage.trio;
    let last = trio.vms[0].host().rsplit_once('.').unwrap().1;
    let name = format!("127.{last}");
    for place in [1, 2] {
        ask(trio, place, &["CONFIG", "SET", "replica-announce-ip", &name]).unwrap();
        ask(trio, place, &["CLIENT", "KILL", "TYPE", "master"]).unwrap();
    }
    until("names", || {
        let told = ask(trio, 0, &["INFO", "replication"]).map_err(|error| error.to_string())?;
        let count = told[0].matches(&format!("ip={name},")).count();
        if count == 2 && told[0].matches("state=online").count() == 2 { Ok(()) } else { Err(told[0].clone()) }
    });
    let ended = check::<Redis>(trio, &[]);
    assert_eq!(ended.status, DONE, "{ended:?}");
    for phase in ["failover", "restore", "ready"] {
        Hook::until_done::<Redis>(trio, 0, phase, &[]);
    }
    assert_ne!(stage.primary(), 0);
}
