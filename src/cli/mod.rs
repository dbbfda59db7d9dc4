//! The command line. Each command has a file; this file only selects the command.
//!
//! Results go to standard output, all messages for people to standard error.

mod approve;
mod asker;
mod certs;
mod check;
mod doctor;
mod drill;
mod events;
mod examples;
mod export;
mod format;
mod hook;
mod http_hook;
mod manual;
mod member;
mod operator;
mod output;
mod policy;
mod query;
mod restore;
mod run;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

#[cfg(feature = "lab")]
use allclear_lab::{bench::Bench, demo::Demo, demo_hook::DemoHook, demo_kv::DemoKv, fake_cloud::FakeCloud};
use allclear_server::config::{self, Config};
pub use allclear_server::exit::Exit;
use allclear_server::exit::{failed, misused, runtime, say};
use allclear_server::hooks;
use clap::{Parser, Subcommand};

/// Prepares replicated databases for Azure maintenance events, and gives Azure one approval per event.
#[derive(Parser)]
#[command(name = "allclear", version, arg_required_else_help = true, after_help = examples::FIRST)]
struct Arguments {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Subcommand)]
enum CliCommand {
    #[cfg(feature = "lab")]
    Demo(Demo),
    /// Runs one replica until SIGTERM or SIGINT
    Run(Configured),
    /// Prints the configuration with every default and override, or all mistakes of the configuration at once
    Check(Configured),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Certs(certs::Certs),
    #[cfg(feature = "lab")]
    Bench(Bench),
    #[command(flatten)]
    Query(query::Query),
    #[command(subcommand)]
    Member(member::MemberSubcommand),
    #[command(subcommand)]
    Leader(member::Leader),
    #[command(subcommand)]
    Workload(workload::WorkloadSubcommand),
    #[command(subcommand)]
    Hook(hook::HookSubcommand),
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    Drill(drill::DrillCommand),
    #[command(flatten)]
    Operator(operator::OperatorCommand),
    #[cfg(feature = "lab")]
    FakeCloud(FakeCloud),
    #[command(flatten)]
    Manual(manual::Manual),
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    DemoHook(DemoHook),
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    DemoKv(DemoKv),
    #[command(hide = true)]
    HttpHook(http_hook::HttpHookArguments),
    /// Runs the hook of one attempt, and writes the outcome into the attempt's folder; replicas start this command
    #[command(hide = true)]
    Supervise {
        folder: PathBuf,
    },
}

impl CliCommand {
    fn run(self) -> ExitCode {
        match self {
            #[cfg(feature = "lab")]
            Self::Demo(demo) => demo.run().into(),
            Self::Run(file) => ended(run::run(&file)),
            Self::Check(file) => ended(check::check(&file)),
            Self::Doctor(doctor) => ended(doctor.run()),
            Self::Certs(certs) => ended(certs.run()),
            #[cfg(feature = "lab")]
            Self::Bench(bench) => bench.run().into(),
            Self::Query(ask) => ended(ask.run()),
            Self::Member(member) => ended(member.run()),
            Self::Leader(leader) => ended(leader.run()),
            Self::Workload(workload) => ended(workload.run()),
            Self::Hook(hook) => ended(hook.run()),
            Self::Policy(policy) => ended(policy.run()),
            Self::Drill(drill) => ended(drill.run()),
            Self::Operator(wish) => ended(wish.run()),
            #[cfg(feature = "lab")]
            Self::FakeCloud(cloud) => ended(cloud.run()),
            Self::Manual(manual) => ended(manual.run()),
            #[cfg(feature = "lab")]
            Self::DemoHook(hook) => hook.run(),
            #[cfg(feature = "lab")]
            Self::DemoKv(member) => member.run().into(),
            Self::HttpHook(arguments) => arguments.run(),
            Self::Supervise { folder } => hooks::supervise(&folder),
        }
    }
}

fn ended(done: Result<(), Exit>) -> ExitCode {
    done.err().unwrap_or(Exit::Done).into()
}

/// The argument of commands that read the configuration of one replica.
#[derive(clap::Args)]
struct Configured {
    /// The configuration file
    #[arg(long = "config", value_name = "FILE")]
    path: PathBuf,
}

impl Configured {
    fn load(&self) -> Result<Config, Exit> {
        config::load(&self.path, config::environment()).map_err(misused)
    }
}

/// The whole program: parses its arguments and runs the command.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => arguments.command.run(),
        Err(error) => {
            // a closed pipe has no reader
            let _ = error.print();
            // help and version were asked for; everything else was not
            if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }

    /// The text files below a folder of the source.
    fn texts(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let is_text =
                path.extension().is_some_and(|kind| ["rs", "js", "md", "proto", "toml"].iter().any(|it| kind == *it));
            if path.is_dir() {
                texts(&path, found);
            } else if is_text && let Ok(text) = std::fs::read_to_string(&path) {
                found.push((path, text));
            }
        }
    }

    /// The fault of a command line in a text: a command or a long option that does not exist.
    fn fault(line: &str) -> Option<String> {
        let mut command = <Arguments as clap::CommandFactory>::command();
        command.build();
        let mut command = &command;
        for (place, word) in line.split_whitespace().filter(|word| *word != "\\").enumerate() {
            let word = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-');
            if let Some(option) = word.strip_prefix("--") {
                let option = option.split('=').next().unwrap_or_default();
                let exists = command.get_arguments().any(|known| known.get_long() == Some(option));
                if !exists && !["help", "version"].contains(&option) {
                    return Some(format!("`{}` has no option --{option}", command.get_name()));
                }
            } else if let Some(sub) = command.find_subcommand(word) {
                command = sub;
            } else if place == 0 {
                return Some(format!("there is no command {word:?}"));
            }
        }
        None
    }

    #[test]
    fn every_command_that_a_text_names_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        for folder in ["src", "deploy", "proto"] {
            texts(&root.join(folder), &mut found);
        }
        let mut named = 0;
        for (path, text) in found {
            for line in text.split("`allclear ").skip(1).filter_map(|rest| rest.split('`').next()) {
                // A form or a test's piece of text begins with something else than a command.
                if line.starts_with(|first: char| first.is_ascii_lowercase()) {
                    named += 1;
                    assert_eq!(fault(line), None, "{}: `allclear {line}`", path.display());
                }
            }
        }
        assert!(named > 200, "only {named} were found");
        assert_eq!(fault("events --all").as_deref(), Some("`events` has no option --all"));
        assert_eq!(fault("evnts").as_deref(), Some("there is no command \"evnts\""));
    }
}
