//! Processes of a hook whose supervisor is gone: found in /proc, and ended.

use std::fs;
use std::io;
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getpid, getsid};
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);
/// For the kernel to take away what was killed.
const REMOVAL: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process that cannot be mistaken for a later one with the same number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct ProcessId {
    pub(super) pid: i32,
    /// Ticks from the boot to its start.
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
            // Only fails when it has just ended.
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGTERM);
        }
    }
}

/// This boot, and this set of process numbers (a container has its own): numbers noted elsewhere mean nothing here.
pub(super) fn place() -> String {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let numbers = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    format!("{} {}", boot.trim(), numbers.display())
}

/// Ends every process of the session that `leader` began; false when one is still there after that.
pub(super) async fn end_session(leader: ProcessId) -> bool {
    end(|signal| signal_all(&members(leader), signal), || members(leader).is_empty()).await
}

/// Ends a hook, which is a child of this process and leads a group of its own: that group, and whoever went to another
/// one within the session that this process leads. False when one is still there after that.
pub(super) async fn end_hook(leader: u32, mut reap: impl FnMut()) -> bool {
    let Some(group) = i32::try_from(leader).ok().filter(|group| *group > 1).map(Pid::from_raw) else { return true };
    let (own, leads) = (getpid().as_raw(), getsid(None) == Ok(getpid()));
    let is_in_the_group = |seen: &ProcStat| seen.group == group.as_raw();
    let is_astray = |seen: &ProcStat| leads && seen.session == own && seen.pid != own && !is_in_the_group(seen);
    let send = |signal| {
        // To a group at once: one that forks without end does not get away. It fails only where nobody is left.
        let _ = killpg(group, signal);
        signal_all(&living(is_astray), signal);
    };
    let is_over = || {
        reap();
        // Where nobody reaps orphans, as in many containers, those that ended stay in the group for good.
        living(|seen| is_in_the_group(seen) || is_astray(seen)).is_empty()
    };
    end(send, is_over).await
}

/// Asks first, and then does not ask any more.
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
        // Only fails when it has just ended.
        let _ = kill(Pid::from_raw(*pid), signal);
    }
}

/// The number of a session is not given to another process while anybody is in it. So if its leader is somebody else
/// by now, nobody of the old session was left.
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
    /// Nothing can be done about one that ended and waits for its parent to notice.
    fn is_alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }
}

fn look(pid: i32) -> Option<ProcStat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The name of the program is in parentheses and may hold anything, so fields are counted from the last of them.
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
