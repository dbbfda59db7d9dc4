//! `allclear status`, `explain` and `watch`: queries of a replica, for people or for programs.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::approve;
use super::asker::Asker;
use super::events::Events;
use super::format::{AnswerFormat, write};
use super::output::{self, Health, OutputContext, blockers};
use super::{Exit, examples, runtime, say};
use allclear_server::config::{self, ENDPOINT, USUAL_SOCKET};
use allclear_server::grpc::client::{Client, OperatorClientError, OperatorConnection, RpcResult};
use allclear_server::replica::sanitize::sanitize;
use allclear_server::replica::view::unmoved_primaries;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Interval at which a terminal is updated without a change of the status, for ages and remaining times.
const SHOW_AGAIN: Duration = Duration::from_secs(1);

/// The replica to query, and the output format.
#[derive(clap::Args)]
pub(super) struct Target {
    /// The replica's operator socket: a path, also with unix: in front
    #[arg(long, value_name = "SOCKET", env = ENDPOINT, default_value = USUAL_SOCKET, value_parser = read_endpoint)]
    pub(super) endpoint: PathBuf,
    #[command(flatten)]
    pub(super) format: AnswerFormat,
}

impl Target {
    pub(super) fn reader(&self) -> OutputContext {
        OutputContext::at(&self.endpoint)
    }

    /// Queries the replica, and prints the answer.
    pub(super) fn look<T: Serialize>(
        &self,
        ask: impl AsyncFnOnce(&mut OperatorConnection) -> Result<T, OperatorClientError>,
        told: impl FnOnce(&T) -> String,
    ) -> Result<(), Exit> {
        answered(async {
            self.format.print(&ask(&mut OperatorConnection::connect(&self.endpoint).await?).await?, told)
        })
    }

    /// Shows the consequences of an approval, and asks. Returns the revision that the person has seen.
    pub(super) fn confirmed(&self, event: &str) -> Result<Option<u64>, Exit> {
        let event = answered(async { OperatorConnection::connect(&self.endpoint).await?.event(event).await })?;
        if approve::is_confirmed(&event) {
            return Ok(Some(event.revision));
        }
        say("nothing is approved");
        Err(Exit::Failed)
    }

    /// Asks before a command after which a primary of the event goes down. Without such a primary, and without a terminal,
    /// nothing is asked.
    pub(super) fn confirm_unmoved(
        &self,
        event: &str,
        question: &str,
        unmoved: impl FnOnce(&shown::Event) -> Vec<String>,
    ) -> Result<(), Exit> {
        if !approve::is_answerable() {
            return Ok(());
        }
        let event = answered(async { OperatorConnection::connect(&self.endpoint).await?.event(event).await })?;
        let unmoved = unmoved(&event);
        accepted(&[(event, unmoved)], question)
    }

    /// Asks before the end of a pause, if a primary goes down with an event that then goes on.
    pub(super) fn confirm_resumed(&self) -> Result<(), Exit> {
        if !approve::is_answerable() {
            return Ok(());
        }
        let status = answered(async { OperatorConnection::connect(&self.endpoint).await?.status().await })?;
        let goes_on = |event: &shown::Event| event.hold.is_none() && blockers(event).any(|it| it.code == "paused");
        let paused = status.events.into_iter().filter(goes_on);
        let paused: Vec<_> = paused.map(|event| (event.clone(), unmoved_primaries(&event))).collect();
        accepted(&paused, "Resume now?")
    }

    /// Changes the replica's state, and prints the answer.
    pub(super) fn change<T: Serialize>(
        &self,
        asker: &Asker,
        call: impl AsyncFnOnce(&mut Client) -> RpcResult<T>,
        told: impl FnOnce(&T) -> String,
    ) -> Result<(), Exit> {
        let name = asker.name();
        answered(async {
            let mut asking = OperatorConnection::connect_as(&self.endpoint, name.as_deref()).await?;
            self.format.print(&asking.change(call).await?, told)
        })
    }
}

#[derive(Subcommand)]
pub(super) enum Query {
    /// Shows whether the cluster can act, why open events wait, and which replicas answer
    #[command(after_help = examples::STATUS)]
    Status {
        /// For a monitoring system: prints one line, and exits with 0 (good), 1 (warning), 2 (critical) or 3 (no answer)
        #[arg(long, conflicts_with = "watch")]
        check: bool,
        /// As `allclear watch`
        #[arg(long)]
        watch: bool,
        #[command(flatten)]
        target: Target,
    },
    Events(Events),
    /// Shows why an event is not approved yet, which step follows automatically and when, and which commands help
    #[command(after_help = examples::EXPLAIN)]
    Explain {
        /// The event's id; without an id, the command shows the only open event, or lists all open events
        #[arg(value_name = "EVENT")]
        event: Option<String>,
        #[command(flatten)]
        target: Target,
    },
    /// Shows the status again after each change, until the replica stops or you press Ctrl-C
    #[command(after_help = examples::WATCH)]
    Watch(Target),
}

impl Query {
    pub(super) fn run(self) -> Result<(), Exit> {
        match self {
            Self::Status { check: true, target, .. } => check(&target),
            Self::Status { watch: true, target, .. } | Self::Watch(target) => answered(watch(&target)),
            Self::Status { target, .. } => {
                target.look(OperatorConnection::status, |status| output::status(&target.reader().under(status), status))
            }
            Self::Events(events) => events.run(),
            Self::Explain { event, target } => explain(event.as_deref(), &target),
        }
    }
}

/// Counts down by the cluster's time: the clock of this machine may be wrong.
fn explain(event: Option<&str>, target: &Target) -> Result<(), Exit> {
    let status = OnceCell::new();
    let reader = || status.get().map_or_else(|| target.reader(), |status| target.reader().under(status));
    match event {
        Some(id) => target.look(
            async |asking| {
                let event = asking.event(id).await?;
                let _ = status.set(asking.status().await?);
                Ok(event)
            },
            |event| output::event(&reader(), event),
        ),
        None => target.look(
            async |asking| {
                let mut open = asking.events().await?;
                open.events.retain(|event| event.stage != "closed");
                let _ = status.set(asking.status().await?);
                Ok(open)
            },
            |open| output::all_open(&reader(), open),
        ),
    }
}

/// Ends with the exit codes that monitoring systems expect.
fn check(target: &Target) -> Result<(), Exit> {
    let asked = async { OperatorConnection::connect(&target.endpoint).await?.status().await };
    let status = match runtime()?.block_on(asked) {
        Ok(status) => status,
        Err(error) => {
            say(&error);
            // A monitoring system shows standard output.
            if !target.format.is_for_programs() {
                let _ = write(&format!("UNKNOWN: {}\n", sanitize(&error.to_string())));
            }
            return Err(Exit::NoReplica);
        }
    };
    answered(async { target.format.print(&status, output::health_line) })?;
    match output::health(&status) {
        Health::Ok => Ok(()),
        Health::Warning => Err(Exit::Failed),
        Health::Critical => Err(Exit::Usage),
    }
}

async fn watch(target: &Target) -> Result<(), OperatorClientError> {
    let mut asking = OperatorConnection::connect(&target.endpoint).await?;
    let mut changes = Box::pin(asking.watch().await?);
    if target.format.is_for_programs() || target.reader().paper.size.is_none() {
        while let Some(status) = changes.next().await {
            target.format.print(&status?, |status| output::status(&target.reader().under(status), status))?;
        }
        return Ok(());
    }
    let mut again = interval(SHOW_AGAIN);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let status = tokio::select! {
            next = changes.next() => match next {
                Some(status) => status?,
                None => return Ok(()),
            },
            _ = again.tick() => asking.status().await?,
        };
        let reader = target.reader().under(&status);
        write(&screenful(&output::status(&reader, &status), reader.paper.size.map(|(_, height)| height)))?;
    }
}

/// Text that overwrites the screen without flicker; lines beyond the terminal's height are cut off.
fn screenful(text: &str, height: Option<usize>) -> String {
    let room = height.unwrap_or(usize::MAX).saturating_sub(1);
    let mut screen = "\x1b[H".to_owned();
    for line in text.lines().take(room) {
        screen += line;
        screen += "\x1b[K\n";
    }
    screen + "\x1b[J"
}

/// A path, or `unix:///path` as other clients of gRPC write it.
pub(super) fn read_endpoint(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").or_else(|| text.strip_prefix("unix:")).unwrap_or(text);
    let is_port = |(_, port): (&str, &str)| port.parse::<u16>().is_ok();
    if path.is_empty() {
        Err("write the path of a replica's operator socket".into())
    } else if !path.contains('/') && path.rsplit_once(':').is_some_and(is_port) {
        Err("commands use the operator socket of a replica on this machine, not a port: write a path or unix:///path"
            .into())
    } else {
        Ok(path.into())
    }
}

/// The endpoint without an option: of the environment, or the usual one.
pub(super) fn endpoint_of_user() -> Result<PathBuf, String> {
    config::endpoint().map_or_else(
        || Ok(USUAL_SOCKET.into()),
        |text| read_endpoint(&text).map_err(|why| format!("{ENDPOINT}: {why}")),
    )
}

/// The answer; an error is printed to standard error.
pub(super) fn answered<T>(asking: impl Future<Output = Result<T, OperatorClientError>>) -> Result<T, Exit> {
    runtime()?.block_on(asking).map_err(|error| {
        say(&error);
        match error {
            OperatorClientError::NoAnswer { .. } => Exit::NoReplica,
            OperatorClientError::NotFound(_) | OperatorClientError::Output(_) | OperatorClientError::Unclear(_) => {
                Exit::Failed
            }
            OperatorClientError::Refused(_) => Exit::Refused,
        }
    })
}

/// Whether a person accepts that the primaries of these events go down; nothing is asked without such a primary.
fn accepted(events: &[(shown::Event, Vec<String>)], question: &str) -> Result<(), Exit> {
    let go_down: Vec<_> = events.iter().filter(|(_, unmoved)| !unmoved.is_empty()).collect();
    if go_down.is_empty() || approve::is_accepted(&go_down, question) {
        return Ok(());
    }
    say("nothing is changed");
    Err(Exit::Failed)
}
