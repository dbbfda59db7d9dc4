//! What a table has, and where, without reading a value.

use super::TomlTable;
use crate::config::error::Location;
use crate::config::source::TomlShape;

impl TomlTable<'_> {
    /// True if the key is present, with a right or wrong value.
    pub(in crate::config) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key)
    }

    pub(in crate::config) fn is_table(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.key == key && matches!(entry.value.shape, TomlShape::Table(_)))
    }

    /// The place of a key's value, or of the table where the key is left out.
    pub(in crate::config) fn place_of(&self, key: &str) -> Location {
        let entry = self.entries.iter().find(|entry| entry.key == key);
        entry.map_or(&self.place, |entry| &entry.place).clone()
    }

    /// The place of a key's value in an inner table, or of the inner table where the key is left out.
    pub(in crate::config) fn place_in(&self, table: &str, key: &str) -> Location {
        let inner = self.entries.iter().find(|entry| entry.key == table).map(|entry| &entry.value.shape);
        let Some(TomlShape::Table(entries)) = inner else { return self.place_of(table) };
        let entry = entries.iter().find(|entry| entry.key == key);
        entry.map_or_else(|| self.place_of(table), |entry| entry.value.place.clone())
    }

    /// True if the key is present with an empty value.
    pub(in crate::config) fn is_empty(&self, key: &str) -> bool {
        let empty = |shape: &TomlShape| match shape {
            TomlShape::Table(entries) => entries.is_empty(),
            TomlShape::List(values) => values.is_empty(),
            TomlShape::Text(_) | TomlShape::Integer(_) | TomlShape::Boolean(_) | TomlShape::Other(_) => false,
        };
        self.entries.iter().any(|entry| entry.key == key && empty(&entry.value.shape))
    }

    /// As in `[cluster.tls]`.
    pub(in crate::config) fn path(&self) -> &str {
        &self.path
    }
}
