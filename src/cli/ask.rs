//! `allclear status`, `events`, `explain` and `watch`: what a replica says, for people or as JSON.

use std::io::Write as _;
use std::path::PathBuf;

use futures_util::StreamExt as _;
use serde::Serialize;

use super::told;
use super::{Exit, runtime, say};
use crate::rpc::client::{AskError, Asking};

/// Where a replica is asked, and in which form it answers.
#[derive(clap::Args)]
pub(super) struct Target {
    /// The replica's operator socket
    #[arg(long, value_name = "SOCKET", default_value = "/run/allclear/operator.sock")]
    pub(super) endpoint: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Shows who leads, who answers, and the open events
#[derive(clap::Args)]
pub(super) struct Status {
    #[command(flatten)]
    target: Target,
}

/// Lists the open events and the most recent closed ones
#[derive(clap::Args)]
#[command(after_help = super::export::EXAMPLES)]
pub(super) struct Events {
    #[command(flatten)]
    target: Target,
    /// Print all events that are kept, one JSON object on a line, the oldest first
    #[arg(long)]
    export: bool,
    /// Only those that were open at this time or later (RFC 3339)
    #[arg(long, value_name = "TIME", requires = "export")]
    since: Option<String>,
}

/// Tells what an event waits for, what happens next by itself, and what happened so far
#[derive(clap::Args)]
pub(super) struct Explain {
    /// The event's id
    #[arg(value_name = "EVENT")]
    event: String,
    #[command(flatten)]
    target: Target,
}

/// Shows the status again whenever it changes, until the replica stops or Ctrl-C
#[derive(clap::Args)]
pub(super) struct Watch {
    #[command(flatten)]
    target: Target,
}

impl Status {
    pub(super) fn run(self) -> Exit {
        answer(async {
            let status = Asking::connect(&self.target.endpoint).await?.status().await?;
            print(&self.target, &status, told::status)
        })
    }
}

impl Events {
    pub(super) fn run(self) -> Exit {
        answer(async {
            if self.export {
                return super::export::all(&self.target.endpoint, self.since).await;
            }
            let events = Asking::connect(&self.target.endpoint).await?.events().await?;
            print(&self.target, &events, told::events)
        })
    }
}

impl Explain {
    pub(super) fn run(self) -> Exit {
        answer(async {
            let event = Asking::connect(&self.target.endpoint).await?.event(&self.event).await?;
            print(&self.target, &event, told::event)
        })
    }
}

impl Watch {
    pub(super) fn run(self) -> Exit {
        answer(async {
            let mut changes = Box::pin(Asking::connect(&self.target.endpoint).await?.watch().await?);
            while let Some(status) = changes.next().await {
                print(&self.target, &status?, told::status)?;
            }
            Ok(())
        })
    }
}

pub(super) fn answer(asking: impl Future<Output = Result<(), AskError>>) -> Exit {
    answered(asking).map_or_else(|exit| exit, |()| Exit::Done)
}

/// What is answered; otherwise people are told why not.
pub(super) fn answered<T>(asking: impl Future<Output = Result<T, AskError>>) -> Result<T, Exit> {
    runtime()?.block_on(asking).map_err(|error| {
        say(&error);
        match error {
            AskError::NoAnswer { .. } => Exit::NoReplica,
            AskError::NotFound(_) | AskError::Output(_) | AskError::Unclear(_) => Exit::Failed,
            AskError::Refused(_) => Exit::Refused,
        }
    })
}

pub(super) fn print<T: Serialize>(target: &Target, shown: &T, told: impl FnOnce(&T) -> String) -> Result<(), AskError> {
    print_as(target.json, shown, told)
}

pub(super) fn print_as<T: Serialize>(json: bool, shown: &T, told: impl FnOnce(&T) -> String) -> Result<(), AskError> {
    let text = if json {
        serde_json::to_string(shown).map_err(|error| AskError::Output(error.to_string()))? + "\n"
    } else {
        told(shown)
    };
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| AskError::Output(error.to_string()))
}
