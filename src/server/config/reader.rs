//! Takes typed values out of a table by key, and reports every unknown key at the end.
//!
//! A reader never stops at an error: the reader records the error and continues with the default or without a value.
//! The parsers of `scalar` describe the mistake, and the reader adds the place. The reader keeps all values, defaults
//! included, for printing.

mod confidence;
mod lookups;

use std::path::Path;

use super::error::{Findings, Location};
use super::printed::Printed;
use super::scalar;
use super::source::{KeyValue, TomlShape, Value};

/// The context for reading every table.
#[derive(Clone, Copy)]
pub(super) struct Reading<'a> {
    pub(super) findings: &'a Findings,
    /// The folder of this service's credentials.
    pub(super) credentials: &'a Path,
}

/// One table of the document while it is read.
pub(super) struct TomlTable<'a> {
    /// As in `[cluster.tls]`; empty for the whole document.
    path: String,
    place: Location,
    entries: &'a [KeyValue],
    asked: Vec<&'static str>,
    printed: toml::Table,
    reading: Reading<'a>,
}

/// A value with its place, for mistakes that only appear when values are compared.
#[derive(Clone)]
pub(super) struct Located<T> {
    pub(super) value: T,
    pub(super) place: Location,
}

impl<T: Printed> Printed for Located<T> {
    fn printed(&self) -> toml::Value {
        self.value.printed()
    }
}

/// The result and its printed form. A value other than a table is read as an empty table, after the mistake is noted.
pub(super) fn read_table<T>(
    path: String,
    value: &Value,
    reading: Reading<'_>,
    read: impl FnOnce(&mut TomlTable<'_>) -> T,
) -> (T, toml::Table) {
    let entries = if let TomlShape::Table(entries) = &value.shape { entries.as_slice() } else { &[] };
    let mut table = TomlTable {
        path,
        place: value.place.clone(),
        entries,
        asked: Vec::new(),
        printed: toml::Table::new(),
        reading,
    };
    let result = read(&mut table);
    table.report_unknown();
    (result, table.into_printed())
}

impl<'a> TomlTable<'a> {
    fn find(&mut self, key: &'static str) -> Option<&'a KeyValue> {
        self.asked.push(key);
        self.entries.iter().find(|entry| entry.key == key)
    }

    fn path_to(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    fn accept<T>(
        &self,
        name: &str,
        value: &Value,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<Located<T>> {
        match parse(value) {
            Ok(parsed) => Some(Located { value: parsed, place: value.place.clone() }),
            Err(wrong) => {
                self.mistake(&value.place, format!("`{name}` {wrong}"));
                None
            }
        }
    }

    fn accept_key<T>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<Located<T>> {
        let entry = self.find(key)?;
        self.accept(&self.path_to(key), &entry.value, parse)
    }

    /// The value with its place; `None` when the key is left out or wrong.
    pub(super) fn found<T: Printed>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<Located<T>> {
        let found = self.accept_key(key, parse)?;
        self.print(key, &found);
        Some(found)
    }

    pub(super) fn optional<T: Printed>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        self.found(key, parse).map(|found| found.value)
    }

    pub(super) fn or<T: Printed>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
        default: T,
    ) -> T {
        self.optional(key, parse).unwrap_or_else(|| self.default(key, default))
    }

    /// Records the default of a missing key.
    pub(super) fn default<T: Printed>(&mut self, key: &'static str, default: T) -> T {
        self.print(key, &default);
        default
    }

    /// Reads a required key: a missing key is a mistake too; `why` is the purpose of the key.
    pub(super) fn required<T: Printed>(
        &mut self,
        key: &'static str,
        parse: impl FnOnce(&Value) -> Result<T, String>,
        why: &str,
    ) -> Option<Located<T>> {
        if !self.has(key) {
            let message = format!("`{}` is missing: {why}", self.path_to(key));
            self.mistake(&self.place, message);
        }
        self.found(key, parse)
    }

    /// The value of exactly one of two keys.
    pub(super) fn one_of<T>(&self, first: (&str, Option<T>), second: (&str, Option<T>), neither: &str) -> Option<T> {
        match (self.has(first.0), self.has(second.0)) {
            (true, true) => {
                let message = format!("`{}` has both `{}` and `{}`: remove one", self.path, first.0, second.0);
                self.mistake(&self.place_of(second.0), message);
            }
            (false, false) => self.mistake_here(neither),
            (true, false) | (false, true) => {}
        }
        first.1.or(second.1)
    }

    /// Reads a list; every wrong element is a mistake of its own.
    pub(super) fn list<T: Printed>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<Located<T>>> {
        let values = self.accept_key(key, scalar::list)?.value;
        let name = self.path_to(key);
        let found: Vec<_> = values.iter().filter_map(|value| self.accept(&name, value, &parse)).collect();
        self.print(key, &found);
        Some(found)
    }

    /// Reads a table with user-defined keys, in the order of the file; `None` for a wrong value.
    pub(super) fn entries<T: Printed>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Option<Vec<(Located<String>, Option<T>)>> {
        // The wrong value may be a secret.
        let table =
            |value: &Value| scalar::table(value).map_err(|_| "is not a table: write { NAME = \"value\" }".into());
        let entries = self.accept_key(key, table)?.value;
        let path = self.path_to(key);
        let read = |entry: &KeyValue| {
            let key = Value { place: entry.place.clone(), shape: TomlShape::Text(entry.key.clone()), unquoted: None };
            self.accept(&format!("a key of {path}"), &key, scalar::key)?;
            let found = self.accept(&format!("{path}.{}", scalar::shown_key(&entry.key)), &entry.value, &parse);
            Some((Located { value: entry.key.clone(), place: entry.place.clone() }, found.map(|found| found.value)))
        };
        let entries: Vec<_> = entries.iter().filter_map(read).collect();
        let printed =
            |(name, value): &(Located<String>, Option<T>)| Some((name.value.clone(), value.as_ref()?.printed()));
        self.insert(key, entries.iter().filter_map(printed).collect::<toml::Table>());
        Some(entries)
    }

    pub(super) fn table<T>(&mut self, key: &'static str, read: impl FnOnce(&mut TomlTable<'_>) -> T) -> Option<T> {
        let entry = self.find(key)?;
        let path = self.path_to(key);
        // the place is the header rather than the first brace
        let value = Value { place: entry.place.clone(), ..entry.value.clone() };
        self.accept(&path, &value, scalar::table)?;
        Some(self.read_inner(key, &value, read))
    }

    /// Reads a table as `table` does; a missing table is read as an empty table.
    pub(super) fn table_or_empty<T>(&mut self, key: &'static str, read: impl FnOnce(&mut TomlTable<'_>) -> T) -> T {
        let place = self.place_of(key);
        let entry = self.find(key);
        let path = self.path_to(key);
        let value = match entry {
            Some(entry) => Value { place, ..entry.value.clone() },
            None => Value { place, shape: TomlShape::Table(Vec::new()), unquoted: None },
        };
        self.accept(&path, &value, scalar::table);
        self.read_inner(key, &value, read)
    }

    fn read_inner<T>(&mut self, key: &'static str, value: &Value, read: impl FnOnce(&mut TomlTable<'_>) -> T) -> T {
        let (result, printed) = read_table(self.path_to(key), value, self.reading, read);
        self.insert(key, printed);
        result
    }

    /// A list of tables, `[[key]]`.
    pub(super) fn tables<T>(&mut self, key: &'static str, read: impl Fn(&mut TomlTable<'_>) -> T) -> Vec<T> {
        let Some(entry) = self.find(key) else { return Vec::new() };
        let path = self.path_to(key);
        let list = |value: &Value| match &value.shape {
            TomlShape::Table(_) => Err(format!("is a single table: write [[{path}]] with two brackets for each entry")),
            _ => scalar::list(value),
        };
        let value = Value { place: entry.place.clone(), ..entry.value.clone() };
        let Some(values) = self.accept(&path, &value, list) else { return Vec::new() };
        let is_table = |value: &&Value| self.accept(&path, value, scalar::table).is_some();
        let tables: Vec<_> = values.value.iter().filter(is_table).collect();
        let read = tables.into_iter().map(|value| read_table(path.clone(), value, self.reading, &read));
        let (results, printed): (_, Vec<_>) = read.unzip();
        self.insert(key, printed);
        results
    }

    /// The printed values in the order of reading.
    fn into_printed(mut self) -> toml::Table {
        self.asked.iter().filter_map(|key| self.printed.remove_entry(*key)).collect()
    }

    fn print(&mut self, key: &'static str, value: &impl Printed) {
        self.insert(key, value.printed());
    }

    fn insert(&mut self, key: &'static str, printed: impl Into<toml::Value>) {
        self.printed.insert(key.to_owned(), printed.into());
    }

    /// Rejects repeated names of tables of one kind.
    pub(super) fn refuse_repeats<'n>(&self, key: &str, names: impl Iterator<Item = &'n Located<String>>) {
        let mut seen: Vec<&str> = Vec::new();
        for name in names {
            if seen.contains(&name.value.as_str()) {
                let path = self.path_to(key);
                self.mistake(
                    &name.place,
                    format!("`{path}.name` {:?} is used twice: every entry needs its own name", name.value),
                );
            }
            seen.push(&name.value);
        }
    }

    /// A mistake of the table as a whole.
    pub(super) fn mistake_here(&self, message: &str) {
        self.mistake(&self.place, format!("`{}` {message}", self.path));
    }

    pub(super) fn mistake(&self, place: &Location, message: impl Into<String>) {
        self.reading.findings.add(place, message);
    }

    fn report_unknown(&self) {
        let unknown = self.entries.iter().filter(|entry| !self.asked.contains(&entry.key.as_str()));
        for KeyValue { key, place, .. } in unknown {
            let path = self.path_to(key);
            let advice = match scalar::nearest(key, &self.asked) {
                Some(known) => format!("did you mean `{known}`?"),
                None => format!("the known keys are {}", self.asked.join(", ")),
            };
            self.mistake(place, format!("`{path}` is not a known key: {advice}"));
        }
    }
}
