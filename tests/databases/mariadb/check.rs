//! Faults are reported before an event.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

use super::super::hook::{DONE, FAILED};
use super::super::stage::Stage;
use super::super::trio::{find, is_installed, until};
use super::{MariaDb, REQUIRED, by_socket, call, option_file, socket, start, start_with};

fn finds(stage: &Stage<MariaDb>, place: usize, more: &[(&str, &str)], wrong: &str) {
    let (status, said) = call(stage, place, "check", more);
    assert!(status == FAILED && said.contains(wrong), "{wrong}: {status:?} {said}");
}

/// No hook fails on a doubt.
fn doubts(stage: &Stage<MariaDb>, told: &[&str]) {
    let (status, said) = call(stage, 0, "check", &[]);
    assert!(status == DONE && told.iter().all(|doubt| said.contains(doubt)), "{told:?}: {status:?} {said}");
}

/// A server of these options gets no warning, see the next test.
#[test]
fn the_documents_have_the_options_of_the_tested_servers() {
    for text in [include_str!("../../../deploy/hooks/README.md"), include_str!("../../../deploy/hooks/mariadb.toml")] {
        let lines = text.split("[mariadb]\n").nth(1).unwrap().lines().map(|line| line.trim_start_matches(['#', ' ']));
        let settings = lines.map_while(|line| line.split('#').next().unwrap().split_once('='));
        let options = settings.map(|(name, value)| format!("--{}={}", name.trim().replace('_', "-"), value.trim()));
        assert_eq!(options.filter(|option| option != "--server-id=1").collect::<Vec<_>>(), REQUIRED);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn each_thing_that_is_wrong_is_told_with_what_to_do() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    for place in 0..3 {
        let (status, said) = call(&stage, place, "check", &[]);
        assert!(status == DONE && !said.contains("sync_binlog"), "{status:?} {said}");
    }
    let file = option_file(&stage.trio.vms[0]);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    finds(&stage, 0, &[], &format!("chmod 600 {file}"));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    finds(&stage, 0, &[("OPTION_FILE", "/no/such/file")], "No such file");
    if stage.trio.user.is_some() {
        chown(&file, Some(0), Some(0)).unwrap();
        finds(&stage, 0, &[], "Permission denied");
        stage.trio.own(file.as_ref()).unwrap();
    }
    finds(&stage, 0, &[("STATE_DIR", "/proc/none")], "may not write in /proc, where STATE_DIR is");
    finds(&stage, 0, &[("SOCKET", "/no/such/sock")], &format!("the server has {}", socket(&stage.trio.vms[0])));
    finds(&stage, 0, &[("SOCKET", &socket(&stage.trio.vms[1]))], "is not the one that MEMBERS has as db-0");
    finds(&stage, 0, &[("SEMI_SYNC_MS", "1000")], "rpl_semi_sync_master_enabled is off");
    let programs = stage.trio.vms[0].folder.join("programs");
    fs::create_dir(&programs).unwrap();
    for name in ["setsid", "setpriv", "python3", "mariadb"] {
        symlink(find(name).unwrap(), programs.join(name)).unwrap();
    }
    finds(&stage, 0, &[("PATH", programs.to_str().unwrap())], "mariadb-dump is not installed");
    let swapped = stage.trio.members(0).replace("db-1", "db-9").replace("db-2", "db-1").replace("db-9", "db-2");
    let (status, said) = call(&stage, 0, "check", &[("MEMBERS", &swapped)]);
    assert_eq!(status, DONE, "which of two others is which cannot be told here: {said}");
    finds(&stage, 1, &[("MEMBERS", &swapped)], "is not the one that MEMBERS has as db-1");

    by_socket(&stage.trio, 0, "GRANT ALL PRIVILEGES ON *.* TO app@'%'");
    finds(&stage, 0, &[], "read_only does not hold app@%");
    assert_eq!(call(&stage, 0, "check", &[("ADMINS", "root@localhost mysql@localhost app@%")]).0, DONE);
    by_socket(&stage.trio, 0, "REVOKE ALL PRIVILEGES ON *.* FROM app@'%'");
    by_socket(
        &stage.trio,
        0,
        "SET GLOBAL sync_binlog = 0; CREATE EVENT app.hourly ON SCHEDULE EVERY 1 HOUR DO SELECT 1",
    );
    doubts(
        &stage,
        &[
            "db-0: innodb_flush_log_at_trx_commit or sync_binlog is not 1",
            "new primary, to be enabled there: app.hourly",
        ],
    );
    by_socket(&stage.trio, 0, "SET GLOBAL sync_binlog = 1; ALTER EVENT app.hourly DISABLE ON SLAVE");
    doubts(&stage, &["db-0: the scheduled event app.hourly is disabled since a switch"]);
    by_socket(&stage.trio, 0, "SET GLOBAL rpl_semi_sync_master_enabled = 1");
    finds(&stage, 1, &[], "set SEMI_SYNC_MS");
    by_socket(&stage.trio, 0, "SET GLOBAL rpl_semi_sync_master_enabled = 0; SET GLOBAL gtid_strict_mode = 0");
    finds(&stage, 1, &[], "db-0: gtid_strict_mode is off");
    by_socket(&stage.trio, 0, "SET GLOBAL gtid_strict_mode = 1");
    by_socket(&stage.trio, 1, "SET GLOBAL read_only = 0");
    finds(&stage, 0, &[], "db-1: it is a replica, and its read_only is off");
    by_socket(&stage.trio, 1, "SET GLOBAL read_only = 1; STOP SLAVE");
    finds(&stage, 0, &[], "db-1: its replication does not run");
    by_socket(&stage.trio, 1, "START SLAVE");
    by_socket(&stage.trio, 1, "STOP SLAVE; CHANGE MASTER TO MASTER_HOST = 'localhost'; START SLAVE");
    finds(&stage, 0, &[], "db-1: it follows localhost:");
    stage.trio.freeze(2);
    finds(&stage, 0, &[("PATIENCE_SECONDS", "1")], "db-2: ");
    stage.trio.thaw(2);
}

/// The configuration is found by the start command, by the files which the command reads, and by the last setting,
/// which counts. Only in the configuration does `read_only` hold after a restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_configuration_without_read_only_is_found_while_it_is_on() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    for (more, wrong) in [
        (&["--skip-read-only"][..], "does not say read_only = 1"),
        (&["--loose-read_only=OFF"], "does not say read_only = 1"),
        (&["--gtid-strict-mode=0"], "does not say gtid_strict_mode = 1"),
        (&["--read-only=0", "--read-only"], ""),
        (
            &["--rpl-semi-sync-slave-enabled", "--version=10.11.8-MariaDB"],
            "its version is 10.11.8-MariaDB: after a crash",
        ),
        (&["--rpl-semi-sync-slave-enabled", "--version=10.11.9-MariaDB"], ""),
        (&["--init-rpl-role=SLAVE", "--version=10.11.9-MariaDB"], "says init_rpl_role = SLAVE: after a crash"),
    ] {
        stage.trio.kill(2);
        start_with(&stage.trio, 2, more);
        by_socket(&stage.trio, 2, "SET GLOBAL read_only = 1; STOP SLAVE; SET GLOBAL gtid_strict_mode = 1; START SLAVE");
        until("replication", || match call(&stage, 0, "check", &[]) {
            (DONE, _) => Ok(()),
            (_, said) => Err(said),
        });
        let (status, said) = call(&stage, 2, "check", &[]);
        assert_eq!(status == DONE, wrong.is_empty(), "{more:?}: {said}");
        assert!(said.contains(wrong), "{more:?}: {said}");
    }
    stage.trio.kill(2);
    start(&stage.trio, 2);
    by_socket(&stage.trio, 2, "SET GLOBAL server_id = 7");
    finds(&stage, 2, &[], "its server_id is 7, and its configuration says 3");
    by_socket(&stage.trio, 2, "SET GLOBAL server_id = 1");
    finds(&stage, 0, &[], "db-0 and db-2 have the same server_id, 1");
}

/// `MySQL` speaks the protocol, and has other GTIDs and statements: neither servers nor clients of `MySQL` are used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_server_or_client_of_mysql_is_refused() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    stage.trio.kill(2);
    start_with(&stage.trio, 2, &["--version=8.0.36"]);
    finds(&stage, 0, &[], "db-2 is not MariaDB's, and MySQL is not supported: 8.0.36");
    stage.trio.kill(2);
    start_with(&stage.trio, 2, &["--version=10.5.23-MariaDB"]);
    finds(&stage, 0, &[], "db-2 is MariaDB 10.5, and has to be 10.6 or later");
    let folder = stage.trio.vms[0].folder.join("bin");
    fs::create_dir(&folder).unwrap();
    let client = folder.join("mariadb");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && exec echo 'mysql  Ver 8.0.36 for Linux on x86_64'\nexec {} \"$@\"\n",
        find("mariadb").unwrap().display()
    );
    fs::write(&client, script).unwrap();
    fs::set_permissions(&client, Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    finds(&stage, 0, &[("PATH", &path)], "mariadb is not MariaDB's, and MySQL is not supported: mysql  Ver 8.0.36");
}
