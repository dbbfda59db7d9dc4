//! Starts a hook's program: as its user, with its environment and nothing else.

use std::io;
use std::process::Stdio;

use serde_json::{Map, Value};
use tokio::process::{Child, Command};

use super::records::Request;
use super::user::Identity;
use crate::workloads::{Ended, contract};

/// Otherwise why not. The reason names the program: who reads it does not see the configuration.
pub(super) fn start(request: &Request, facts: &Map<String, Value>) -> Result<Child, Ended> {
    let [program, arguments @ ..] = request.command.argv.as_slice() else {
        return Err(Ended::Failed("its command is empty".to_owned()));
    };
    let identity = request.command.user.as_deref().map(Identity::of).transpose().map_err(Ended::Failed)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir("/").process_group(0).env_clear().envs(&request.env);
    if let Some(identity) = &identity {
        command.env("HOME", &identity.home);
    }
    command.envs(&request.command.env).envs(contract::variables(facts));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let started = match &identity {
        Some(identity) => identity.wear(|| command.spawn()).map_err(Ended::Failed)?,
        None => command.spawn(),
    };
    started.map_err(|error| match error.kind() {
        // What was ended before it may fill the machine for a moment longer.
        io::ErrorKind::WouldBlock => Ended::Blocked(format!("there is no room for a process of {program}: {error}")),
        io::ErrorKind::NotFound => {
            Ended::Failed(format!("cannot start {program}: no such program, or no interpreter for it"))
        }
        io::ErrorKind::PermissionDenied => Ended::Failed(format!("cannot start {program}: it may not be executed")),
        _ => Ended::Failed(format!("cannot start {program}: {error}")),
    })
}
