//! The demo's folder, and the processes that are known by it.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpid};

/// A path of a socket has at most 108 bytes; names in the folder need some of them.
const LONGEST: usize = 80;
const TRIES: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Makes an own folder where temporary files live.
pub(in crate::cli) fn make() -> io::Result<PathBuf> {
    let usual = std::env::temp_dir().canonicalize()?;
    let parent = if usual.as_os_str().len() > LONGEST - 30 { PathBuf::from("/tmp") } else { usual };
    let own = getpid();
    for number in 0..TRIES {
        let path = parent.join(format!("allclear-demo-{own}-{number}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("too many demos are left in {}", parent.display())))
}

/// Kills whatever still runs for this folder: hooks go on when their replica ends.
pub(in crate::cli) fn end_leftovers(folder: &Path) {
    for _ in 0..TRIES {
        let left = processes_of(folder);
        if left.is_empty() {
            return;
        }
        for pid in left {
            // Only fails when it has just ended.
            let _ = kill(pid, Signal::SIGKILL);
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Runs of this program, other than this one, whose arguments name the folder.
fn processes_of(folder: &Path) -> Vec<Pid> {
    let program = fs::read_link("/proc/self/exe").ok();
    let own = getpid();
    let named = folder.as_os_str().as_encoded_bytes();
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).map(Pid::from_raw);
    let is_ours = |pid: &Pid| {
        let place = PathBuf::from(format!("/proc/{pid}"));
        let arguments = fs::read(place.join("cmdline")).unwrap_or_default();
        *pid != own
            && fs::read_link(place.join("exe")).ok() == program
            && arguments.windows(named.len()).any(|part| part == named)
    };
    pids.filter(is_ours).collect()
}
