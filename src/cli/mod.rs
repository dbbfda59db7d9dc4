//! What people type. One file for each command; this one only chooses between them.
//!
//! Results go to standard output, everything said to people to standard error.

mod check;
mod exit;

use core::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub use exit::Exit;

/// Answers for a replicated database when the cloud asks to take a machine down.
#[derive(Parser)]
#[command(name = "allclear", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Check(check::Check),
}

impl Command {
    fn run(self) -> Exit {
        match self {
            Self::Check(check) => check.run(),
        }
    }
}

/// The whole program: reads its arguments and does what they say.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => arguments.command.run().into(),
        Err(error) => {
            // a closed pipe is nobody who could be told
            let _ = error.print();
            // help and version were asked for; everything else was not
            if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
        }
    }
}

/// Tells people something. Where nobody listens any more, nothing is lost.
fn say(what: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
