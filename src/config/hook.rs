//! `[[workload.hook]]`: what a workload wants run in a phase.

use core::time::Duration;

use super::beyond;
use super::reader::Table;
use super::scalar;
use crate::machine::workload as registered;
use crate::machine::workload::{OnFailure, Phase, RunsOn};

const DAY: Duration = Duration::from_hours(24);

/// What a workload wants run in a phase. Commands are a program, by its absolute path or its bare name, and its
/// arguments, run without a shell; never empty.
#[derive(Clone, PartialEq, Debug)]
pub struct Hook {
    pub phase: Phase,
    pub command: Vec<String>,
    /// For one attempt.
    pub timeout: Duration,
    /// How often it is run at the most; at least 1.
    pub attempts: u32,
    pub on_failure: OnFailure,
    pub runs_on: RunsOn,
    /// Asks whether it is done.
    pub confirm: Option<Vec<String>>,
    /// Ignored by this version.
    pub undo: Option<Vec<String>>,
    /// In a dry run its commands are run and change nothing.
    pub dry_run: bool,
    /// Not run for freezes known to be shorter.
    pub min_freeze: Option<Duration>,
    /// Confirmed again before the all-clear when older; only with `confirm`.
    pub fresh_for: Option<Duration>,
    /// Ignored by this version.
    pub optional_if_short: bool,
    /// Whose rights its commands have when the replica runs as root.
    pub user: Option<String>,
    /// Added to its commands' environment, in the order of the file.
    pub env: Vec<(String, String)>,
}

impl Hook {
    /// What the log is told.
    pub fn registered(&self) -> registered::Hook {
        registered::Hook {
            phase: self.phase,
            timeout: self.timeout,
            attempts: self.attempts,
            on_failure: self.on_failure,
            runs_on: self.runs_on,
            can_confirm: self.confirm.is_some(),
            can_undo: self.undo.is_some(),
            can_dry_run: self.dry_run,
            min_freeze: self.min_freeze,
            fresh_for: self.fresh_for,
            optional_if_short: self.optional_if_short,
        }
    }
}

pub(super) fn read(table: &mut Table<'_>) -> Option<Hook> {
    let up_to_a_day = || scalar::duration(Duration::ZERO..=DAY);
    let why = "write checkpoint, failover, drain, shutdown, restore or ready";
    let phase = table.required("phase", scalar::word(Phase::WORDS, Phase::from_word), why);
    let command = read_command(table);
    let timeout = scalar::duration(Duration::from_millis(1)..=DAY);
    let hook = Hook {
        phase: phase.as_ref()?.value,
        timeout: table.or("timeout", timeout, Duration::from_mins(1)),
        attempts: table.or("attempts", scalar::number(1..=100), 2),
        on_failure: table.or("on_failure", scalar::word(OnFailure::WORDS, OnFailure::from_word), OnFailure::Hold),
        runs_on: table.or("runs_on", scalar::word(RunsOn::WORDS, RunsOn::from_word), RunsOn::Affected),
        confirm: table.optional("confirm", scalar::command),
        undo: table.optional("undo", scalar::command),
        dry_run: table.or("dry_run", scalar::boolean, false),
        min_freeze: table.optional("min_freeze", up_to_a_day()),
        fresh_for: table.optional("fresh_for", up_to_a_day()),
        optional_if_short: table.or("optional_if_short", scalar::boolean, false),
        user: table.optional("user", scalar::name),
        env: read_env(table),
        command: command?,
    };
    if hook.fresh_for.is_some() && !table.has("confirm") {
        let message = "`workload.hook.fresh_for` means nothing here: it needs `confirm`, which asks whether it is done";
        table.mistake(&table.place_of("fresh_for"), message);
    }
    Some(hook)
}

/// What is run, for a hook and for a role.
pub(super) fn read_command(table: &mut Table<'_>) -> Option<Vec<String>> {
    table.knows("http");
    if table.has("http") {
        table.mistake(
            &table.place_of("http"),
            format!("`{}.http` is refused: {}, use `command`", table.path(), beyond::HTTP),
        );
    } else if !table.has("command") {
        table.mistake_here("names nothing to run: add `command = [\"/path/to/program\"]`");
    }
    table.optional("command", scalar::command)
}

fn read_env(table: &mut Table<'_>) -> Vec<(String, String)> {
    let entries = table.entries("env", scalar::text).unwrap_or_default();
    for (name, _) in &entries {
        if name.value.contains('=') {
            table.mistake(&name.place, format!("{:?} cannot name a variable: it contains =", name.value));
        }
        if name.value.starts_with("ALLCLEAR_") {
            let message = format!("{} is one of the names that are set for every hook: choose another", name.value);
            table.mistake(&name.place, message);
        }
    }
    entries.into_iter().filter_map(|(name, text)| Some((name.value, text?))).collect()
}
