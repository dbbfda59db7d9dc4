//! Hooks over HTTP. `allclear http-hook URL` is a command that asks a server to do the work, so deadline, cancelling,
//! output and restarts are those of every command hook.
//!
//! The command connects only to the configured host, without proxies and redirects, and never repeats a request
//! automatically. An answer that does not clearly state an outcome is unknown, never done.

mod answer;
mod facts;
mod hook;
mod patroni;
mod server;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use facts::Facts;
use server::HookServer;

use super::HookOutcome;
use super::contract::exit;
use crate::http_client::{self, BodyLimit, ClientCertificate, ExchangeError, Login, Options, Reply, RequestBuilder};
use allclear_core::string_enum;

/// The program of this process, also after its file was replaced by an upgrade.
const OWN_PROGRAM: &str = "/proc/self/exe";
const COMMAND: &str = "http-hook";

/// Answers are short; a longer body is a failure.
const MAX_BODY: usize = 64 * 1024;

/// The protocol of the server's answers.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Adapter {
    /// No adapter: the protocol of `deploy/docs/hooks.md`, HTTP hooks.
    #[default]
    None,
    /// The REST API of Patroni, by its base address.
    Patroni,
}

string_enum!(Adapter { None => "none", Patroni => "patroni" });

/// A hook that a server runs.
#[derive(Clone, Default, Debug)]
pub struct HttpHook {
    pub adapter: Adapter,
    pub url: String,
    pub options: Options,
    /// Names of Patroni's members and their VMs, where these names differ.
    pub members: Vec<(String, String)>,
}

impl HttpHook {
    /// A hook at this address, without further options.
    pub fn at(url: &str) -> Self {
        Self { url: url.to_owned(), ..Self::default() }
    }

    /// The command that runs this hook. Every user of the machine can read the command line: secrets are in files.
    pub fn command(&self) -> Vec<String> {
        let mut argv: Vec<String> =
            [OWN_PROGRAM, COMMAND, "--adapter", self.adapter.as_str()].map(str::to_owned).into();
        let mut flag = |name: &str, value: String| argv.push(format!("--{name}={value}"));
        let path = |path: &PathBuf| path.display().to_string();
        let Options { ca, identity, login } = &self.options;
        if let Some(ca) = ca {
            flag("ca", path(ca));
        }
        if let Some(ClientCertificate { certificate, key }) = identity {
            flag("cert", path(certificate));
            flag("key", path(key));
        }
        match login {
            Some(Login::Basic { username, password_file }) => {
                flag("username", username.clone());
                flag("password-file", path(password_file));
            }
            Some(Login::Bearer { token_file }) => flag("bearer-file", path(token_file)),
            None => {}
        }
        for (member, vm) in &self.members {
            flag("member", format!("{vm}={member}"));
        }
        argv.push(self.url.clone());
        argv
    }

    /// Whether [`Self::command`] made this command line: the work is a server's.
    pub fn is_made_of(argv: &[String]) -> bool {
        matches!(argv, [program, word, ..] if program == OWN_PROGRAM && word == COMMAND)
    }

    /// Runs as `allclear http-hook URL`: the facts are on standard input, and the answer follows the contract of command
    /// hooks.
    pub fn run(&self) -> ExitCode {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let ended = match runtime {
            Ok(runtime) => runtime.block_on(self.ask()).unwrap_or_else(|ended| ended),
            Err(error) => HookOutcome::Blocked(format!("the request was not sent: {error}")),
        };
        let (status, reason) = match &ended {
            HookOutcome::Done => (exit::DONE, None),
            HookOutcome::NotApplicable => (exit::NOT_APPLICABLE, None),
            HookOutcome::NotDone => (exit::NOT_DONE, None),
            HookOutcome::Failed(reason) => (exit::FAILED, Some(reason.as_str())),
            HookOutcome::Blocked(reason) => (exit::BLOCKED, Some(reason.as_str())),
            HookOutcome::Unknown(reason) | HookOutcome::Lost(reason) => (exit::UNKNOWN, Some(reason.as_str())),
            // The process that ended the hook knows the reason.
            HookOutcome::TimedOut => (exit::FAILED, None),
            HookOutcome::Cancelled => (exit::TERMINATED, None),
        };
        if let Some(reason) = reason {
            let _ = writeln!(io::stderr(), "{reason}");
        }
        ExitCode::from(status)
    }

    /// An error is an outcome before the first request.
    async fn ask(&self) -> Result<HookOutcome, HookOutcome> {
        let facts = Facts::of_standard_input().map_err(HookOutcome::Failed)?;
        let server = HookServer::new(&self.url, &self.options).await?;
        let ended = match self.adapter {
            Adapter::None => hook::run(&server, &facts).await,
            Adapter::Patroni => patroni::run(&server, &facts, &self.members).await,
        };
        Ok(server.without_secrets(ended))
    }
}

async fn exchange(request: RequestBuilder, patience: Duration) -> Result<Reply, ExchangeError> {
    http_client::exchange(request, patience, BodyLimit::Whole(MAX_BODY)).await
}
