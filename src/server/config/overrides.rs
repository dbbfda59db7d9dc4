//! The second stage: the file with overrides from the environment. `ALLCLEAR__POLICY__MARGIN=3s` sets `policy.margin`.
//!
//! A number is the index of a list (`ALLCLEAR__WORKLOAD__0__HOOK__1__TIMEOUT`). Names of environment variables have no
//! small letters and no hyphens, so a part also finds a key that differs only in these (`DB_0` is `db-0`).

use super::error::{Findings, Location};
use super::source::{KeyValue, TomlShape, Value, parse_variable};

const PREFIX: &str = "ALLCLEAR__";
const DEEPEST: usize = 8;

/// Sets the overrides, sorted by name, so that the result does not depend on the environment's order.
pub(super) fn override_with(
    document: &mut Value,
    environment: impl IntoIterator<Item = (String, String)>,
    findings: &Findings,
) {
    let mut overrides: Vec<_> = environment.into_iter().filter(|(name, _)| name.starts_with(PREFIX)).collect();
    overrides.sort();
    for (name, text) in overrides {
        let parts: Vec<_> = name[PREFIX.len()..].split("__").take(DEEPEST + 1).collect();
        if parts.len() > DEEPEST {
            findings.add(&Location::Variable(name), "names a key that is nested too deep");
        } else if let Err(message) = set(document, &parts, parse_variable(&name, &text)) {
            findings.add(&Location::Variable(name.clone()), message);
        }
    }
}

fn set(target: &mut Value, parts: &[&str], value: Value) -> Result<(), String> {
    let Some((part, rest)) = parts.split_first() else {
        *target = value;
        return Ok(());
    };
    if part.is_empty() {
        return Err("names no key: write ALLCLEAR__SECTION__KEY".to_owned());
    }
    match &mut target.shape {
        TomlShape::Table(entries) => set(entry(entries, part, &value.place), rest, value),
        TomlShape::List(values) => {
            let length = values.len();
            let element = part.parse().ok().and_then(|index: usize| values.get_mut(index));
            let element = element
                .ok_or_else(|| format!("{part} is not the number of one of the {length} elements, counted from 0"))?;
            set(element, rest, value)
        }
        TomlShape::Text(_) | TomlShape::Integer(_) | TomlShape::Boolean(_) | TomlShape::Other(_) => {
            Err(format!("has one part too many: the key before __{part} is not a table"))
        }
    }
}

/// The key for the part, added if missing.
fn entry<'a>(entries: &'a mut Vec<KeyValue>, part: &str, place: &Location) -> &'a mut Value {
    let plain = |key: &str| key.to_ascii_lowercase().replace('-', "_");
    let index = entries.iter().position(|entry| plain(&entry.key) == plain(part)).unwrap_or_else(|| {
        let value = Value { place: place.clone(), shape: TomlShape::Table(Vec::new()), unquoted: None };
        entries.push(KeyValue { key: part.to_ascii_lowercase(), place: place.clone(), value });
        entries.len() - 1
    });
    &mut entries[index].value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(file: &str, environment: &[(&str, &str)]) -> Value {
        let findings = Findings::default();
        let mut document = super::super::source::parse(file, &findings);
        let environment = environment.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        override_with(&mut document, environment, &findings);
        assert_eq!(findings.into_sorted(), []);
        document
    }

    fn at<'a>(value: &'a Value, path: &[&str]) -> &'a Value {
        path.iter().fold(value, |value, key| match &value.shape {
            TomlShape::Table(entries) => &entries.iter().find(|entry| entry.key == *key).unwrap().value,
            TomlShape::List(values) => &values[key.parse::<usize>().unwrap()],
            other => panic!("{other}"),
        })
    }

    #[test]
    fn a_variable_finds_keys_with_hyphens_and_elements_of_lists() {
        let file = "[cluster.replicas]\ndb-0 = 'a:1'\n[[workload]]\n[[workload]]\nname = 'b'\n";
        let document = merged(
            file,
            &[
                ("ALLCLEAR__CLUSTER__REPLICAS__DB_0", "c:2"),
                ("ALLCLEAR__WORKLOAD__1__NAME", "c"),
                ("ALLCLEAR_LOG", "x"),
            ],
        );
        assert_eq!(at(&document, &["cluster", "replicas", "db-0"]).shape.to_string(), "the text \"c:2\"");
        assert_eq!(at(&document, &["workload", "1", "name"]).shape.to_string(), "the text \"c\"");
    }

    #[test]
    fn a_variable_may_name_a_table_the_file_does_not_have() {
        let document = merged("", &[("ALLCLEAR__CLUSTER__TLS__CERT", "/c.pem")]);
        assert_eq!(at(&document, &["cluster", "tls", "cert"]).shape.to_string(), "the text \"/c.pem\"");
    }
}
