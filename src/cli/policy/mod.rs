//! `allclear policy test`: the forecast for an event, and the rule of the forecast. Opens no port and writes nothing.

mod forecast;
#[cfg(feature = "lab")]
mod scenarios;
mod told;
mod why;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use self::forecast::{Forecast, forecasts};
use super::format::AnswerFormat;
use super::{Configured, Exit, failed, misused};
use allclear_core::model::document::Document;
use allclear_core::model::time::Timestamp;
use allclear_server::config::Config;
use allclear_server::imds::{MAX_BODY, read_written};
use allclear_server::replica::clock::{self, rfc3339};

/// Tests the policy
#[derive(Subcommand)]
pub(super) enum PolicyCommand {
    Test(Test),
}

/// Shows the treatment of each event and the rule behind the treatment, for a document or every built-in scenario
#[derive(clap::Args)]
pub(super) struct Test {
    #[command(flatten)]
    file: Configured,
    /// A document of the metadata service, or one event; - is standard input. By default, the built-in scenarios
    #[arg(value_name = "EVENT.json")]
    event: Option<PathBuf>,
    /// The time at which the event is first seen, such as 2026-01-01T00:00:00Z; by default now
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    at: Option<Timestamp>,
    #[command(flatten)]
    format: AnswerFormat,
}

/// The whole report.
#[derive(Serialize)]
struct PolicyReport {
    /// Time at which the events are first announced.
    at: String,
    cases: Vec<Case>,
}

/// A document, or a scenario.
#[derive(Serialize)]
struct Case {
    name: String,
    about: String,
    /// Why the forecast was impossible.
    skipped: Option<String>,
    events: Vec<Forecast>,
}

impl PolicyCommand {
    pub(super) fn run(self) -> Result<(), Exit> {
        let Self::Test(Test { file, event, at, format }) = self;
        let config = file.load()?;
        let now = at.unwrap_or_else(clock::now);
        let cases = match &event {
            Some(path) => {
                let read = read_event(path);
                let document = read.map_err(|why| misused(format_args!("{}: {why}", path.display())))?;
                vec![of_document(&config, path, &document, now)]
            }
            None => built_in(&config, now)?,
        };
        format.print(&PolicyReport { at: rfc3339(now), cases }, told::report).map_err(failed)
    }
}

fn read_time(text: &str) -> Result<Timestamp, String> {
    clock::from_rfc3339(text).ok_or_else(|| "this is no time in UTC; write for example 2026-01-01T00:00:00Z".into())
}

/// Reads a document from a file.
pub(super) fn read_event(path: &Path) -> Result<Document, String> {
    let mut body = Vec::new();
    let limit = u64::try_from(MAX_BODY).unwrap_or(u64::MAX) + 1;
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut body)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut body))
    };
    read.map_err(|error| format!("cannot be read: {error}"))?;
    let document = read_written(&body)?;
    if document.events.is_empty() { Err("the document lists no event".into()) } else { Ok(document) }
}

fn of_document(config: &Config, path: &Path, document: &Document, now: Timestamp) -> Case {
    let events = forecasts(config, document, now);
    let name = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
    Case { name, about: String::new(), skipped: None, events }
}

#[cfg(feature = "lab")]
#[expect(clippy::unnecessary_wraps, reason = "a build without scenarios fails here")]
fn built_in(config: &Config, now: Timestamp) -> Result<Vec<Case>, Exit> {
    Ok(scenarios::all(config, now))
}

#[cfg(not(feature = "lab"))]
fn built_in(_: &Config, _: Timestamp) -> Result<Vec<Case>, Exit> {
    Err(misused("this build has no scenarios: name a file with a document of the metadata service, or with one event"))
}
