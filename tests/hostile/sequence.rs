//! Entries of a log, applied one after the other; the properties that they break, and the file format of a case.

use std::fmt::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use allclear::core::apply::apply;
use allclear::core::model::command::{ApplyResult, Command, Entry};
use allclear::core::model::state::State;
use allclear::core::verify::invariants::{self, Violation};
use allclear::core::verify::transition;
use allclear::wire::log;

/// A state of a few events is far smaller.
const LARGEST_STATE: usize = 4 << 20;

/// The function under test: `apply`, or a version with a mistake.
pub(crate) type Fold = fn(&mut State, &Entry) -> ApplyResult;

/// The fault of an entry's step, in words that do not change while the case is shortened.
pub(crate) fn step(fold: Fold, state: &mut State, entry: &Entry) -> Result<(), String> {
    let before = state.clone();
    let verdict = catch_unwind(AssertUnwindSafe(|| fold(state, entry)));
    let Ok(verdict) = verdict else {
        // A debug build checks the promises itself, in `apply`.
        return Err("a panic".into());
    };
    let broken = transition::violated(&before, state).filter(|broken| !is_told(*broken, entry));
    if let Some(broken) = broken.or_else(|| invariants::violated(state)) {
        return Err(format!("broken: {broken}"));
    }
    if state.now < before.now {
        return Err("time went back".into());
    }
    let unchanged = State { now: state.now, ..before };
    if verdict != ApplyResult::Applied && without_late(state.clone()) != without_late(unchanged) {
        return Err(format!("{verdict:?} and yet something changed"));
    }
    let entry_again = log::decode_entry(&log::encode_entry(entry));
    if entry_again.as_ref() != Ok(entry) {
        return Err("the entry is not read back as it was".into());
    }
    Ok(())
}

/// The state without late outcomes. A late outcome is stored for display, and changes nothing.
fn without_late(mut state: State) -> State {
    for event in state.open.values_mut().chain(&mut state.history).map(Arc::make_mut) {
        event.attempts.iter_mut().for_each(|attempt| attempt.late = None);
    }
    state
}

/// True for a violation that a reconciliation reports: the approval is a fact, and the fold can only record the fact.
fn is_told(broken: Violation, entry: &Entry) -> bool {
    broken == Violation::TakenOverWrongly && matches!(entry.command, Command::ReconcileJournal(_))
}

/// The fault in the stored form of a state.
pub(crate) fn kept(state: &State) -> Result<(), String> {
    let stored = log::encode_state(state);
    if stored.len() > LARGEST_STATE {
        return Err("the state has outgrown its bound".into());
    }
    match log::decode_state(&stored) {
        Ok(again) if again == *state && log::encode_state(&again) == stored => Ok(()),
        Ok(_) => Err("the state is read back as another one".into()),
        Err(_) => Err("the state is not read back".into()),
    }
}

/// The first fault.
pub(crate) fn wrong(fold: Fold, entries: &[Entry]) -> Option<String> {
    let mut state = State::default();
    entries.iter().find_map(|entry| step(fold, &mut state, entry).and_then(|()| kept(&state)).err())
}

/// One line for each entry, encoded as in the log.
pub(crate) fn written(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let _ = writeln!(text, "# {} by {}: {:?}", entry.at.0, entry.by, entry.command);
        let _ = writeln!(
            text,
            "{}",
            log::encode_entry(entry).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
        );
    }
    text
}

pub(crate) fn read(text: &str) -> Vec<Entry> {
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let bytes = |line: &str| -> Vec<u8> {
        (0..line.len()).step_by(2).map(|at| u8::from_str_radix(&line[at..at + 2], 16).unwrap()).collect()
    };
    lines.map(|line| log::decode_entry(&bytes(line)).unwrap()).collect()
}

#[test]
fn what_was_found_once_does_not_come_back() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hostile/found");
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let entries = read(&std::fs::read_to_string(&path).unwrap());
        assert!(!entries.is_empty(), "{}", path.display());
        assert_eq!(wrong(apply, &entries), None, "{}", path.display());
    }
}
