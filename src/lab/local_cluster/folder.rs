//! The demo's folder, and the processes of the folder.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

use super::servers::folder_of_servers;
use crate::testbed::processes;

/// A path of a socket has at most 108 bytes; names in the folder need some of them.
const LONGEST: usize = 80;
const TRIES: u32 = 100;
/// Environment variable with the path of the folder; marks every process of the demo, whatever program the process
/// runs.
pub(super) const MARK: &str = "ALLCLEAR_DEMO";
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Makes a folder for this demo below the directory of temporary files.
pub(crate) fn make() -> io::Result<PathBuf> {
    make_in(&std::env::temp_dir().canonicalize()?, 0o700)
}

/// Makes a folder below a parent that is open to all users, for servers that run as another user and have to reach
/// their own folder.
pub(crate) fn make_to_pass() -> io::Result<PathBuf> {
    let usual = std::env::temp_dir().canonicalize()?;
    let is_open = |folder: &Path| fs::metadata(folder).is_ok_and(|folder| folder.mode() & 0o001 != 0);
    let parent = if usual.ancestors().all(is_open) { &usual } else { Path::new("/tmp") };
    make_in(parent, 0o711)
}

fn make_in(usual: &Path, mode: u32) -> io::Result<PathBuf> {
    let parent = if usual.as_os_str().len() > LONGEST - 30 { Path::new("/tmp") } else { usual };
    let folder = tempfile::Builder::new()
        .prefix(&format!("allclear-demo-{}-", getpid()))
        .permissions(Permissions::from_mode(mode))
        .tempdir_in(parent)?;
    Ok(folder.keep())
}

/// Kills every process that still runs for this folder: hooks, which continue when their replica ends, and servers
/// started by hooks.
pub(crate) fn end_leftovers(folder: &Path) {
    processes::end(&folder_of_servers(folder));
    for _ in 0..TRIES {
        let left = processes_of(folder);
        if left.is_empty() {
            return;
        }
        for pid in left {
            // Fails only when the process has just ended.
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Other processes of this program with the folder in an argument, and all processes marked with the folder.
fn processes_of(folder: &Path) -> Vec<Pid> {
    let program = fs::read_link("/proc/self/exe").ok();
    let own = getpid();
    let named = folder.as_os_str().as_encoded_bytes();
    let mark = [MARK.as_bytes(), b"=", named].concat();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw);
    let is_ours = |pid: &Pid| {
        let place = PathBuf::from(format!("/proc/{pid}"));
        let told = |what: &str| fs::read(place.join(what)).unwrap_or_default();
        let is_run = || {
            fs::read_link(place.join("exe")).ok() == program
                && told("cmdline").windows(named.len()).any(|part| part == named)
        };
        let is_marked = || told("environ").split(|byte| *byte == 0).any(|line| line == mark);
        *pid != own && (is_run() || is_marked())
    };
    pids.filter(is_ours).collect()
}
