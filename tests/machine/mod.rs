//! Scripts: entries in, state and effects out. Each file in `scripts` proves the claim in its name.
//!
//! A block is one command a line, `----`, and the answer of the core, up to the next blank line. `world.rs`,
//! `alone.rs`, `operator.rs` and `roster.rs` list the commands. After every entry the invariants are checked. `BLESS=1
//! cargo test --test functions machine::` rewrites the answers; read the difference before you believe it.

mod alone;
mod bounds;
mod operator;
mod parse;
mod proposal;
mod room;
mod roster;
mod show;
mod waves;
mod world;

use std::fmt::Write;
use std::path::Path;

use world::World;

/// Runs a script and returns the script with the current answers of the core.
fn play(script: &str) -> String {
    let mut world = World::new();
    let mut played = String::new();
    let mut answers = String::new();
    let mut in_answer = false;
    for line in script.lines() {
        if in_answer && !line.is_empty() {
            continue;
        }
        let _ = writeln!(played, "{line}");
        if line == "----" {
            in_answer = true;
            played.push_str(&answers);
            answers.clear();
        } else if line.is_empty() {
            in_answer = false;
        } else if !line.starts_with('#') {
            match world.obey(line) {
                Ok(answer) => answers.push_str(&answer),
                Err(mistake) => {
                    let _ = writeln!(answers, "MISTAKE in '{line}': {mistake}");
                }
            }
        }
    }
    if !answers.is_empty() {
        let _ = write!(played, "----\n{answers}");
    }
    played
}

fn first_difference(expected: &str, played: &str) -> String {
    let place = expected.lines().zip(played.lines()).position(|(old, new)| old != new);
    let place = place.unwrap_or_else(|| expected.lines().count().min(played.lines().count()));
    let line = |text: &str| text.lines().nth(place).unwrap_or("(the end)").to_owned();
    format!("line {}:\n  expected: {}\n  answered: {}", place + 1, line(expected), line(played))
}

#[test]
fn every_script_gets_the_answers_it_expects() {
    let bless = std::env::var_os("BLESS").is_some();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machine/scripts");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 50, "only {} scripts were found", paths.len());
    let mut failures = String::new();
    for path in paths {
        let expected = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Ok(played) = std::panic::catch_unwind(|| play(&expected)) else {
            let _ = writeln!(failures, "{name}: panicked");
            continue;
        };
        // Neither word can be blessed.
        for word in ["MISTAKE", "VIOLATED"] {
            if let Some(line) = played.lines().find(|line| line.contains(word)) {
                let _ = writeln!(failures, "{name}: {line}");
            }
        }
        if played != expected {
            if bless {
                std::fs::write(&path, &played).unwrap();
            } else {
                let _ = writeln!(failures, "{name}, {}", first_difference(&expected, &played));
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn a_wrong_answer_is_noticed() {
    let script = "cluster a b\nreport a: Scheduled User Reboot e1 a\nstep\n----\nnonsense\n";
    assert_ne!(play(script), script);
    assert_eq!(play(&play(script)), play(script));
}
