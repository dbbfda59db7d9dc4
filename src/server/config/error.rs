//! Errors of a configuration, with their places. All errors are collected, so that one run of `allclear check` shows
//! all of them.

use core::cell::RefCell;
use core::fmt;

/// Where something was written. Ordered by place in the file; what the environment sets comes last.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Location {
    /// The file as a whole.
    Whole,
    /// Both counted from 1; the column in characters, as editors count.
    File { line: usize, column: usize },
    /// The environment variable that set it.
    Variable(String),
}

/// One thing that is wrong.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ConfigError {
    pub place: Location,
    /// What is wrong and what to do.
    pub message: String,
}

/// Everything that is wrong with one configuration, in the order of the file. Prints one mistake per line,
/// `file:line:column: message`, so that editors and terminals can jump to it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub struct ConfigErrors {
    /// As it was given on the command line.
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

/// Characters of a message; what was written is shown in it, however long it is.
const LONGEST: usize = 1000;

/// One line, of what may be anything.
fn line(message: &str) -> String {
    let shown: String = message.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if message.chars().nth(LONGEST).is_some() { shown + "…" } else { shown }
}

/// A value that nobody is shown, because nobody has said that it is harmless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hidden {
    /// As in `workload.hook.env.PGPASSWORD`.
    pub path: String,
    pub place: Location,
    /// It is not cut out of what is said.
    pub is_too_short: bool,
}

/// Where the readers put what they find.
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

    /// In the order of the file, each once.
    pub(super) fn into_sorted(self) -> Vec<ConfigError> {
        let mut mistakes = self.mistakes.into_inner();
        mistakes.sort();
        mistakes.dedup();
        mistakes
    }
}
