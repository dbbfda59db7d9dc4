//! The processes of a VM, found by its folder: what was started there, however it was started, works in the folder or
//! names it.

use std::path::Path;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, User, geteuid};

/// Whoever the servers run as: they refuse to be root. `None`: as oneself.
pub(crate) fn ordinary_user(names: &[&str]) -> Option<User> {
    if !geteuid().is_root() {
        return None;
    }
    let known = |name: &&str| User::from_name(name).unwrap();
    Some(names.iter().chain(&["nobody"]).find_map(known).expect("a user who is not root"))
}

/// A program that ends with the thread that starts it, whatever becomes of that.
pub(crate) fn command(program: &Path, user: Option<&User>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    if let Some(user) = user {
        command.arg(format!("--reuid={}", user.uid)).arg(format!("--regid={}", user.gid)).arg("--clear-groups");
        command.env("HOME", "/nonexistent").env("USER", &user.name);
    }
    command.arg(program);
    command
}

/// Those that work in this folder, or name it among their arguments.
pub(crate) fn of(folder: &Path) -> Vec<i32> {
    let name = format!("{}/", folder.display());
    let is_one = |pid: &i32| {
        let place = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        place.starts_with(folder) || String::from_utf8_lossy(&arguments).contains(&name)
    };
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let own = std::process::id().cast_signed();
    pids.filter(|pid| *pid != own).filter(is_one).collect()
}

/// Sends a signal to all of them; some may have ended in between.
pub(crate) fn signal(folder: &Path, signal: Signal) {
    for pid in of(folder) {
        let _ = kill(Pid::from_raw(pid), signal);
    }
}

/// `kill -9`, until none is left.
pub(crate) fn end(folder: &Path) {
    while !of(folder).is_empty() {
        signal(folder, Signal::SIGKILL);
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
