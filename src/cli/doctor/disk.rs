//! Whether the data directory can be used, the free space, and the duration of a sync of the disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::statvfs::statvfs;
use nix::unistd::{AccessFlags, User, access, geteuid};

use super::finding::Finding;
use super::mounts;
use allclear_server::config::Config;
use allclear_server::files;
use allclear_server::replica::clock;

const CHECK: &str = "disk";
const WITHIN: Duration = Duration::from_secs(15);
/// A smaller space is soon used up: a snapshot is written beside the previous snapshot.
const TOO_LITTLE: u64 = 64 << 20;
const LITTLE: u64 = 512 << 20;
const SYNCS: u32 = 10;
/// A data directory has far fewer files and folders.
const LOOKED_AT: usize = 10_000;
/// A leader writes before each decision; slower writes begin to disturb elections.
const SLOW: Duration = Duration::from_millis(100);

pub(super) async fn findings(config: &Config) -> Vec<Finding> {
    let folder = config.replica.data_dir.clone();
    let shown = folder.display().to_string();
    let looked = tokio::task::spawn_blocking(move || look(&folder));
    match tokio::time::timeout(WITHIN, looked).await {
        Ok(Ok(findings)) => findings,
        Ok(Err(error)) => vec![Finding::fail(CHECK, format!("{shown}: {error}"), "report this fault")],
        Err(_) => {
            let what = format!("{shown} has not answered within {WITHIN:?}");
            vec![Finding::fail(CHECK, what, "check the disk with `dmesg` and `iostat`")]
        }
    }
}

fn look(folder: &Path) -> Vec<Finding> {
    if let Err(why) = files::check_way(folder) {
        return vec![Finding::fail(
            CHECK,
            why.to_string(),
            "do so: a replica refuses to start on a path that other users can exchange",
        )];
    }
    if let Some(missing) = mounts::finding(folder) {
        return vec![missing];
    }
    match fs::metadata(folder) {
        Ok(found) if !found.is_dir() => {
            let what = format!("{} is no directory", folder.display());
            vec![Finding::fail(CHECK, what, "correct replica.data_dir")]
        }
        Ok(found) => {
            let mut findings = vec![owner(folder, found.uid())];
            findings.extend(unusable(folder));
            findings.extend(room(folder));
            findings.push(sureness(folder));
            findings
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let mut findings = vec![to_be_made(CHECK, folder, "replica.data_dir")];
            findings.extend(existing(folder).and_then(|above| room(&above)));
            findings
        }
        Err(error) => {
            let what = format!("{} cannot be examined: {error}", folder.display());
            vec![Finding::fail(CHECK, what, "run doctor as the replica's user, or correct the modes")]
        }
    }
}

/// Whether a missing path can be made.
pub(super) fn to_be_made(check: &'static str, path: &Path, key: &str) -> Finding {
    let Some(above) = existing(path) else {
        return Finding::fail(check, format!("{} can never exist", path.display()), format!("correct {key}"));
    };
    let (shown, above_shown) = (path.display(), above.display());
    match access(&above, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) => Finding::ok(check, format!("{shown} does not exist yet, and can be made in {above_shown}")),
        Err(error) => {
            let what = format!("{shown} does not exist, and cannot be made in {above_shown}: {}", error.desc());
            let user = geteuid();
            Finding::fail(
                check,
                what,
                format!("make the folder for the replica's user (doctor ran as uid {user}), or correct {key}"),
            )
        }
    }
}

fn existing(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).find(|above| above.is_dir()).map(Path::to_path_buf)
}

fn owner(folder: &Path, uid: u32) -> Finding {
    let (own, shown) = (geteuid(), folder.display());
    match access(folder, AccessFlags::W_OK | AccessFlags::X_OK) {
        Err(error) => {
            let what = format!("{shown} belongs to uid {uid}, and uid {own} may not write there: {}", error.desc());
            Finding::fail(CHECK, what, change_owner(folder))
        }
        Ok(()) if uid != own.as_raw() => {
            let what = format!("{shown} can be written, but belongs to uid {uid}, and doctor runs as uid {own}");
            Finding::warn(CHECK, what, "always run the replica as the owner of the data directory")
        }
        Ok(()) => Finding::ok(CHECK, format!("{shown} can be written, and belongs to uid {uid}")),
    }
}

/// How to give the data directory to the user of this process.
fn change_owner(folder: &Path) -> String {
    let own = geteuid();
    let name = User::from_uid(own).ok().flatten().map_or_else(|| own.to_string(), |user| user.name);
    format!(
        "if {name} is the replica's user, run `chown -R {name} {}`; otherwise run doctor as the replica's user",
        folder.display()
    )
}

/// The files and folders in the data directory without access for this user, which stop a replica at the start or at the
/// first hook: for example files of a replica that was once started as root.
fn unusable(folder: &Path) -> Option<Finding> {
    let (mut folders, mut found, mut looked_at) = (vec![folder.to_path_buf()], Vec::new(), 0);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten().take(LOOKED_AT.saturating_sub(looked_at)) {
            looked_at += 1;
            let (path, Ok(entry)) = (entry.path(), entry.metadata()) else { continue };
            // The folder of ext4 in the root of each disk is root's.
            if path == folder.join("lost+found") {
                continue;
            }
            let needed = AccessFlags::R_OK
                | if entry.is_dir() { AccessFlags::W_OK | AccessFlags::X_OK } else { AccessFlags::W_OK };
            if !entry.is_symlink() && access(&path, needed).is_err() {
                found.push(format!("{} (uid {}, mode {:04o})", path.display(), entry.uid(), entry.mode() & 0o7777));
            } else if entry.is_dir() {
                folders.push(path);
            }
        }
    }
    let first = found.first()?;
    let more = if found.len() > 1 { format!(" and {} more", found.len() - 1) } else { String::new() };
    let what = format!("uid {} may not read and write {first}{more}", geteuid());
    Some(Finding::fail(CHECK, what, change_owner(folder)))
}

fn room(folder: &Path) -> Option<Finding> {
    let found = statvfs(folder).ok()?;
    let free = found.blocks_available().saturating_mul(found.fragment_size());
    let what = format!("{} MiB are free at {}", free >> 20, folder.display());
    let advice = "free some space: a full disk stops the replica";
    Some(match free {
        ..TOO_LITTLE => Finding::fail(CHECK, what, advice),
        TOO_LITTLE..LITTLE => Finding::warn(CHECK, what, advice),
        LITTLE.. => Finding::ok(CHECK, what),
    })
}

/// The duration of a small write until the data survives a power cut.
fn sureness(folder: &Path) -> Finding {
    let path = folder.join(format!(".doctor-{}", std::process::id()));
    let timed = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).and_then(|file| {
        let timed = syncs(file);
        fs::remove_file(&path)?;
        timed
    });
    match timed {
        Ok(each) if each > SLOW => {
            let what = format!("an fsync takes {each:?} (mean of {SYNCS})");
            Finding::warn(CHECK, what, "put replica.data_dir on a faster disk, or raise cluster.election_timeout")
        }
        Ok(each) => Finding::ok(CHECK, format!("an fsync takes {each:?} (mean of {SYNCS})")),
        Err(error) => {
            let what = format!("a file in {} cannot be written: {error}", folder.display());
            Finding::fail(CHECK, what, "check the disk, the free space and the modes")
        }
    }
}

fn syncs(mut file: File) -> io::Result<Duration> {
    let began = clock::monotonic();
    for _ in 0..SYNCS {
        file.write_all(&[0; 4096])?;
        file.sync_data()?;
    }
    Ok(clock::monotonic().since(began) / SYNCS)
}
