//! Configurations: each is accepted and printed as an equal configuration, or every mistake is reported, each in a line
//! of bounded length.

use std::panic::catch_unwind;

use allclear::config::{self, Config};
use serde_json::Value;

use crate::hostile::dice::{Dice, rounds};
use crate::hostile::{memory, mutate};

const LONGEST_MISTAKE: usize = 8_000;
const MOST_MISTAKES: usize = 20_000;

fn corpus() -> Vec<String> {
    let example = include_str!("../../deploy/allclear.example.toml");
    let small = include_str!("corpus/configuration.toml");
    let printed = [example, small].map(|text| config::read("allclear.toml", text, []).unwrap().to_string());
    [example.to_owned(), small.to_owned()].into_iter().chain(printed).collect()
}

/// Converts to TOML, without values that TOML cannot express.
fn toml_of(value: &Value) -> Option<toml::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(is) => toml::Value::Boolean(*is),
        Value::Number(number) => number
            .as_i64()
            .map_or_else(|| number.as_f64().map(toml::Value::Float), |n| Some(toml::Value::Integer(n)))?,
        Value::String(text) => toml::Value::String(text.clone()),
        Value::Array(items) => toml::Value::Array(items.iter().filter_map(toml_of).collect()),
        Value::Object(fields) => {
            toml::Value::Table(fields.iter().filter_map(|(key, value)| Some((key.clone(), toml_of(value)?))).collect())
        }
    })
}

fn changed_as_a_tree(dice: &mut Dice, text: &str) -> Option<String> {
    let mut tree: Value = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
    mutate::json(dice, &mut tree);
    let toml::Value::Table(table) = toml_of(&tree)? else { return None };
    toml::to_string(&table).ok()
}

/// The reader, or a reader with a mistake: a configuration, or all reported mistakes.
type Reader = fn(&str, Option<(String, String)>) -> Result<Config, String>;

fn read(text: &str, variable: Option<(String, String)>) -> Result<Config, String> {
    config::read("allclear.toml", text, variable).map_err(|mistakes| mistakes.to_string())
}

/// The reader's fault, if any, and whether the configuration was accepted.
fn judged(reader: Reader, text: &str, variable: Option<(String, String)>) -> (Option<String>, bool) {
    match catch_unwind(|| reader(text, variable)) {
        Err(_) => (Some("panicked".into()), false),
        Ok(Ok(config)) => {
            let printed = config.to_string();
            let again = catch_unwind(|| reader(&printed, None)).ok();
            // Hidden values are not printed; a placeholder says so.
            let is_same = again.as_ref().is_some_and(|again| match again {
                Ok(again) if !config.hidden.is_empty() => again.to_string() == printed,
                again => again.as_ref() == Ok(&config),
            });
            ((!is_same).then(|| format!("printed as another one:\n{printed}\n{again:?}")), true)
        }
        Ok(Err(told)) => {
            let longest = told.lines().map(str::len).max().unwrap_or_default();
            let is_fit = longest <= LONGEST_MISTAKE && told.lines().count() <= MOST_MISTAKES && !told.is_empty();
            let steers = told.chars().any(|c| c.is_control() && c != '\n');
            ((!is_fit || steers).then(|| format!("told {told:.500?}")), false)
        }
    }
}

/// The number of accepted configurations, or the fault.
fn searched(reader: Reader, rounds: u64) -> Result<usize, String> {
    let (corpus, mut dice, mut taken) = (corpus(), Dice::of(3), 0);
    for round in 0..rounds {
        let whole = dice.one(&corpus).clone();
        let text = match dice.below(3) {
            0 => {
                String::from_utf8_lossy(&mutate::bytes(&mut dice, whole.as_bytes(), corpus[1].as_bytes())).into_owned()
            }
            _ => changed_as_a_tree(&mut dice, &whole).unwrap_or(whole),
        };
        let name =
            *dice.one(&["CLUSTER__NAME", "POLICY__MARGIN", "REPLICA", "X", "METADATA__ENDPOINT__X", "STATUS__LISTEN"]);
        let variable = dice.once_in(4).then(|| (format!("ALLCLEAR__{name}"), mutate::text(&mut dice)));
        let (wrong, is_taken) = judged(reader, &text, variable.clone());
        taken += usize::from(is_taken);
        if let Some(wrong) = wrong {
            return Err(format!("round {round}, {variable:?}: {wrong}\n{text:.4000}"));
        }
    }
    Ok(taken)
}

#[test]
fn whatever_is_configured_is_understood_whole_or_every_mistake_is_told() {
    let rounds = rounds(800);
    let taken = searched(read, rounds).unwrap();
    assert!(u64::try_from(taken).unwrap() > rounds / 40, "only {taken} were understood");
    memory::is_bounded();
}

#[test]
fn readers_with_a_mistake_are_found_out() {
    let mistaken: [(&str, Reader); 3] = [
        ("one that cuts lines in the middle of a letter", |text, variable| {
            let halves: usize = text.lines().map(|line| line[..line.len() / 2].len()).sum();
            read(text, variable).map_err(|told| format!("{halves}: {told}"))
        }),
        ("one that repeats what it cannot read", |text, variable| {
            read(text, variable).map_err(|_| format!("{text} cannot be read"))
        }),
        ("one that reads forty lines", |text, variable| {
            read(&text.lines().take(40).collect::<Vec<_>>().join("\n"), variable)
        }),
    ];
    for (what, reader) in mistaken {
        let found = searched(reader, 800);
        assert!(found.is_err(), "{what} was not found in {found:?}");
    }
}
