//! Asking a program for something it says at once: no spool, no supervisor, and nothing of it is left afterwards.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command as Process};
use tokio::time::timeout;

use super::user::Identity;
use super::{Command, Surroundings};

/// What it says beyond is not read.
const ANSWER_LIMIT: u64 = 4096;

/// What the program printed, provided it ends well within `patience`; otherwise why not.
pub async fn ask(
    command: &Command,
    facts: &BTreeMap<&str, String>,
    surroundings: &Surroundings,
    patience: Duration,
) -> Result<String, String> {
    let mut child = start(command, facts, surroundings)?;
    let group = child.id();
    let answer = timeout(patience, answer(&mut child)).await;
    if let Some(group) = group.and_then(|group| i32::try_from(group).ok()) {
        // Only fails where nobody is left.
        let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
    }
    answer.unwrap_or_else(|_| Err(format!("it did not answer within {} ms", patience.as_millis())))
}

fn start(command: &Command, facts: &BTreeMap<&str, String>, surroundings: &Surroundings) -> Result<Child, String> {
    let [program, arguments @ ..] = command.argv.as_slice() else { return Err("its command is empty".to_owned()) };
    let identity = command.user.as_deref().map(Identity::of).transpose()?;
    let mut process = Process::new(program);
    process.args(arguments).current_dir("/").process_group(0).kill_on_drop(true);
    process.env_clear().env("PATH", &surroundings.path).env("HOME", &surroundings.home);
    process.env("LANG", &surroundings.lang).envs(&command.env).envs(facts);
    process.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(identity) = &identity {
        identity.give_to(&mut process);
    }
    process.spawn().map_err(|error| format!("cannot start {program}: {error}"))
}

async fn answer(child: &mut Child) -> Result<String, String> {
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(ANSWER_LIMIT).read_to_end(&mut said).await.map_err(|error| format!("cannot read it: {error}"))?;
    }
    let status = child.wait().await.map_err(|error| format!("cannot wait for it: {error}"))?;
    if status.success() {
        Ok(String::from_utf8_lossy(&said).into_owned())
    } else {
        Err(format!("it ended with {status}"))
    }
}
