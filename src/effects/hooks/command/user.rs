//! Starting a hook as another user, with all groups of that user.

use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use nix::errno::Errno;
use nix::unistd::{Gid, Group, Uid, User, getegid, geteuid, getgrouplist, getgroups, getresgid, setgroups, setresgid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use tokio::process::Child;

/// The begin of a command line that runs a program with the user and groups of this process, called by root; empty for
/// root, and for a user without a name.
pub fn as_own_user() -> String {
    let own = geteuid();
    let Some(user) = User::from_uid(own).ok().flatten().filter(|_| !own.is_root()) else { return String::new() };
    let usual = CString::new(user.name.as_str()).ok().and_then(|name| getgrouplist(&name, user.gid).ok());
    let further = getgroups().unwrap_or_default();
    let is_usual = usual.is_some_and(|usual| getegid() == user.gid && further.iter().all(|gid| usual.contains(gid)));
    let name = |gid: &Gid| Group::from_gid(*gid).ok().flatten().map(|group| group.name);
    let groups =
        if is_usual { None } else { name(&getegid()).map(|own| (own, further.iter().filter_map(name).collect())) };
    run_as(&user.name, groups)
}

fn run_as(user: &str, groups: Option<(String, Vec<String>)>) -> String {
    let groups = groups.map_or_else(String::new, |(own, further)| {
        let further = further.iter().filter(|group| **group != own).map(|group| format!(" -G {group}"));
        further.fold(format!(" -g {own}"), |all, group| all + &group)
    });
    format!("runuser -u {user}{groups} -- ")
}

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

    /// Starts the program as this user.
    ///
    /// The user ids of this process stay root's, because the new program may signal every process of its own user. The
    /// standard library removes all further groups from a program with another user, unless this process lacks the
    /// capability to change groups: so this process takes over the groups first, and gives up the capability.
    pub(super) fn spawn(&self, program: &mut tokio::process::Command) -> Result<io::Result<Child>, String> {
        if self.uid == geteuid() {
            return Ok(program.spawn());
        }
        let change = |error: Errno| format!("cannot change to user {}: {}", self.uid, error.desc());
        let of_thread = |error: rustix::io::Errno| change(Errno::from_raw(error.raw_os_error()));
        let group = getresgid().map_err(change)?;
        let groups = getgroups().map_err(change)?;
        let held = capabilities(None).map_err(of_thread)?;
        if !held.effective.contains(CapabilitySet::SETUID | CapabilitySet::SETGID) {
            return Err(format!("cannot change to user {}: the replica lacks CAP_SETUID or CAP_SETGID", self.uid));
        }
        let without = CapabilitySets { effective: held.effective.difference(CapabilitySet::SETGID), ..held };
        let changed = setgroups(&self.groups)
            .and_then(|()| setresgid(self.gid, self.gid, group.effective))
            .map_err(change)
            .and_then(|()| set_capabilities(None, without).map_err(of_thread));
        let started = changed.map(|()| program.uid(self.uid.as_raw()).spawn());
        // Each by itself, whatever failed above. A supervisor with the user's groups can nevertheless watch its hook.
        let _ = set_capabilities(None, held);
        let _ = setresgid(group.real, group.effective, group.saved);
        let _ = setgroups(&groups);
        started
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_runs_with_the_groups_of_a_process_that_has_unusual_groups() {
        assert_eq!(run_as("allclear", None), "runuser -u allclear -- ");
        let groups = ("postgres".to_owned(), vec!["postgres".to_owned(), "allclear".to_owned()]);
        assert_eq!(run_as("postgres", Some(groups)), "runuser -u postgres -g postgres -G allclear -- ");
    }
}
