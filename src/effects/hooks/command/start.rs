//! Starts a hook's program as its user, with its own environment only.

use std::collections::BTreeMap;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::attempt_files::RunRecord;
use super::user::RunAs;
use crate::hooks::contract;

/// The time for which a hook waits for process capacity, and the retry interval: processes ended before may use the
/// machine's capacity for a short time.
const ROOM_WITHIN: Duration = Duration::from_secs(5);
const ROOM_EVERY: Duration = Duration::from_millis(100);

/// Starts the hook's program with its own variables `env`. Fails at the latest after `left`. The reason names the
/// program, because the configuration is not visible to its reader.
pub(super) async fn start(
    request: &RunRecord,
    env: &BTreeMap<String, String>,
    facts: &Map<String, Value>,
    left: Duration,
) -> Result<Child, String> {
    let [program, arguments @ ..] = request.command.argv.as_slice() else {
        return Err("the command is empty".to_owned());
    };
    let identity = request.command.user.as_deref().map(RunAs::of).transpose()?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").process_group(0).env_clear().envs(&request.env);
    if let Some(identity) = &identity {
        command.env("HOME", &identity.home);
    }
    command.envs(env).envs(contract::variables(facts));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let give_up = Instant::now() + left.min(ROOM_WITHIN);
    loop {
        let started = match &identity {
            Some(identity) => identity.spawn(&mut command)?,
            None => command.spawn(),
        };
        let why = match started {
            Ok(hook) => return Ok(hook),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock if Instant::now() < give_up => {
                    sleep(ROOM_EVERY).await;
                    continue;
                }
                io::ErrorKind::NotFound => "the program or its interpreter does not exist".to_owned(),
                io::ErrorKind::PermissionDenied => "the program may not be executed".to_owned(),
                _ => error.to_string(),
            },
        };
        return Err(format!("cannot start {program}: {why}"));
    }
}
