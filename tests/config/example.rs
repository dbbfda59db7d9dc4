//! The commented example is the reference of the configuration: valid, and complete. The small example is the first
//! configuration of a user: valid, and short.

use std::collections::BTreeSet;

use super::read;

const EXAMPLE: &str = include_str!("../../deploy/allclear.example.toml");
const SMALL: &str = include_str!("../../deploy/allclear.toml");

#[test]
fn the_example_is_valid() {
    read(EXAMPLE).unwrap();
}

#[test]
fn the_small_example_is_valid_short_and_the_one_of_the_readme() {
    read(SMALL).unwrap();
    let lines = SMALL.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count();
    assert!(lines <= 15, "{lines} lines");
    let readme = include_str!("../../README.md");
    let mut blocks = readme.split("\n```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    assert!(blocks.any(|block| block == SMALL), "a block of the README is deploy/allclear.toml");
}

/// The known keys of each table, as listed in the error about an unknown key.
fn told_by(text: &str) -> BTreeSet<(String, String)> {
    let said = read(text).unwrap_err().to_string();
    let mut told = BTreeSet::new();
    for line in said.lines().filter(|line| line.contains("qqqq` is not a known key")) {
        let table = line.split('`').nth(1).unwrap().trim_end_matches("qqqq").trim_end_matches('.');
        let known = line.split_once("the known keys are ").unwrap().1;
        told.extend(known.split(", ").map(|key| (table.to_owned(), key.to_owned())));
    }
    told
}

/// The example with an unknown key in every table, including inline tables with keys that are not the user's own.
fn with_unknown_keys() -> String {
    let mut text = String::from("qqqq = 1\n");
    for line in EXAMPLE.lines() {
        let inline = ["role = {", "confirm = {", "undo = {", "duration = {", "notice = {", "window = {"]
            .iter()
            .any(|key| line.starts_with(key));
        let line = if inline { line.replacen('{', "{ qqqq = 1,", 1) } else { line.to_owned() };
        text.push_str(&line);
        text.push('\n');
        if line.starts_with('[') {
            text.push_str("qqqq = 1\n");
        }
    }
    text
}

/// Every key of the example, with its table.
fn named_by(table: &toml::Table, path: &str, named: &mut BTreeSet<(String, String)>) {
    /// The user's own keys.
    const UNREAD: &[&str] = &[
        "cluster.replicas",
        "workload.env",
        "workload.env_files",
        "workload.hook.env",
        "workload.hook.env_files",
        "workload.hook.members",
        "tracing.headers",
        "tracing.header_files",
        "notify.headers",
        "notify.header_files",
    ];
    for (key, value) in table {
        named.insert((path.to_owned(), key.clone()));
        let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        if UNREAD.contains(&inner.as_str()) {
            continue;
        }
        match value {
            toml::Value::Table(table) => named_by(table, &inner, named),
            toml::Value::Array(values) => {
                values.iter().filter_map(toml::Value::as_table).for_each(|table| named_by(table, &inner, named));
            }
            _ => {}
        }
    }
}

#[test]
fn the_example_names_every_key() {
    let told = told_by(&with_unknown_keys());
    let mut named = BTreeSet::new();
    named_by(&EXAMPLE.parse().unwrap(), "", &mut named);
    assert!(told.len() > 60, "every table tells its keys: {told:?}");
    assert_eq!(told.difference(&named).collect::<Vec<_>>(), Vec::<&(String, String)>::new(), "keys without an example");
    assert_eq!(
        named.difference(&told).collect::<Vec<_>>(),
        Vec::<&(String, String)>::new(),
        "tables that told nothing"
    );
}
