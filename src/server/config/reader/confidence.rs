//! Confidential values: values that are printed only where marked as harmless, and files of secrets.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::TomlTable;
use crate::config::env::NOT_SHOWN;
use crate::config::error::Hidden;
use crate::config::{scalar, secret};
use crate::secrets::Secrets;

impl<'a> TomlTable<'a> {
    /// Hides the values of a table with user-defined keys, except for the keys listed under `shown`. Returns the listed
    /// names.
    pub(in crate::config) fn show_alone(
        &mut self,
        key: &'static str,
        shown: &'static str,
        is_same: impl Fn(&str, &str) -> bool,
    ) -> BTreeSet<String> {
        let names = self.list(shown, scalar::key).unwrap_or_default().into_iter().map(|name| name.value);
        let names: BTreeSet<String> = names.collect();
        let printed = self.printed.get(key).and_then(toml::Value::as_table).into_iter().flatten();
        let hidden = printed.filter(|(name, _)| !names.iter().any(|shown| is_same(name, shown)));
        let hidden = hidden.map(|(name, value)| (name.clone(), value.as_str().is_some_and(Secrets::is_too_short)));
        for (name, is_too_short) in hidden.collect::<Vec<_>>() {
            let (path, place) = (format!("{}.{key}.{name}", self.path), self.place_in(key, &name));
            self.reading.findings.hide(Hidden { path, place, is_too_short });
            if let Some(value) = self.printed.get_mut(key).and_then(|entries| entries.get_mut(&name)) {
                *value = NOT_SHOWN.into();
            }
        }
        names
    }

    /// The folder of secrets that systemd loads.
    pub(in crate::config) fn credentials(&self) -> &'a Path {
        self.reading.credentials
    }

    /// A file that holds a secret.
    pub(in crate::config) fn secret_file(&mut self, key: &'static str) -> Option<PathBuf> {
        let credentials = self.credentials();
        self.optional(key, |value| secret::file(value, credentials)).map(|file| file.path)
    }

    /// Reads the file of a secret; a missing key is a mistake too.
    pub(in crate::config) fn required_secret_file(&mut self, key: &'static str, why: &str) -> Option<PathBuf> {
        let credentials = self.credentials();
        self.required(key, |value| secret::file(value, credentials), why).map(|found| found.value.path)
    }
}
