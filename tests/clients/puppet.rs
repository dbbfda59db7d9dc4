//! A workload in a process of its own: prints each call of its handlers, and ends the calls as commanded. `puppet.py`
//! does the same.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use allclear::workload::{ConnectionState, Step, Workload};
use allclear::workload::{Handle, Hook, Intent, Mode, OnAbsent, OnFailure, Outcome, Phase, Role, RunsOn};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigSet, Signal};
use tokio::sync::mpsc;

pub(crate) fn name() -> &'static str {
    crate::own_test!(a_workload_can_be_a_process_of_its_own)
}
pub(crate) const SOCKET: &str = "ALLCLEAR_TEST_SOCKET";
pub(crate) const JOURNAL: &str = "ALLCLEAR_TEST_JOURNAL";

/// Commands to the running handlers, by attempt.
type Strings = Arc<Mutex<BTreeMap<String, mpsc::UnboundedSender<String>>>>;

#[tokio::test]
async fn a_workload_can_be_a_process_of_its_own() {
    let Ok(socket) = env::var(SOCKET) else { return };
    // A write beyond the limit fails with an error, and does not end the process. Every thread begun from here on
    // inherits this mask.
    SigSet::from(Signal::SIGXFSZ).thread_block().unwrap();
    let strings = Strings::default();
    match register(socket, env::var(JOURNAL).ok(), &strings).start() {
        Ok(handle) => obey(handle, strings).await,
        Err(error) => println!("@ cannot start: {error}"),
    }
}

fn register(socket: String, journal: Option<String>, strings: &Strings) -> Workload {
    let handler = || {
        let strings = strings.clone();
        move |step| dance(step, strings.clone())
    };
    let seconds = Duration::from_secs;
    let mut workload = Workload::new("orders", socket)
        .group("shop")
        .lease(seconds(2))
        .retain(seconds(3600))
        .on_absent(OnAbsent::Skip)
        .after("cache")
        .role(Role::Replica)
        .hook(
            Hook::new(Phase::Checkpoint, handler())
                .timeout(seconds(20))
                .attempts(3)
                .worst(seconds(5))
                .on_failure(OnFailure::Continue)
                .optional_if_short()
                .event_types(["Reboot", "Redeploy"]),
        )
        .hook(
            Hook::new(Phase::Failover, handler())
                .confirm(handler())
                .undo(handler())
                .dry_run(handler())
                .runs_on(RunsOn::Peer)
                .min_freeze(seconds(4))
                .fresh_for(seconds(30))
                .exclusive(),
        )
        .hook(Hook::new(Phase::Check, handler()));
    if let Some(journal) = journal {
        workload = workload.journal(journal);
    }
    workload
}

async fn dance(step: Step, strings: Strings) -> Outcome {
    let (sender, mut said) = mpsc::unbounded_channel();
    strings.lock().unwrap().insert(step.attempt.clone(), sender);
    println!("@ {}", told(&step));
    loop {
        let line = tokio::select! {
            line = said.recv() => line.unwrap(),
            () = step.cancelled() => {
                println!("@ {} cancelled", step.attempt);
                return Outcome::Cancelled;
            }
        };
        let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match verb {
            "progress" => step.progress(rest),
            "expect" => step.expect(Duration::from_millis(rest.parse().unwrap())),
            "more" => step.more_time(Duration::from_millis(rest.parse().unwrap())),
            "minutes" => println!("@ {} has {} min", step.attempt, step.time_left().as_secs() / 60),
            "deaf" => {
                println!("@ {} is deaf", step.attempt);
                return std::future::pending().await;
            }
            "done" => return Outcome::Done,
            "not_done" => return Outcome::NotDone,
            "failed" => return Err::<(), _>(rest).into(),
            "blocked" => return Outcome::Blocked(rest.into()),
            other => panic!("{other} is nothing to do"),
        }
    }
}

fn told(step: &Step) -> String {
    let role = |role: Role| if role == Role::Primary { "primary" } else { "replica" };
    let peers = step.members.iter().map(|peer| {
        format!("{}:{}{}{}", peer.vm, role(peer.role()), if peer.connected { "" } else { ":gone" }, affected(peer))
    });
    let (intent, phase) = (step.intent, step.phase);
    let mode = if step.mode == Mode::DryRun { " dry" } else { "" };
    let intent = if intent == Intent::Run { "run" } else { intent.as_str_name() };
    let journaled = step.journaled.as_ref().map_or("", |outcome| match outcome {
        Outcome::Done => " journaled=done",
        Outcome::NotDone => " journaled=not_done",
        Outcome::Failed(_) => " journaled=failed",
        Outcome::Unknown(_) => " journaled=unknown",
        _ => " journaled=something else",
    });
    let list = |name: &str, items: Vec<String>| {
        if items.is_empty() { String::new() } else { format!(" {name}={}", items.join(",")) }
    };
    let members = list("members", peers.collect());
    let (avoid, prefer) = (list("avoid", step.avoid.clone()), list("prefer", step.prefer.clone()));
    let intent = intent.trim_start_matches("INTENT_").to_lowercase();
    let phase = phase.as_str_name().trim_start_matches("PHASE_").to_lowercase();
    format!("{} {intent} {phase}{mode}{members}{avoid}{prefer}{journaled}", step.attempt)
}

fn affected(peer: &allclear::workload::Peer) -> &str {
    if peer.affected { ":affected" } else { "" }
}

/// Limits the length of files, or removes the limit.
fn make_room(length: Option<u64>) {
    let (_, most) = getrlimit(Resource::RLIMIT_FSIZE).unwrap();
    setrlimit(Resource::RLIMIT_FSIZE, length.unwrap_or(most), most).unwrap();
}

async fn obey(handle: Handle, strings: Strings) {
    let mut connection = handle.connection();
    tokio::spawn(async move {
        while connection.changed().await.is_ok() {
            match &*connection.borrow_and_update() {
                ConnectionState::Connected { vm, problems } => {
                    println!("@ connected to {vm}");
                    for problem in problems {
                        println!("@ problem {problem}");
                    }
                }
                ConnectionState::Refused { why } => println!("@ refused: {why}"),
                ConnectionState::Dialling { .. } | ConnectionState::Stopped => {}
            }
        }
    });
    let (sender, mut lines) = mpsc::unbounded_channel();
    std::thread::spawn(move || std::io::stdin().lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    while let Some(line) = lines.recv().await {
        match line.split_once(' ') {
            None if line == "stop" => return handle.stop().await,
            None if line == "leave" => {
                return if let Err(error) = handle.leave().await {
                    println!("@ {error}");
                };
            }
            Some(("role", "primary")) => handle.set_role(Role::Primary),
            Some(("room", length)) => {
                make_room(length.parse().ok());
                println!("@ has room");
            }
            Some((attempt, rest)) => {
                let sender = strings.lock().unwrap().get(attempt).cloned();
                sender.unwrap_or_else(|| panic!("{attempt} does not run")).send(rest.into()).unwrap();
            }
            None => panic!("{line} is nothing to do"),
        }
    }
}
