//! Files stored and read by a replica: closed to all other users whatever the umask is, and refused if another user
//! could exchange the file, or has exchanged the file.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::path::{Path, PathBuf};

use super::cluster::Cluster;
use super::somebody::STRANGER;

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// The path and everything below the path.
fn all(path: &Path) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if path.is_dir() {
        found.extend(fs::read_dir(path).unwrap().flat_map(|entry| all(&entry.unwrap().path())));
    }
    found
}

/// Paths on which other users have any permission, with their modes.
fn open_to_others(data: &Path) -> Vec<(PathBuf, u32)> {
    let modes = all(data).into_iter().map(|path| {
        let mode = fs::symlink_metadata(&path).unwrap().mode() & 0o7777;
        (path, mode)
    });
    modes.filter(|(_, mode)| mode & 0o077 != 0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_replica_keeps_is_its_own_whatever_the_umask_is_and_closed_where_it_was_open() {
    let mut cluster = Cluster::of(&["db-0"]).cold().await;
    let data = cluster.folder.path().join("0.data");
    let program = cluster.folder.path().join("without-umask");
    let script = format!("#!/bin/sh\numask 000\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_allclear"));
    fs::write(&program, script).unwrap();
    set(&program, 0o755);
    cluster.replica_runs(0, &program);
    cluster.start(0);
    cluster.ready().await;
    assert!(all(&data).len() > 3, "{:?}", all(&data));
    assert_eq!(open_to_others(&data), []);
    cluster.kill(0);
    for path in all(&data) {
        set(&path, if path.is_dir() { 0o755 } else { 0o644 });
    }
    cluster.start(0);
    cluster.ready().await;
    let kept: Vec<_> =
        open_to_others(&data).into_iter().filter(|(path, _)| path.parent() != Some(&data.join("hooks"))).collect();
    assert_eq!(kept, []);
}

/// The replica ends by itself, and logs the reason.
fn is_refused(cluster: &mut Cluster, why: &str) {
    let before = cluster.log(0).len();
    cluster.start(0);
    let ended = cluster.waits_for_the_end(0);
    let said = cluster.log(0)[before..].to_owned();
    assert!(!ended.success() && said.contains(why), "{why}: {ended} {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_somebody_else_could_exchange_is_refused_and_left_as_it_is() {
    let mut cluster = Cluster::of(&["db-0"]).start().await;
    cluster.kill(0);
    let folder = cluster.folder.path().to_owned();
    let (data, victim) = (folder.join("0.data"), folder.join("victim"));
    fs::write(&victim, "precious").unwrap();

    let stored = data.join("consensus.redb");
    fs::rename(&stored, folder.join("aside")).unwrap();
    symlink(&victim, &stored).unwrap();
    is_refused(&mut cluster, "consensus.redb is a symbolic link");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
    fs::remove_file(&stored).unwrap();
    fs::rename(folder.join("aside"), &stored).unwrap();

    set(&stored, 0o666);
    is_refused(
        &mut cluster,
        "consensus.redb can be written by every user of this machine, so its content could be replaced",
    );
    set(&stored, 0o600);
    set(&folder, 0o777);
    is_refused(&mut cluster, "chmod o-w it");
    set(&folder, 0o755);
    if crate::left_out::is_root() {
        for path in [&stored, &data, &data.join("hooks"), &cluster.configuration(0)] {
            chown(path, Some(STRANGER), Some(STRANGER)).unwrap();
            is_refused(&mut cluster, &format!("{} belongs to uid {STRANGER}", path.display()));
            chown(path, Some(0), Some(0)).unwrap();
        }
        chown(&folder, Some(0), Some(STRANGER)).unwrap();
        set(&folder, 0o775);
        is_refused(&mut cluster, "can be written by its group");
        set(&folder, 0o755);
    }
    cluster.start(0);
    cluster.ready().await;
}
