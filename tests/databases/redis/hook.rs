//! The hook set called as a replica calls it, so that it can be killed, or called when it should not be.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::super::trio::{System, Trio, VMS};

pub(super) struct Hook(Child);

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    /// `None`: by a signal.
    pub(super) status: Option<i32>,
    /// The last line of what it said.
    pub(super) reason: String,
}

pub(super) const DONE: Option<i32> = Some(0);
pub(super) const NOT_APPLICABLE: Option<i32> = Some(11);
pub(super) const NOT_DONE: Option<i32> = Some(12);
pub(super) const BLOCKED: Option<i32> = Some(75);

impl Hook {
    /// Begins it on that VM, in an event that names the VM and what is to be avoided.
    pub(super) fn begin<S: System>(trio: &Trio, place: usize, name: &str, intent: &str, avoid: &[usize]) -> Self {
        let program = trio.vms[place].folder.join("hooks/redis_hook.py");
        let mut command = trio.command(place, &program.display().to_string()).unwrap();
        let avoid: Vec<&str> = avoid.iter().map(|place| VMS[*place]).collect();
        command.arg(name).envs(S::settings(trio, place)).env("ALLCLEAR_INTENT", intent);
        command.env("ALLCLEAR_VM", VMS[place]).env("ALLCLEAR_AVOID_VMS", avoid.join(" "));
        Self(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    }

    pub(super) fn run<S: System>(trio: &Trio, place: usize, name: &str, intent: &str) -> Ended {
        Self::begin::<S>(trio, place, name, intent, &[]).end()
    }

    /// Waits until it tells of its progress.
    pub(super) fn until_it_acts(&mut self) {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("progress:"), "{line:?}");
    }

    pub(super) fn signal(&self, signal: Signal) {
        // It may have ended before.
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), signal);
    }

    pub(super) fn end(self) -> Ended {
        let output = self.0.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let reason = told.lines().last().unwrap_or_default().to_owned();
        Ended { status: output.status.code(), reason }
    }
}
