//! Errors of a configuration, with their places. All errors are collected, so that one run of `allclear check` shows
//! every error.

use core::cell::RefCell;
use core::fmt;

/// The place of a value. Ordered by place in the file; environment variables come last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Location {
    /// The file as a whole.
    Whole,
    /// Both counted from 1; the column in characters, as editors count.
    File { line: usize, column: usize },
    /// The environment variable with the value.
    Variable(String),
}

/// One mistake of a configuration.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConfigError {
    pub place: Location,
    /// The mistake and its repair.
    pub message: String,
}

/// All mistakes of one configuration, in the order of the file. Prints one mistake per line,
/// `file:line:column: message`, so that editors and terminals can jump to the place.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ConfigErrors {
    /// The path, as given on the command line.
    pub file: String,
    /// Never empty.
    pub mistakes: Vec<ConfigError>,
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            if index > 0 {
                writeln!(f)?;
            }
            match &mistake.place {
                Location::Whole => write!(f, "{}: ", self.file)?,
                Location::File { line, column } => write!(f, "{}:{line}:{column}: ", self.file)?,
                Location::Variable(name) => write!(f, "environment variable {name}: ")?,
            }
            f.write_str(&mistake.message)?;
        }
        Ok(())
    }
}

/// Maximal characters of a message, which includes the written value, of any length.
const LONGEST: usize = 1000;

/// Makes one line of arbitrary text.
fn line(message: &str) -> String {
    let shown: String = message.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if message.chars().nth(LONGEST).is_some() { shown + "…" } else { shown }
}

/// A value that is not printed, since the configuration does not mark the value as harmless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hidden {
    /// The key, as in `workload.hook.env.PGPASSWORD`.
    pub path: String,
    pub place: Location,
    /// True if the value is too short to be cut from messages.
    pub is_too_short: bool,
}

/// Collects the mistakes and hidden values during reading.
#[derive(Default)]
pub(super) struct Findings {
    mistakes: RefCell<Vec<ConfigError>>,
    hidden: RefCell<Vec<Hidden>>,
}

impl Findings {
    pub(super) fn add(&self, place: &Location, message: impl Into<String>) {
        self.mistakes.borrow_mut().push(ConfigError { place: place.clone(), message: line(&message.into()) });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.mistakes.borrow().is_empty()
    }

    pub(super) fn hide(&self, hidden: Hidden) {
        self.hidden.borrow_mut().push(hidden);
    }

    pub(super) fn hidden(&self) -> Vec<Hidden> {
        self.hidden.borrow().clone()
    }

    /// All mistakes without duplicates, in the order of the file.
    pub(super) fn into_sorted(self) -> Vec<ConfigError> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort();
        mistakes.dedup();
        mistakes
    }
}
