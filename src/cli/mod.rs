//! What people type. One file for each command; this one only chooses between them.
//!
//! Results go to standard output, everything said to people to standard error.

mod ask;
mod bench;
mod certs;
mod check;
mod demo;
mod demo_hook;
mod demo_kv;
mod doctor;
mod drill;
mod examples;
mod exit;
mod export;
mod fake_cloud;
mod hook;
mod http_hook;
mod manual;
mod member;
mod policy;
mod restore;
mod run;
mod signals;
mod simulate;
mod stage;
mod told;
mod wish;
mod workload;

use core::fmt;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::Runtime;

pub use exit::Exit;

use crate::config::{self, Config};
use crate::ops::harmless::harmless;
use crate::workloads;

/// Answers for a replicated database when the cloud asks to take a machine down.
#[derive(Parser)]
#[command(name = "allclear", version, arg_required_else_help = true, after_help = examples::FIRST)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::Demo),
    /// Runs one replica until SIGTERM or SIGINT
    Run(Configured),
    /// Prints the configuration with every default and override, or every mistake in it at once
    Check(Configured),
    Doctor(doctor::Doctor),
    #[command(subcommand)]
    Certs(certs::Certs),
    Bench(bench::Bench),
    #[command(flatten)]
    Ask(ask::Ask),
    #[command(subcommand)]
    Member(member::Member),
    #[command(subcommand)]
    Leader(member::Leader),
    #[command(subcommand)]
    Workload(workload::Workload),
    #[command(subcommand)]
    Hook(hook::Hook),
    #[command(subcommand)]
    Policy(policy::Policy),
    Drill(drill::Drill),
    #[command(flatten)]
    Wish(wish::Wish),
    FakeCloud(fake_cloud::FakeCloud),
    Simulate(simulate::Simulate),
    #[command(flatten)]
    Manual(manual::Manual),
    #[command(hide = true)]
    DemoHook(demo_hook::DemoHook),
    #[command(hide = true)]
    DemoKv(demo_kv::DemoKv),
    #[command(hide = true)]
    HttpHook(http_hook::Arguments),
    /// Runs the hook of one attempt and leaves its outcome in the attempt's folder; started by replicas
    #[command(hide = true)]
    Supervise {
        folder: PathBuf,
    },
}

impl Command {
    fn run(self) -> ExitCode {
        match self {
            Self::Demo(demo) => demo.run().into(),
            Self::Run(file) => ended(run::run(&file)),
            Self::Check(file) => ended(check::check(&file)),
            Self::Doctor(doctor) => ended(doctor.run()),
            Self::Certs(certs) => ended(certs.run()),
            Self::Bench(bench) => bench.run().into(),
            Self::Ask(ask) => ended(ask.run()),
            Self::Member(member) => ended(member.run()),
            Self::Leader(leader) => ended(leader.run()),
            Self::Workload(workload) => ended(workload.run()),
            Self::Hook(hook) => ended(hook.run()),
            Self::Policy(policy) => ended(policy.run()),
            Self::Drill(drill) => ended(drill.run()),
            Self::Wish(wish) => ended(wish.run()),
            Self::FakeCloud(cloud) => ended(cloud.run()),
            Self::Simulate(simulate) => simulate.run().into(),
            Self::Manual(manual) => ended(manual.run()),
            Self::DemoHook(hook) => hook.run(),
            Self::DemoKv(member) => member.run().into(),
            Self::HttpHook(arguments) => arguments.run(),
            Self::Supervise { folder } => workloads::supervise(&folder),
        }
    }
}

fn ended(done: Result<(), Exit>) -> ExitCode {
    done.err().unwrap_or(Exit::Done).into()
}

/// What commands need that look at one replica's configuration.
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

/// The whole program: reads its arguments and does what they say.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => arguments.command.run(),
        Err(error) => {
            // a closed pipe is nobody who could be told
            let _ = error.print();
            // help and version were asked for; everything else was not
            if error.use_stderr() { Exit::Usage.into() } else { Exit::Done.into() }
        }
    }
}

/// Tells people something, and nothing in it steers their terminal. Where nobody listens any more, nothing is lost.
fn say(what: impl fmt::Display) {
    let what = what.to_string();
    let lines: Vec<_> = what.split('\n').map(harmless).collect();
    let _ = writeln!(std::io::stderr().lock(), "{}", lines.join("\n"));
}

/// Tells why it cannot be done as it was asked for.
fn misused(why: impl fmt::Display) -> Exit {
    say(why);
    Exit::Usage
}

fn failed(why: impl fmt::Display) -> Exit {
    say(why);
    Exit::Failed
}

/// What asynchronous commands run on.
fn runtime() -> Result<Runtime, Exit> {
    Runtime::new().map_err(|error| failed(format_args!("cannot start: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
