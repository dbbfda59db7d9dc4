//! The processes of a VM, found by the VM's folder: every process of the VM works in the folder or names the folder
//! in an argument, however the process was started.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

const LOOK_AGAIN: Duration = Duration::from_millis(2);
const LOOKS: u32 = 5000;

/// The user of the servers, which refuse to run as root. `None`: the current user.
pub fn ordinary_user(name: &str) -> anyhow::Result<Option<User>> {
    if !geteuid().is_root() {
        return Ok(None);
    }
    for name in [name, "nobody"] {
        let known = User::from_name(name).with_context(|| format!("cannot look for the user {name}"))?;
        if known.is_some() {
            return Ok(known);
        }
    }
    bail!("servers refuse to run as root, and there is neither a user {name} nor nobody; use another user")
}

/// A command whose program ends with the thread that starts it, even if the parent process dies, and which has no
/// controlling terminal.
pub(super) fn command(program: &Path, user: Option<&User>) -> Command {
    let mut command = Command::new("setsid");
    command.args(["setpriv", "--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid)).arg("--clear-groups");
        command.env("HOME", "/nonexistent").env("USER", &user.name);
    }
    command.arg(program);
    command
}

/// Processes that work in this folder, or name the folder among their arguments. A process with a terminal is a
/// person's shell, and is not found by its working directory.
pub fn of(folder: &Path) -> Vec<i32> {
    let name = format!("{}/", folder.display());
    let is_one = |pid: &i32| {
        let place = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        place.starts_with(folder) && !has_terminal(*pid) || String::from_utf8_lossy(&arguments).contains(&name)
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let own = std::process::id().cast_signed();
    pids.filter(|pid| *pid != own).filter(is_one).collect()
}

fn has_terminal(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // After the name, which may have any characters: state, parent, group, session, terminal.
    let after = status.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().nth(4).is_some_and(|terminal| terminal != "0")
}

/// Sends a signal to all processes; some may have ended in between.
pub fn signal(folder: &Path, signal: Signal) {
    for pid in of(folder) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// Sends `kill -9` until no process is left, zombies included: to a server that is started again, the pid of a zombie
/// looks like a running server. Their shared memory of System V would outlive them, and is removed too.
pub fn end(folder: &Path) {
    let mut ended = BTreeSet::new();
    for _ in 0..LOOKS {
        let left = of(folder);
        ended.extend(left.iter().copied());
        if left.is_empty() && !ended.iter().any(|pid| Path::new(&format!("/proc/{pid}")).exists()) {
            return remove_memory_of(&ended);
        }
        signal(folder, Signal::SIGKILL);
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Removes the segments that these ended processes made, and that nobody uses. The kernel lists per segment: key, id,
/// permissions, size, pid of the maker, pid of the last user, number of users.
fn remove_memory_of(ended: &BTreeSet<i32>) {
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    for segment in segments.lines() {
        let [_, id, _, _, maker, _, users, ..] = segment.split_whitespace().collect::<Vec<_>>()[..] else { continue };
        if users == "0" && maker.parse().is_ok_and(|maker| ended.contains(&maker)) {
            let _ = Command::new("ipcrm").args(["-m", id]).output();
        }
    }
}
