//! `allclear demo-hook`: the hooks of the demo's sample workload, started by replicas.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use allclear_core::model::time::Timestamp;
use allclear_server::config;
use allclear_server::exit::say;
use allclear_server::replica::clock;

/// Number of steps in which progress is reported.
const STEPS: u32 = 4;
/// The exit status of a confirm for a hook without a final note.
const NOT_DONE: u8 = 12;

/// Simulates the preparation of a workload: waits, reports progress, and writes notes
#[derive(clap::Args)]
pub struct DemoHook {
    /// Duration of the simulated preparation
    #[arg(long, value_parser = humantime::parse_duration)]
    takes: Duration,
    /// The file for the notes of begin and end
    #[arg(long)]
    log: PathBuf,
}

/// One line of the log file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(super) event: String,
    pub(super) vm: String,
    pub(super) phase: String,
    pub(super) attempt: String,
    pub(super) done: bool,
    /// Time of the note in microseconds since 1970.
    pub(super) at_us: i64,
}

impl Note {
    pub(super) fn at(&self) -> Timestamp {
        Timestamp(self.at_us / 1_000)
    }
}

impl DemoHook {
    pub fn run(&self) -> ExitCode {
        let environment: BTreeMap<String, String> = config::environment().collect();
        let told = |name: &str| environment.get(name).cloned().unwrap_or_default();
        let note = |done| Note {
            event: told("ALLCLEAR_EVENT_ID"),
            vm: told("ALLCLEAR_VM"),
            phase: told("ALLCLEAR_PHASE"),
            attempt: told("ALLCLEAR_ATTEMPT"),
            done,
            at_us: i64::try_from(clock::since_1970().as_micros()).unwrap_or(i64::MAX),
        };
        let ended = if told("ALLCLEAR_INTENT") == "confirm" { self.confirm(&note(true)) } else { self.act(note) };
        ended.unwrap_or_else(|error| {
            say(format_args!("{}: {error}", self.log.display()));
            ExitCode::FAILURE
        })
    }

    fn act(&self, note: impl Fn(bool) -> Note) -> io::Result<ExitCode> {
        append(&self.log, &note(false))?;
        for step in 1..=STEPS {
            sleep(self.takes / STEPS);
            writeln!(io::stdout(), "progress: step {step} of {STEPS}")?;
        }
        append(&self.log, &note(true))?;
        Ok(ExitCode::SUCCESS)
    }

    fn confirm(&self, asked: &Note) -> io::Result<ExitCode> {
        let same = |note: &Note| note.event == asked.event && note.vm == asked.vm && note.phase == asked.phase;
        let is_done = notes(&self.log)?.iter().any(|note| same(note) && note.done);
        Ok(if is_done { ExitCode::SUCCESS } else { ExitCode::from(NOT_DONE) })
    }
}

/// Appends a note in one write, so that lines of concurrent hooks do not mix.
fn append(log: &Path, note: &Note) -> io::Result<()> {
    let line = serde_json::to_string(note)? + "\n";
    OpenOptions::new().create(true).append(true).open(log)?.write_all(line.as_bytes())
}

/// All notes, oldest first; empty before the first hook.
pub(super) fn notes(log: &Path) -> io::Result<Vec<Note>> {
    match std::fs::read_to_string(log) {
        Ok(text) => Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
