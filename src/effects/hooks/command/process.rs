//! Processes of a hook, found in /proc and ended: by the supervisor, or by the replica after the supervisor's end.

use std::fs;
use std::io;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpid, getsid};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// The time for the kernel to remove killed processes.
const REMOVAL: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process identity, distinct from a later process with an equal number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ProcessId {
    pub(super) pid: i32,
    /// Ticks from the boot to the start of the process.
    pub(super) started: u64,
}

impl ProcessId {
    pub(super) fn own() -> io::Result<Self> {
        let pid = getpid().as_raw();
        let started = look(pid).map(|seen| seen.started);
        started.map(|started| Self { pid, started }).ok_or_else(|| io::Error::other("cannot read its own /proc entry"))
    }

    pub(super) fn is_there(self) -> bool {
        look(self.pid).is_some_and(|seen| seen.started == self.started && seen.is_alive())
    }

    pub(super) fn terminate(self) {
        if self.pid > 1 && self.is_there() {
            // Only fails when the process has just ended.
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGTERM);
        }
    }
}

/// The boot and the PID namespace (a container has its own): process numbers from another place mean nothing here.
pub(super) fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbers = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), numbers.display())
}

/// Ends every process of the session of `leader`; false if a process remains.
pub(super) async fn end_session(leader: ProcessId) -> bool {
    end(|signal| signal_all(&members(leader), signal), || members(leader).is_empty()).await
}

/// Ends a hook, a child of this process and the leader of a process group: the whole group, and processes that moved to
/// another group within this process's session. False if a process remains.
pub(super) async fn end_hook(leader: u32, mut reap: impl FnMut()) -> bool {
    let Some(group) = i32::try_from(leader).ok().filter(|group| *group > 1).map(Pid::from_raw) else { return true };
    let (own, leads) = (getpid().as_raw(), getsid(None) == Ok(getpid()));
    let is_in_the_group = |seen: &ProcStat| seen.group == group.as_raw();
    let is_astray = |seen: &ProcStat| leads && seen.session == own && seen.pid != own && !is_in_the_group(seen);
    let send = |signal| {
        // Signals the whole group at once, so an endless fork loop cannot escape. Only fails for an empty group.
        let _ = killpg(group, signal);
        signal_all(&living(is_astray), signal);
    };
    let is_over = || {
        reap();
        // Without a reaper for orphans, as in many containers, ended processes stay in the group permanently.
        living(|seen| is_in_the_group(seen) || is_astray(seen)).is_empty()
    };
    end(send, is_over).await
}

/// Ends what is left of a hook after the end of its first process: every other process of the session that this process
/// leads. False if a process remains. A process of another user, as behind `sudo`, cannot be ended, and is not waited for.
pub(super) async fn end_rest() -> bool {
    let own = getpid().as_raw();
    let may_end = |pid: &i32| kill(Pid::from_raw(*pid), None) != Err(Errno::EPERM);
    let rest = || -> Vec<i32> {
        let others = living(|seen| seen.session == own && seen.pid != own);
        others.into_iter().filter(may_end).collect()
    };
    end(|signal| signal_all(&rest(), signal), || rest().is_empty()).await
}

/// Sends SIGTERM first, and SIGKILL after the grace period.
async fn end(send: impl Fn(Signal), mut is_over: impl FnMut() -> bool) -> bool {
    send(Signal::SIGTERM);
    if within(GRACE, &mut is_over).await {
        return true;
    }
    let killed = || {
        send(Signal::SIGKILL);
        is_over()
    };
    within(REMOVAL, killed).await
}

async fn within(limit: Duration, mut is_over: impl FnMut() -> bool) -> bool {
    let until = Instant::now() + limit;
    loop {
        if is_over() {
            return true;
        }
        if Instant::now() >= until {
            return false;
        }
        sleep(LOOK_EVERY).await;
    }
}

fn signal_all(processes: &[i32], signal: Signal) {
    for pid in processes {
        // Only fails when the process has just ended.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

/// The number of a session is not reused while the session has members. So the session is empty if another process now
/// has the leader's number.
fn members(leader: ProcessId) -> Vec<i32> {
    let own_session = getsid(None).map_or(0, Pid::as_raw);
    let taken_over = look(leader.pid).is_some_and(|seen| seen.started != leader.started);
    if leader.pid <= 1 || leader.pid == own_session || taken_over {
        return Vec::new();
    }
    living(|seen| seen.session == leader.pid && seen.started >= leader.started)
}

fn living(belongs: impl Fn(&ProcStat) -> bool) -> Vec<i32> {
    let numbers = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    numbers
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| look(*pid).is_some_and(|seen| seen.is_alive() && belongs(&seen)))
        .collect()
}

struct ProcStat {
    pid: i32,
    state: char,
    group: i32,
    session: i32,
    started: u64,
}

impl ProcStat {
    /// False for an ended process that waits to be reaped: no signal has an effect on a zombie.
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

fn look(pid: i32) -> Option<ProcStat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The program name is in parentheses and may hold any byte, so fields are counted from the last parenthesis.
fn parse_stat(stat: &str) -> Option<ProcStat> {
    let pid = stat.split_once(' ')?.0.parse().ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(ProcStat { pid, state, group, session, started })
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;

    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let stat = "42 (a) R 1 (b)) S 7 8 9 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 777 1 2";
        let seen = parse_stat(stat).unwrap();
        assert_eq!((seen.pid, seen.state, seen.group, seen.session, seen.started), (42, 'S', 8, 9, 777));
        for hostile in ["", "42", "42 (a", "42 (a) S", "42 (a) S 1 2 x", "42 (a) S 7 8 9"] {
            assert!(parse_stat(hostile).is_none(), "{hostile}");
        }
    }

    #[test]
    fn a_process_is_known_by_its_start_too() {
        let own = ProcessId::own().unwrap();
        assert!(own.is_there());
        assert!(!ProcessId { started: own.started + 1, ..own }.is_there());
    }

    #[tokio::test]
    async fn a_process_that_ended_and_was_not_reaped_is_not_waited_for() {
        let mut child = std::process::Command::new("/bin/true").process_group(0).spawn().unwrap();
        while look(child.id().cast_signed()).is_some_and(|seen| seen.is_alive()) {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(killpg(Pid::from_raw(child.id().cast_signed()), None), Ok(()), "it is still in its group");
        assert!(end_hook(child.id(), || {}).await);
        child.wait().unwrap();
    }

    #[test]
    fn nobody_is_taken_for_a_member_of_a_session_whose_number_was_given_away() {
        let init = ProcessId { pid: 1, started: 0 };
        let taken_over = ProcessId { pid: std::os::unix::process::parent_id().cast_signed(), started: u64::MAX };
        assert!(members(init).is_empty() && members(taken_over).is_empty());
    }
}
