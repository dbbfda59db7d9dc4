//! `env`, `env_shown` and `env_files`: the environment of a workload's commands, or of one hook's. Every value is secret
//! unless the configuration says otherwise.

use core::fmt;
use std::collections::BTreeSet;
use std::path::PathBuf;

use super::reader::{Located, TomlTable};
use super::scalar;
use super::secret::{self, SecretFile};
use super::source::Value;

/// The replacement of a hidden value in the output.
pub const NOT_SHOWN: &str = "(not shown)";

/// Variables added to the environment of commands.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Env {
    /// In the order of the file.
    pub written: Vec<(String, String)>,
    /// Names of variables whose values may be shown.
    pub shown: BTreeSet<String>,
    /// Variables with their value's file, which is read at each attempt.
    pub files: Vec<(String, PathBuf)>,
}

impl Env {
    /// These variables, and the workload's variables with other names.
    pub(super) fn with_defaults(self, shared: &Self) -> Self {
        let is_own = |name: &String| {
            self.written.iter().any(|(own, _)| own == name) || self.files.iter().any(|(own, _)| own == name)
        };
        let written = shared.written.iter().filter(|(name, _)| !is_own(name)).cloned().chain(self.written.clone());
        let files = shared.files.iter().filter(|(name, _)| !is_own(name)).cloned().chain(self.files.clone());
        Self { written: written.collect(), shown: &self.shown | &shared.shown, files: files.collect() }
    }

    /// Every variable, with its value if the value may be shown.
    pub fn for_people(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        let written = self.written.iter();
        let written = written.map(|(name, value)| (name.as_str(), self.shown.contains(name).then_some(value.as_str())));
        written.chain(self.files.iter().map(|(name, _)| (name.as_str(), None)))
    }
}

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = |(name, value): (&str, Option<&str>)| (name.to_owned(), value.unwrap_or(NOT_SHOWN).to_owned());
        f.debug_map().entries(self.for_people().map(known)).finish()
    }
}

pub(super) fn read(table: &mut TomlTable<'_>) -> Env {
    // The value may be a secret, so the message does not repeat the value.
    let text = |value: &Value| scalar::text(value).map_err(|_| "is not a text: write the value in quotes".to_owned());
    let written = table.entries("env", text).unwrap_or_default();
    // A name without a value is no mistake: prepared tables list variables that may be added.
    let shown: BTreeSet<String> = table.show_alone("env", "env_shown", |one, other| one == other);
    let credentials = table.credentials();
    let file = |value: &Value| secret::file(value, credentials);
    let files: Vec<(Located<String>, Option<SecretFile>)> = table.entries("env_files", file).unwrap_or_default();
    for name in written.iter().map(|(name, _)| name).chain(files.iter().map(|(name, _)| name)) {
        refuse_name(table, name);
    }
    for (name, _) in &files {
        if written.iter().any(|(known, _)| known.value == name.value) {
            table.mistake(&name.place, format!("{} is in `env` as well: remove one", name.value));
        }
        if shown.contains(&name.value) {
            let message =
                format!("{} is a secret, because its value is in a file: remove the name from `env_shown`", name.value);
            table.mistake(&name.place, message);
        }
    }
    Env {
        written: written.into_iter().filter_map(|(name, text)| Some((name.value, text?))).collect(),
        shown,
        files: files.into_iter().filter_map(|(name, file)| Some((name.value, file?.path))).collect(),
    }
}

fn refuse_name(table: &TomlTable<'_>, name: &Located<String>) {
    if let Some((before, _)) = name.value.split_once('=') {
        let message = format!("`{before}=…` is not the name of a variable: write {before} = \"…\"");
        table.mistake(&name.place, message);
    }
    if name.value.starts_with("ALLCLEAR_") {
        let shown = scalar::shown_key(&name.value);
        let message = format!("{shown} is set by allclear for every hook: use another name");
        table.mistake(&name.place, message);
    }
}
