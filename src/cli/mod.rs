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
mod http_hook;
mod leader;
mod manual;
mod member;
mod policy;
mod restore;
mod run;
mod signals;
mod simulate;
mod stage;
mod supervise;
mod told;
mod wish;

use core::fmt;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tokio::runtime::Runtime;

pub use exit::Exit;

use crate::ops::harmless::harmless;

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
    Run(run::Run),
    Check(check::Check),
    Doctor(doctor::Doctor),
    Certs(certs::Certs),
    Bench(bench::Bench),
    Status(ask::Status),
    Events(ask::Events),
    Explain(ask::Explain),
    Watch(ask::Watch),
    Member(member::Member),
    Leader(leader::Leader),
    Policy(policy::Policy),
    Drill(drill::Drill),
    Hold(wish::Hold),
    Release(wish::Release),
    Pause(wish::Pause),
    Resume(wish::Resume),
    Approve(wish::Approve),
    Skip(wish::Skip),
    FakeCloud(fake_cloud::FakeCloud),
    Simulate(simulate::Simulate),
    Completions(manual::Completions),
    Man(manual::Man),
    #[command(hide = true)]
    DemoHook(demo_hook::DemoHook),
    #[command(hide = true)]
    DemoKv(demo_kv::DemoKv),
    #[command(hide = true)]
    HttpHook(http_hook::HttpHook),
    #[command(hide = true)]
    Supervise(supervise::Supervise),
}

impl Command {
    fn run(self) -> ExitCode {
        match self {
            Self::Demo(demo) => demo.run().into(),
            Self::Run(run) => run.run().into(),
            Self::Check(check) => check.run().into(),
            Self::Doctor(doctor) => doctor.run().into(),
            Self::Certs(certs) => certs.run().into(),
            Self::Bench(bench) => bench.run().into(),
            Self::Status(status) => status.run().into(),
            Self::Events(events) => events.run().into(),
            Self::Explain(explain) => explain.run().into(),
            Self::Watch(watch) => watch.run().into(),
            Self::Member(member) => member.run().into(),
            Self::Leader(leader) => leader.run().into(),
            Self::Policy(policy) => policy.run().into(),
            Self::Drill(drill) => drill.run().into(),
            Self::Hold(hold) => hold.run().into(),
            Self::Release(release) => release.run().into(),
            Self::Pause(pause) => pause.run().into(),
            Self::Resume(resume) => resume.run().into(),
            Self::Approve(approve) => approve.run().into(),
            Self::Skip(skip) => skip.run().into(),
            Self::FakeCloud(cloud) => cloud.run().into(),
            Self::Simulate(simulate) => simulate.run().into(),
            Self::Completions(completions) => completions.run().into(),
            Self::Man(man) => man.run().into(),
            Self::DemoHook(hook) => hook.run(),
            Self::DemoKv(member) => member.run().into(),
            Self::HttpHook(hook) => hook.run(),
            Self::Supervise(supervise) => supervise.run(),
        }
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

/// What asynchronous commands run on.
fn runtime() -> Result<Runtime, Exit> {
    Runtime::new().map_err(|error| {
        say(format_args!("cannot start: {error}"));
        Exit::Failed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_well_formed() {
        <Arguments as clap::CommandFactory>::command().debug_assert();
    }
}
