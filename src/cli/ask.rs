//! `allclear status`, `events`, `explain` and `watch`: what a replica says, for people or as JSON.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::time::{MissedTickBehavior, interval};

use super::told::{self, Reader, USUAL_ENDPOINT};
use super::{Exit, examples, runtime, say};
use crate::machine::time::Timestamp;
use crate::ops::harmless::harmless_json;
use crate::replica::clock::{self, from_rfc3339};
use crate::rpc::client::{AskError, Asking};
use crate::wire::pb::allclear::operator::v1 as shown;

/// On a terminal, what passes by itself is shown again as often: ages, and the time that is left.
const SHOW_AGAIN: Duration = Duration::from_secs(1);

/// Where a replica is asked, and in which form it answers.
#[derive(clap::Args)]
pub(super) struct Target {
    /// The replica's operator socket
    #[arg(long, value_name = "SOCKET", default_value = USUAL_ENDPOINT)]
    pub(super) endpoint: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Target {
    pub(super) fn reader(&self) -> Reader {
        Reader::at(&self.endpoint)
    }
}

/// Shows whether the cluster can act, what the open events wait for, and who answers
#[derive(clap::Args)]
#[command(after_help = examples::STATUS)]
pub(super) struct Status {
    #[command(flatten)]
    target: Target,
}

/// Lists the open events and the most recent closed ones
#[derive(clap::Args)]
#[command(after_help = examples::EVENTS)]
pub(super) struct Events {
    /// Only those that are not closed
    #[arg(long)]
    open: bool,
    /// Only those to which something happened since: 2h (ago), or 2026-01-31T12:00:00Z; open ones always count
    #[arg(long, value_name = "SPAN|TIME", value_parser = since)]
    since: Option<Timestamp>,
    /// Only so many of them: the newest
    #[arg(long, value_name = "NUMBER")]
    limit: Option<usize>,
    #[command(flatten)]
    target: Target,
    /// Print all events that are kept, whole, one JSON object on a line, the oldest first
    #[arg(long, conflicts_with_all = ["open", "limit", "json"])]
    export: bool,
}

/// Tells why an event is not approved yet, what happens next by itself and when, and what can be done
#[derive(clap::Args)]
#[command(after_help = examples::EXPLAIN)]
pub(super) struct Explain {
    /// The event's id; left out: the only open event, or a list of them
    #[arg(value_name = "EVENT")]
    event: Option<String>,
    #[command(flatten)]
    target: Target,
}

/// Shows the status again whenever it changes, until the replica stops or Ctrl-C
#[derive(clap::Args)]
#[command(after_help = examples::WATCH)]
pub(super) struct Watch {
    #[command(flatten)]
    target: Target,
}

impl Status {
    pub(super) fn run(self) -> Exit {
        answer(async {
            let status = Asking::connect(&self.target.endpoint).await?.status().await?;
            print(&self.target, &status, |status| told::status(&self.target.reader(), status))
        })
    }
}

impl Events {
    pub(super) fn run(self) -> Exit {
        answer(async {
            if self.export {
                return super::export::all(&self.target.endpoint, self.since).await;
            }
            let all = Asking::connect(&self.target.endpoint).await?.events().await?;
            let events = self.chosen(all);
            print(&self.target, &events, |events| told::events(&self.target.reader(), events))
        })
    }

    /// The newest last, as they came.
    fn chosen(&self, list: shown::EventList) -> shown::EventList {
        let is_open = |event: &shown::Event| event.stage != "closed";
        let newest = |event: &shown::Event| event.timeline.last().and_then(|step| from_rfc3339(&step.at));
        let is_recent =
            |event: &shown::Event| self.since.is_none_or(|since| newest(event).is_none_or(|at| at >= since));
        let mut events = list.events;
        events.retain(|event| is_open(event) || (!self.open && is_recent(event)));
        let beyond = events.len().saturating_sub(self.limit.unwrap_or(usize::MAX));
        shown::EventList { events: events.split_off(beyond), next: None }
    }
}

impl Explain {
    pub(super) fn run(self) -> Exit {
        answer(async {
            let mut asking = Asking::connect(&self.target.endpoint).await?;
            if let Some(id) = &self.event {
                let event = asking.event(id).await?;
                return print(&self.target, &event, |event| told::event(&self.target.reader(), event));
            }
            let mut open = asking.events().await?;
            open.events.retain(|event| event.stage != "closed");
            print(&self.target, &open, |open| told::all_open(&self.target.reader(), open))
        })
    }
}

impl Watch {
    pub(super) fn run(self) -> Exit {
        answer(async {
            let mut asking = Asking::connect(&self.target.endpoint).await?;
            let mut changes = Box::pin(asking.watch().await?);
            let paper = self.target.reader().paper;
            if self.target.json || paper.size.is_none() {
                while let Some(status) = changes.next().await {
                    print(&self.target, &status?, |status| told::status(&self.target.reader(), status))?;
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
                let reader = self.target.reader();
                write(&screenful(&told::status(&reader, &status), reader.paper.size.map(|(_, height)| height)))?;
            }
        })
    }
}

/// Over what stands there already, without flicker; what does not fit the terminal is cut off at its end.
fn screenful(text: &str, height: Option<usize>) -> String {
    let room = height.unwrap_or(usize::MAX).saturating_sub(1);
    let mut screen = "\x1b[H".to_owned();
    for line in text.lines().take(room) {
        screen += line;
        screen += "\x1b[K\n";
    }
    screen + "\x1b[J"
}

/// `2h`, counted back from now; or RFC 3339.
fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(span) = humantime::parse_duration(text) {
        return Ok(clock::now().minus(span));
    }
    from_rfc3339(text).ok_or_else(|| "say since how long (2h, 1d) or since when (2026-01-31T12:00:00Z)".into())
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
        let json = serde_json::to_string(shown).map_err(|error| AskError::Output(error.to_string()))?;
        harmless_json(&json) + "\n"
    } else {
        told(shown)
    };
    write(&text)
}

fn write(text: &str) -> Result<(), AskError> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| AskError::Output(error.to_string()))
}
