//! Hooks called as by a replica, so a test can kill a hook, or call a hook at the wrong time.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use toml::{Table, Value};

use super::trio::{System, ThreeNodeBed, VMS, tables, until};

pub(crate) struct Hook(Child);

#[derive(Debug)]
pub(crate) struct Ended {
    /// `None`: ended by a signal.
    pub(crate) status: Option<i32>,
    pub(crate) said: String,
}

pub(crate) const DONE: Option<i32> = Some(0);
pub(crate) const FAILED: Option<i32> = Some(1);
pub(crate) const NOT_APPLICABLE: Option<i32> = Some(11);
pub(crate) const NOT_DONE: Option<i32> = Some(12);
pub(crate) const UNKNOWN: Option<i32> = Some(13);
pub(crate) const BLOCKED: Option<i32> = Some(75);

/// Intents other than `run`.
pub(crate) const CONFIRM: (&str, &str) = ("ALLCLEAR_INTENT", "confirm");
pub(crate) const UNDO: (&str, &str) = ("ALLCLEAR_INTENT", "undo");

/// The program which kills a hook at a counted point.
const KILLED: &str = include_str!("killed.py");

impl Hook {
    /// Starts the hook of `phase` on the VM at `place`, as defined in the VM's tables, in an event of the VM. `more`
    /// adds facts or replaces settings.
    pub(crate) fn begin<S: System>(trio: &ThreeNodeBed, place: usize, phase: &str, more: &[(&str, &str)]) -> Self {
        Self::begin_by::<S>(trio, place, phase, &[], more)
    }

    /// Runs the hook, and kills it with SIGKILL at `point`: before or right after any action outside of the hook's
    /// process, counted from 1. A hook with fewer points ends by itself.
    pub(crate) fn killed<S: System>(
        trio: &ThreeNodeBed,
        place: usize,
        phase: &str,
        point: usize,
        more: &[(&str, &str)],
    ) -> Ended {
        Self::killed_where::<S>(trio, place, phase, &point.to_string(), more)
    }

    /// Kills the hook at the first point of this name, as `before CONFIG REWRITE`.
    pub(crate) fn killed_where<S: System>(
        trio: &ThreeNodeBed,
        place: usize,
        phase: &str,
        point: &str,
        more: &[(&str, &str)],
    ) -> Ended {
        let killer = trio.vms[place].folder.join("killed.py");
        std::fs::write(&killer, KILLED).unwrap();
        let by = ["python3", killer.to_str().unwrap(), point];
        Self::begin_by::<S>(trio, place, phase, &by, more).end()
    }

    /// Starts the hook, and stops the hook at the first point of this name; SIGCONT resumes the hook.
    pub(crate) fn stopped_where<S: System>(
        trio: &ThreeNodeBed,
        place: usize,
        phase: &str,
        point: &str,
        more: &[(&str, &str)],
    ) -> Self {
        let killer = trio.vms[place].folder.join("killed.py");
        std::fs::write(&killer, KILLED).unwrap();
        let more = [more, &[("ONLY_STOPPED", "yes")]].concat();
        let by = ["python3", killer.to_str().unwrap(), point];
        let mut hook = Self::begin_by::<S>(trio, place, phase, &by, &more);
        let mut lines = BufReader::new(hook.0.stdout.as_mut().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("killed ")), "it ended before {point}");
        // The line is printed right before the stop.
        let stat = format!("/proc/{}/stat", hook.0.id());
        until("a hook that is stopped", || match std::fs::read_to_string(&stat) {
            Ok(text) if text.contains(") T ") => Ok(()),
            told => Err(format!("{told:?}")),
        });
        hook
    }

    fn begin_by<S: System>(trio: &ThreeNodeBed, place: usize, phase: &str, by: &[&str], more: &[(&str, &str)]) -> Self {
        let tables: Table = tables::<S>(trio, place).parse().unwrap();
        let hooks =
            each(&tables["workload"]).flat_map(|workload| each(&workload["hook"]).map(move |hook| (workload, hook)));
        let (workload, hook) = hooks.into_iter().find(|(_, hook)| hook["phase"].as_str() == Some(phase)).unwrap();
        let own = each(&hook["command"]).map(|word| word.as_str().unwrap());
        let words: Vec<_> = by.iter().copied().chain(own).collect();
        let mut command = trio.command(place, words[0]).unwrap();
        let env = workload["env"].as_table().unwrap().iter().map(|(name, value)| (name, value.as_str().unwrap()));
        command.args(&words[1..]).envs(env);
        command.envs([("ALLCLEAR_VM", VMS[place]), ("ALLCLEAR_EVENT_RESOURCES", VMS[place])]);
        command.envs(more.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    pub(crate) fn run<S: System>(trio: &ThreeNodeBed, place: usize, phase: &str, more: &[(&str, &str)]) -> Ended {
        Self::begin::<S>(trio, place, phase, more).end()
    }

    /// Repeats the hook while it is blocked, as a replica does: on a loaded machine a server may be late.
    pub(crate) fn until_done<S: System>(trio: &ThreeNodeBed, place: usize, phase: &str, more: &[(&str, &str)]) {
        until(phase, || match Self::run::<S>(trio, place, phase, more) {
            Ended { status: DONE | NOT_APPLICABLE, .. } => Ok(()),
            Ended { status: BLOCKED | UNKNOWN, said } => Err(said),
            ended => panic!("{phase} {more:?}: {ended:?}"),
        });
    }

    /// Waits until the hook reports progress.
    pub(crate) fn until_it_acts(&mut self) {
        let mut line = String::new();
        BufReader::new(self.0.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("progress:"), "{line:?}");
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // The hook may have ended before.
        let _ = kill(Pid::from_raw(self.0.id().cast_signed()), signal);
    }

    pub(crate) fn end(self) -> Ended {
        let output = self.0.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        Ended { status: output.status.code(), said }
    }
}

fn each(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}
