//! Starts a hook's program: as its user, with its environment and nothing else.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::records::Request;
use super::user::Identity;
use crate::workloads::contract;

/// How long a hook waits for room for its process, and how often it tries.
const ROOM_WITHIN: Duration = Duration::from_secs(5);
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// Why a program was not started.
pub(super) struct NotStarted {
    /// It names the program: who reads it does not see the configuration.
    pub(super) reason: String,
    /// There was no room for another process.
    is_crowded: bool,
}

impl From<String> for NotStarted {
    fn from(reason: String) -> Self {
        Self { reason, is_crowded: false }
    }
}

/// What an attempt before this one has left may fill the machine for a moment longer. Fails at the latest after `left`.
pub(super) async fn start(request: &Request, facts: &Map<String, Value>, left: Duration) -> Result<Child, NotStarted> {
    let give_up = Instant::now() + left.min(ROOM_WITHIN);
    loop {
        match start_now(request, facts) {
            Err(refused) if refused.is_crowded && Instant::now() < give_up => sleep(ROOM_EVERY).await,
            started => return started,
        }
    }
}

fn start_now(request: &Request, facts: &Map<String, Value>) -> Result<Child, NotStarted> {
    let [program, arguments @ ..] = request.argv.as_slice() else {
        return Err("its command is empty".to_owned().into());
    };
    let identity = request.user.as_deref().map(Identity::of).transpose()?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").process_group(0).env_clear().envs(&request.env);
    if let Some(identity) = &identity {
        command.env("HOME", &identity.home);
    }
    command.envs(&request.own_env).envs(contract::variables(facts));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = match &identity {
        Some(identity) => identity.wear(|| command.spawn())?,
        None => command.spawn(),
    };
    started.map_err(|error| NotStarted {
        is_crowded: error.kind() == io::ErrorKind::WouldBlock,
        reason: match error.kind() {
            io::ErrorKind::NotFound => format!("cannot start {program}: no such program, or no interpreter for it"),
            io::ErrorKind::PermissionDenied => format!("cannot start {program}: it may not be executed"),
            _ => format!("cannot start {program}: {error}"),
        },
    })
}
