//! A new copy of a member with a tablespace: each VM has its own file system at the tablespace's path, here by a mount
//! namespace.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::super::hook::Ended;
use super::super::stage::Stage;
use super::super::trio::{System as _, ThreeNodeBed, VMS, is_installed, until};
use super::{Postgresql, READING, open};

const KILLED: &str = include_str!("../killed.py");
/// The point of a kill: the tablespace has been copied, and the rest is being moved to its place.
const POINT: usize = 20;

fn folder(trio: &ThreeNodeBed, name: &str) -> PathBuf {
    let folder = trio.elsewhere.folder.join(name);
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    trio.own(&folder).unwrap();
    folder
}

/// Runs the hook on the second VM, which has its own tablespace at the place of the primary's tablespace.
fn restore(trio: &ThreeNodeBed, own: &Path, shared: &Path, by: &str) -> Ended {
    let settings = Postgresql::settings(trio, 1).into_iter().map(|(name, value)| format!("{name}='{value}'"));
    let settings: Vec<_> = settings.chain([format!("ALLCLEAR_VM={0} ALLCLEAR_EVENT_RESOURCES={0}", VMS[1])]).collect();
    let user = trio.user.as_ref().unwrap();
    let (hooks, settings) = (trio.vms[1].folder.join("hooks/postgresql.py"), settings.join(" "));
    let rights = format!("setpriv --reuid={} --regid={} --clear-groups", user.uid, user.gid);
    let mount = format!("mount --bind {} {}", own.display(), shared.display());
    let script = format!("{mount} && exec {rights} env {settings} python3 {by} {} restore", hooks.display());
    let output = Command::new("unshare").args(["-m", "sh", "-c", &script]).current_dir("/").output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    Ended { status: output.status.code(), said }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_copy_with_a_tablespace_that_was_cut_off_is_completed() {
    if !is_installed::<Postgresql>() {
        return;
    }
    if !crate::left_out::is_root() {
        return;
    }
    let stage = Stage::<Postgresql>::bare().await;
    let trio = &stage.trio;
    // The standbys would write to the primary's tablespace.
    trio.kill(1);
    trio.kill(2);
    let (shared, own) = (folder(trio, "space"), folder(trio, "own-space"));
    let mut primary = open(trio, 0, READING).unwrap();
    primary.ask(&format!("create tablespace space location '{}'", shared.display())).unwrap();
    primary.ask("create table there tablespace space as select generate_series(1, 1000)").unwrap();
    let version = fs::read_dir(&shared).unwrap().next().unwrap().unwrap().file_name();
    trio.lose_data(1).unwrap();

    // The owner of the file is unknown.
    fs::create_dir(own.join(&version)).unwrap();
    fs::write(own.join(&version).join("somebodys"), "").unwrap();
    let ended = restore(trio, &own, &shared, "");
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(ended.said.contains("nothing was changed") && own.join(&version).join("somebodys").exists(), "{ended:?}");
    fs::remove_dir_all(own.join(&version)).unwrap();

    let killer = trio.vms[1].folder.join("killed.py");
    fs::write(&killer, KILLED).unwrap();
    let ended = restore(trio, &own, &shared, &format!("{} {POINT}", killer.display()));
    assert!(ended.said.contains("killed") && own.join(&version).exists(), "{ended:?}");
    let ended = restore(trio, &own, &shared, "");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let count = until("the copy", || {
        let asked = open(trio, 1, READING).and_then(|mut standby| standby.ask("select count(*) from there"));
        asked.map_err(|error| error.to_string())
    });
    assert_eq!(count, [["1000"]]);
}
