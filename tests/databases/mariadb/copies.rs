//! A copy of lost data is the whole of the data, or nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::super::hook::{DONE, FAILED};
use super::super::stage::{Kind, Stage};
use super::super::trio::{System as _, is_installed};
use super::{MariaDb, by_socket, call};

const DATA: &str = "INSERT INTO app.records VALUES (1, 1), (2, 2);
CREATE TABLE app.odd (a INT PRIMARY KEY, b VARCHAR(20) CHARACTER SET latin1, c BLOB, d FLOAT, e JSON, f BIT(3),
  g TIMESTAMP, h INT AS (a + 1), i TEXT CHARACTER SET utf8mb4, `j``k` DECIMAL(9, 3));
INSERT INTO app.odd (a, b, c, d, e, f, g, i, `j``k`) VALUES
  (1, UNHEX('E9'), UNHEX('00FF0A0D09'), 0.1, '{\"a\": 1}', b'101', '2026-01-01 00:00:00', UNHEX('F09F9880'), 1.5),
  (2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (3, '', '', 0, '1', 0, '2026-01-01 00:00:00', '', 0);
CREATE TABLE app.other (a INT) ENGINE = Aria;
CREATE VIEW app.view AS SELECT * FROM app.records;
CREATE TRIGGER app.before_it BEFORE INSERT ON app.other FOR EACH ROW SET @a = 1;
CREATE PROCEDURE app.call_it() SELECT '
-- SET GLOBAL gtid_slave_pos=''9-9-9'';
';
CREATE EVENT app.each_hour ON SCHEDULE EVERY 1 HOUR DO INSERT INTO app.records VALUES (9, 9);
CREATE DATABASE `odd ``name`; CREATE TABLE `odd ``name`.`t;` (a INT)";

/// The server of db-2 is new, and empty.
async fn with_an_empty_member() -> Stage<MariaDb> {
    let mut stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 0, DATA);
    stage.take_away(Kind::Redeploy, 2);
    MariaDb::boot(&stage.trio, 2);
    stage
}

/// A folder with a replacement of `mariadb-dump`, before all other folders in the path.
fn instead_of_the_dump(stage: &Stage<MariaDb>, script: &str) -> String {
    let folder = stage.trio.vms[2].folder.join("bin");
    fs::create_dir_all(&folder).unwrap();
    let program = folder.join("mariadb-dump");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

fn is_untouched(stage: &Stage<MariaDb>) {
    let found = "SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN \
                 ('mysql', 'sys', 'information_schema', 'performance_schema'); SELECT CONCAT(@@gtid_slave_pos, '')";
    assert_eq!(by_socket(&stage.trio, 2, found).trim(), "");
}

/// Names and values with every terminator of a field, a row or a statement elsewhere, text in several encodings, and a
/// routine with a line like a dump's position line.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_copied_and_compared() {
    crate::left_out::long!();
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = with_an_empty_member().await;
    by_socket(&stage.trio, 2, "SET GLOBAL event_scheduler = ON");
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert_eq!(status, DONE, "{said}");
    let all = "SELECT status FROM information_schema.events WHERE event_name = 'each_hour'; SELECT @@event_scheduler; \
               SELECT HEX(b), HEX(c), d, e, f + 0, g, h, HEX(i), `j``k` FROM app.odd; SHOW TABLES FROM `odd ``name`; \
               SELECT @@gtid_binlog_pos = @@gtid_slave_pos; SELECT schema_comment FROM information_schema.schemata";
    let ours = by_socket(&stage.trio, 2, all);
    assert!(ours.starts_with("SLAVESIDE_DISABLED\nON\nE9\t00FF0A0D09\t0.1\t"), "{ours}");
    assert!(ours.contains("\nt;\n1\n") && !ours.contains("half of a copy"), "{ours}");
    // The restored member is as good as any other: the next to lose its data gets the data from there.
    by_socket(&stage.trio, 1, "STOP SLAVE");
    let (status, said) = call(&stage, 0, "failover", &[]);
    assert_eq!((status, stage.primary()), (DONE, 2), "{said}");
}

/// A dump of views which refer to dropped objects fails at the first such view.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_dump_that_fails_leaves_everything_untouched() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = with_an_empty_member().await;
    by_socket(
        &stage.trio,
        0,
        "CREATE TABLE app.t (a INT); CREATE VIEW app.broken AS SELECT a FROM app.t; DROP TABLE app.t",
    );
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert!(status == FAILED && said.contains("1356") && said.contains("app.broken"), "{status:?} {said}");
    is_untouched(&stage);
    by_socket(&stage.trio, 0, "DROP VIEW app.broken");
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert_eq!(status, DONE, "{said}");
}

/// Where the program ends early, for want of memory or of space, the output until then loads without an error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_dump_that_is_cut_or_empty_leaves_everything_untouched() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = with_an_empty_member().await;
    for (script, why) in [
        ("/usr/bin/mariadb-dump \"$@\" | head -c 100000", "is cut: its last line is missing"),
        ("exit 0", "is cut: its last line is missing"),
        ("echo '-- Dump completed'", "does not say of which position it is"),
        ("/usr/bin/mariadb-dump \"$@\"; echo 'Got error: 2013' >&2; exit 3", "Got error: 2013"),
    ] {
        let path = instead_of_the_dump(&stage, script);
        let (status, said) = call(&stage, 2, "restore", &[("PATH", &path)]);
        assert!(status == FAILED && said.contains(why), "{script}: {status:?} {said}");
        is_untouched(&stage);
    }
    assert!(!stage.trio.vms[2].folder.join("state/mariadb-copy.sql").exists());
}

/// Data restored by hand in the meantime are not removed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn data_that_came_back_while_others_were_dumped_stay() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = with_an_empty_member().await;
    let script = format!(
        "/usr/bin/mariadb --no-defaults -S {} -e 'CREATE DATABASE brought_back'\nexec /usr/bin/mariadb-dump \"$@\"",
        super::socket(&stage.trio.vms[2])
    );
    let path = instead_of_the_dump(&stage, &script);
    let (status, said) = call(&stage, 2, "restore", &[("PATH", &path)]);
    assert!(status == FAILED && said.contains("is not empty any more"), "{status:?} {said}");
    assert_eq!(by_socket(&stage.trio, 2, "SHOW DATABASES LIKE 'brought%'").trim(), "brought_back");
    assert_eq!(by_socket(&stage.trio, 2, "SHOW DATABASES LIKE 'app'"), "");
}

/// Omissions and changes of a dump are found by a comparison of both members; until then the copy never counts as all
/// of the data.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_copy_that_is_not_the_same_is_told_and_never_used() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = with_an_empty_member().await;
    for (script, why) in [
        (
            "/usr/bin/mariadb-dump \"$@\" | grep -av '^INSERT INTO `records`\\|^(1,1),$\\|^(2,2);$'",
            "app.records: 0 rows",
        ),
        ("/usr/bin/mariadb-dump \"$@\" | sed 's/^(2,2);$/(2,3);/'", "app.records: 2 rows beside 2, or others"),
        ("/usr/bin/mariadb-dump \"$@\" --skip-triggers", "trigger app before_it is not here"),
        ("/usr/bin/mariadb-dump \"$@\" --ignore-table=app.other", "base table app other Aria is not here"),
    ] {
        let path = instead_of_the_dump(&stage, script);
        let (status, said) = call(&stage, 2, "restore", &[("PATH", &path)]);
        assert!(status == FAILED && said.contains(why), "{script}: {status:?} {said}");
        let dry = [("ALLCLEAR_AVOID_VMS", "db-1"), ("ALLCLEAR_MODE", "dry_run")];
        let (status, said) = call(&stage, 0, "failover", &dry);
        assert!(status != DONE && said.contains("db-2: its data are half of a copy"), "{status:?} {said}");
        let (status, said) = call(&stage, 0, "check", &[]);
        assert!(status == FAILED && said.contains("db-2: its data are half of a copy"), "{status:?} {said}");
    }
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert_eq!(status, DONE, "{said}");
    let (status, said) = call(&stage, 2, "check", &[]);
    assert_eq!(status, DONE, "{said}");
}
