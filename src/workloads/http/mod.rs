//! Hooks that are reached over HTTP. `allclear http-hook URL` is a command that asks a server to do the work, so its
//! deadline, cancelling, output and what a replica finds after a restart are those of every command.
//!
//! It speaks to the configured host and to no other, without proxies and redirects, and asks nothing twice by itself.
//! Whatever does not clearly say how it ended is unknown, never done.

mod answer;
mod facts;
mod hook;
mod patroni;
mod server;

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use facts::Facts;
use server::Server;

use super::Ended;
use super::contract::exit;
use crate::http_client::{self, Body, Failure, Reply, RequestBuilder};

/// The program that runs this, also when its file was replaced by an upgrade meanwhile.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Answers are short; a longer body is a failure.
const MAX_BODY: usize = 64 * 1024;

/// Whose answers are understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Adapter {
    /// Nobody's: what `README.md` says of hooks over HTTP.
    None,
    /// The REST API of Patroni, by its base address.
    Patroni,
}

impl Adapter {
    /// The command of a hook at this address.
    pub fn command(self, url: &str) -> Vec<String> {
        let name = match self {
            Self::None => "none",
            Self::Patroni => "patroni",
        };
        [OWN_PROGRAM, "http-hook", "--adapter", name, url].map(str::to_owned).into()
    }

    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "none" => Some(Self::None),
            "patroni" => Some(Self::Patroni),
            _ => None,
        }
    }
}

/// Runs as `allclear http-hook URL`: the facts are on standard input, and it answers as every command hook does.
pub fn http_hook(url: &str, adapter: Adapter) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(ask(url, adapter)),
        Err(error) => Ended::Blocked(format!("the request was not sent: {error}")),
    };
    let (status, reason) = match &ended {
        Ended::Done => (exit::DONE, None),
        Ended::NotApplicable => (exit::NOT_APPLICABLE, None),
        Ended::NotDone => (exit::NOT_DONE, None),
        Ended::Failed(reason) => (exit::FAILED, Some(reason)),
        Ended::Blocked(reason) => (exit::BLOCKED, Some(reason)),
        Ended::Unknown(reason) | Ended::Lost(reason) => (exit::UNKNOWN, Some(reason)),
        // Who ended it knows why.
        Ended::TimedOut | Ended::Cancelled => (exit::FAILED, None),
    };
    if let Some(reason) = reason {
        let _ = writeln!(io::stderr(), "{reason}");
    }
    ExitCode::from(status)
}

async fn ask(url: &str, adapter: Adapter) -> Ended {
    match (Facts::of_standard_input(), Server::new(url).await, adapter) {
        (Err(reason), _, _) | (_, Err(reason), _) => Ended::Failed(reason),
        (Ok(facts), Ok(server), Adapter::None) => hook::run(&server, &facts).await,
        (Ok(facts), Ok(server), Adapter::Patroni) => patroni::run(&server, &facts).await,
    }
}

async fn exchange(request: RequestBuilder, patience: Duration) -> Result<Reply, Failure> {
    http_client::exchange(request, patience, Body::Whole(MAX_BODY)).await
}

fn say(word: &str, what: impl core::fmt::Display) {
    // Nobody may listen any more.
    let _ = writeln!(io::stdout(), "{word}: {what}");
}
