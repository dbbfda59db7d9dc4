//! The first stage: TOML with the place of each key and value. This stage knows no key of allclear.

use core::fmt;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Findings, Location};

/// A value with its place.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) place: Location,
    pub(super) shape: TomlShape,
    /// The text of an environment variable, without quotes to distinguish a text from a number or a date.
    pub(super) unquoted: Option<String>,
}

#[derive(Clone, Debug)]
pub(super) enum TomlShape {
    Text(String),
    Integer(i64),
    Boolean(bool),
    List(Vec<Value>),
    /// In the order of the file: the order of `cluster.replicas` is significant.
    Table(Vec<KeyValue>),
    /// Floats, dates and too large numbers, which no key accepts.
    Other(&'static str),
}

#[derive(Clone, Debug)]
pub(super) struct KeyValue {
    pub(super) key: String,
    pub(super) place: Location,
    pub(super) value: Value,
}

impl fmt::Display for TomlShape {
    /// Prints the kind of value for a mistake.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "the text {text:?}"),
            Self::Integer(number) => write!(f, "the number {number}"),
            Self::Boolean(boolean) => write!(f, "{boolean}"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
            Self::Other(name) => f.write_str(name),
        }
    }
}

/// Parses a whole file. All syntax errors go to the findings; the value is unreliable in this case.
pub(super) fn parse(text: &str, findings: &Findings) -> Value {
    let places = LineIndex::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let place = places.at(error.span().map_or(0, |span| span.start));
        findings.add(&place, format!("not TOML: {}{}", error.message(), remedy(error.message())));
    }
    let shape = table_shape(table.into_inner(), |span| places.at(span.start));
    Value { place: places.at(0), shape, unquoted: None }
}

/// The correction of frequent mistakes, by the words of the parser.
fn remedy(message: &str) -> &'static str {
    let remedies = [
        (
            "duplicate key",
            ": write each key once; each of several workloads, hooks or groups begins with two brackets, as [[workload]]",
        ),
        ("string", ": a text ends in its line, with the quote with which it begins"),
        ("inline table", ": write the table between { and } in one line, or as [TABLE] with a line for each key"),
    ];
    remedies.iter().find(|(words, _)| message.contains(words)).map_or("", |(_, remedy)| *remedy)
}

/// Parses the value of an environment variable: TOML if possible, and the plain text otherwise, so that `10s` and
/// `db-0` need no quotes inside the shell's.
pub(super) fn parse_variable(name: &str, text: &str) -> Value {
    let place = Location::Variable(name.to_owned());
    let shape = match DeValue::parse(text) {
        Ok(value) => shape(value.into_inner(), &|_| place.clone()),
        Err(_) => TomlShape::Text(text.to_owned()),
    };
    Value { place, shape, unquoted: Some(text.to_owned()) }
}

fn shape(value: DeValue<'_>, place: &dyn Fn(core::ops::Range<usize>) -> Location) -> TomlShape {
    match value {
        DeValue::String(text) => TomlShape::Text(text.into_owned()),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .map_or(TomlShape::Other("a number that is too large"), TomlShape::Integer),
        DeValue::Boolean(boolean) => TomlShape::Boolean(boolean),
        DeValue::Float(_) => TomlShape::Other("a number with a point"),
        DeValue::Datetime(_) => TomlShape::Other("a date without quotes"),
        DeValue::Array(values) => TomlShape::List(values.into_iter().map(|value| spanned(value, place)).collect()),
        DeValue::Table(table) => table_shape(table, place),
    }
}

fn spanned(value: Spanned<DeValue<'_>>, place: &dyn Fn(core::ops::Range<usize>) -> Location) -> Value {
    Value { place: place(value.span()), shape: shape(value.into_inner(), place), unquoted: None }
}

fn table_shape(table: DeTable<'_>, place: impl Fn(core::ops::Range<usize>) -> Location) -> TomlShape {
    TomlShape::Table(
        table
            .into_iter()
            .map(|(key, value)| KeyValue {
                place: place(key.span()),
                key: key.into_inner().into_owned(),
                value: spanned(value, &place),
            })
            .collect(),
    )
}

/// Converts a byte's offset to line and column.
struct LineIndex<'a> {
    text: &'a str,
    line_starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    fn of(text: &'a str) -> Self {
        let line_starts = core::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, line_starts }
    }

    fn at(&self, byte: usize) -> Location {
        let line = self.line_starts.partition_point(|start| *start <= byte);
        let start = self.line_starts[line - 1];
        let column = self.text.get(start..byte).map_or(0, |before| before.chars().count()) + 1;
        Location::File { line, column }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_count_characters_and_not_bytes() {
        let text = "a = 1\nü = [2, 3]\n";
        assert_eq!(LineIndex::of(text).at(text.find('[').unwrap()), Location::File { line: 2, column: 5 });
    }

    #[test]
    fn tables_keep_the_order_of_the_file() {
        let value = parse("zebra = 1\napple = 2\n[mango]\n", &Findings::default());
        let TomlShape::Table(entries) = value.shape else { panic!("{:?}", value.shape) };
        let keys: Vec<_> = entries.iter().map(|entry| entry.key.as_str()).collect();
        assert_eq!(keys, ["zebra", "apple", "mango"]);
    }
}
