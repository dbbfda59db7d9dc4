//! Data count as lost only when the server itself reports the loss, at the place of the data.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use super::super::hook::{BLOCKED, DONE, FAILED, Hook};
use super::super::killed::killed_at;
use super::super::stage::{Kind, Stage};
use super::super::trio::{System as _, is_installed};
use super::super::writers::Writers;
use super::{MariaDb, by_socket, call, option_file};

/// An account without SELECT sees no schemas: the stopped member would be emptied, and never be whole again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn data_that_the_account_cannot_see_are_not_lost() {
    crate::left_out::long!();
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    for place in 0..3 {
        let less = "SET sql_log_bin = 0; REVOKE SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* FROM allclear@'%'";
        by_socket(&stage.trio, place, less);
    }
    writers.go_on();
    by_socket(&stage.trio, 2, "STOP SLAVE; RESET SLAVE ALL");
    let rows = "SELECT COUNT(*) FROM app.records";
    let before = by_socket(&stage.trio, 2, rows);
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert!(status == FAILED && said.contains("lacks GRANT SELECT"), "{status:?} {said}");
    assert_eq!(by_socket(&stage.trio, 2, rows), before);
    for place in 0..3 {
        let all = "SET sql_log_bin = 0; GRANT SELECT, SHOW VIEW, TRIGGER, EVENT ON *.* TO allclear@'%'";
        by_socket(&stage.trio, place, all);
    }
    Hook::until_done::<MariaDb>(&stage.trio, 2, "restore", &[]);
    stage.all_is_there(writers);
}

/// A wrong password is no loss either, and a server without a position may hold data regardless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn data_without_an_account_or_a_position_are_left_to_people() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let rows = "INSERT INTO app.records VALUES (1, 1)";
    by_socket(&stage.trio, 0, rows);
    let account = "SET sql_log_bin = 0; ALTER USER allclear@'%' IDENTIFIED BY";
    by_socket(&stage.trio, 2, &format!("STOP SLAVE; {account} 'another'"));
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert!(status == FAILED && said.contains("error 1045") && said.contains("there are data"), "{status:?} {said}");
    let file = format!("mend the account, or [client] of {}", option_file(&stage.trio.vms[2]));
    for phase in ["restore", "failover", "check"] {
        let (status, said) = call(&stage, 2, phase, &[]);
        assert!(status == FAILED && said.contains(&file), "{phase} {status:?} {said}");
    }
    by_socket(&stage.trio, 2, &format!("{account} 'of the hooks'"));
    by_socket(&stage.trio, 2, "RESET SLAVE ALL; RESET MASTER; SET GLOBAL gtid_slave_pos = ''");
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert!(status == FAILED && said.contains("has no GTID position, but it has schemas (app)"), "{status:?} {said}");
    assert_eq!(by_socket(&stage.trio, 2, "SHOW TABLES FROM app").trim(), "records");
}

/// A server started on an empty folder below the mount point: a copy would go there, and the disk be shadowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn an_empty_folder_below_a_disk_that_is_not_mounted_is_not_filled() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let mut stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 0, "INSERT INTO app.records VALUES (1, 1)");
    Hook::until_done::<MariaDb>(&stage.trio, 2, "restore", &[]);
    stage.take_away(Kind::Redeploy, 2);
    MariaDb::boot(&stage.trio, 2);
    let vm = &stage.trio.vms[2];
    let (fstab, data) = (vm.folder.join("fstab"), vm.data());
    let place = vm.folder.join("state/mariadb-place.json");
    let remembered = fs::read_to_string(&place).unwrap();
    fs::write(&fstab, format!("# disks\nUUID=1 / ext4 defaults 0 1\n/dev/sdc1 {} xfs defaults 0 2\n", data.display()))
        .unwrap();
    let listed = [("FSTAB", fstab.to_str().unwrap())];
    let (status, said) = call(&stage, 2, "restore", &listed);
    let expected = format!("{} is not mounted", data.display());
    assert!(status == BLOCKED && said.contains(&expected), "{status:?} {said}");
    let (status, said) = call(&stage, 2, "check", &listed);
    assert_eq!(status, FAILED, "{said}");
    // Without an entry: the data were on a file system of their own at the last observation.
    let on_a_disk = format!("{{\"folder\": \"{0}\", \"mount\": \"{0}\"}}", data.display());
    fs::write(&place, on_a_disk).unwrap();
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert!(status == BLOCKED && said.contains("the data were on the file system at"), "{status:?} {said}");
    // Or the configuration names another folder.
    fs::write(&place, remembered.replace("/data\"", "/somewhere\"")).unwrap();
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert!(status == BLOCKED && said.contains("set it to where they are"), "{status:?} {said}");
    assert_eq!(by_socket(&stage.trio, 2, "SHOW DATABASES LIKE 'app'"), "");
    // An entry which is not mounted at the start does not count.
    fs::write(&place, remembered).unwrap();
    fs::write(&fstab, format!("/dev/sdc1 {} xfs noauto,nofail 0 2\n", data.display())).unwrap();
    let (status, said) = call(&stage, 2, "restore", &listed);
    assert_eq!(status, DONE, "{said}");
    assert_eq!(by_socket(&stage.trio, 2, "SELECT COUNT(*) FROM app.records").trim(), "1");
}

/// A server with its data at a mount point takes the folder lost+found there for a schema, unless `ignore_db_dirs`
/// lists the folder: a new disk would not be empty, and a dump fails at lost+found, which only root may read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn the_folder_of_a_file_system_is_no_schema() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let mut stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 0, "INSERT INTO app.records VALUES (1, 1)");
    stage.take_away(Kind::Redeploy, 2);
    MariaDb::boot(&stage.trio, 2);
    for vm in &stage.trio.vms {
        let roots = vm.data().join("lost+found");
        fs::create_dir(&roots).unwrap();
        fs::set_permissions(&roots, Permissions::from_mode(0o700)).unwrap();
    }
    assert!(by_socket(&stage.trio, 2, "SHOW DATABASES").contains("#mysql50#lost+found"));
    let ended = Hook::killed_where::<MariaDb>(&stage.trio, 2, "restore", "START SLAVE '' UNTIL", &[]);
    assert!(killed_at(&ended).is_some(), "{ended:?}");
    Hook::until_done::<MariaDb>(&stage.trio, 2, "restore", &[]);
    assert_eq!(by_socket(&stage.trio, 2, "SELECT COUNT(*) FROM app.records").trim(), "1");
    assert_eq!(call(&stage, 2, "check", &[]).0, DONE);
}
