//! Claim: what people see of each command is what the contract says: output, messages and exit status.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod check;
mod usage;

use std::process::{Command, Output};

/// Runs the program to its end, with nothing in its environment but what is given.
fn allclear(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_allclear"))
        .args(arguments)
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}
