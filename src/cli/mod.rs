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
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
