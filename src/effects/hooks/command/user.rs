//! Starting a hook as another user.
//!
//! The standard library drops all supplementary groups when changing the user, so the supervisor changes its own ids
//! during the start. The new program cannot return to the previous ids; the supervisor can, by its saved ids.

use std::ffi::CString;
use std::fs;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::{
    Gid, Uid, User, geteuid, getgrouplist, getgroups, getresgid, getresuid, setgroups, setresgid, setresuid,
};

/// The user of a hook.
pub(super) struct RunAs {
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
    pub(super) home: PathBuf,
}

impl RunAs {
    /// The user by name, or the reason why the user cannot be used, for people.
    pub(super) fn of(name: &str) -> Result<Self, String> {
        let unusable = |error: Errno| format!("cannot look up user {name}: {}", error.desc());
        let user = match User::from_name(name) {
            Ok(Some(user)) => user,
            Ok(None) | Err(Errno::ENOENT) => return Err(format!("user {name} does not exist on this machine")),
            Err(error) => return Err(unusable(error)),
        };
        if !geteuid().is_root() && user.uid != geteuid() {
            return Err(format!("cannot run as user {name}: the replica has to run as root"));
        }
        let name = CString::new(name).map_err(|_| unusable(Errno::EINVAL))?;
        let groups = getgrouplist(&name, user.gid).map_err(unusable)?;
        Ok(Self { uid: user.uid, gid: user.gid, groups, home: user.dir })
    }

    /// Sets the user for a question. Only the supervisor, which has one thread, may change its own ids, so the user's
    /// further groups are left out.
    pub(super) fn give_to(&self, process: &mut tokio::process::Command) {
        process.env("HOME", &self.home);
        if self.uid != geteuid() {
            process.uid(self.uid.as_raw()).gid(self.gid.as_raw());
        }
    }

    /// Calls `start`, which starts a process, while this process has that user's ids.
    pub(super) fn wear<T>(&self, start: impl FnOnce() -> T) -> Result<T, String> {
        if self.uid == geteuid() {
            return Ok(start());
        }
        if has_ambient_capabilities() {
            let why = "this replica has ambient capabilities, and hooks would inherit these capabilities";
            return Err(format!(
                "cannot change to user {}: {why}; remove AmbientCapabilities= from the systemd unit",
                self.uid
            ));
        }
        let change = |error: Errno| format!("cannot change to user {}: {}", self.uid, error.desc());
        let user = getresuid().map_err(change)?;
        let group = getresgid().map_err(change)?;
        let groups = getgroups().map_err(change)?;
        let changed = setgroups(&self.groups)
            .and_then(|()| setresgid(self.gid, self.gid, group.effective))
            .and_then(|()| setresuid(self.uid, self.uid, user.effective));
        let started = changed.map(|()| start());
        // The user first: only root may change the rest. The saved ids make this allowed.
        let back = setresuid(user.real, user.effective, user.saved)
            .and_then(|()| setresgid(group.real, group.effective, group.saved))
            .and_then(|()| setgroups(&groups));
        // A supervisor still running as the user can nevertheless watch its hook. The supervisor's files are accessible
        // to root only, so a failure to write the outcome is reported by the supervisor itself.
        let _ = back;
        started.map_err(change)
    }
}

/// The saved id stays root's until the program begins, so the kernel would not remove ambient capabilities.
fn has_ambient_capabilities() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ambient = status.lines().find_map(|line| line.strip_prefix("CapAmb:"));
    ambient.is_some_and(|set| set.trim().contains(|digit| digit != '0'))
}
