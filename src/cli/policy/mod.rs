//! `allclear policy test`: what would be done with an event, and by which rule. Opens no port and writes nothing.

mod forecast;
mod told;
mod why;

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde::Serialize;

use self::forecast::{Forecast, forecasts, members};
use super::ask::print;
use super::{Configured, Exit, failed, misused};
use crate::config::Config;
use crate::fake_cloud::{SCENARIOS, Scenario, ScenarioError};
use crate::machine::document::Document;
use crate::machine::time::Timestamp;
use crate::metadata::{MAX_BODY, read_written};
use crate::replica::clock::{self, rfc3339};

/// Tries the policy out
#[derive(Subcommand)]
pub(super) enum Policy {
    Test(Test),
}

/// Tells what would be done with an event, and by which rule: of a document, or of every built-in scenario
#[derive(clap::Args)]
pub(super) struct Test {
    #[command(flatten)]
    file: Configured,
    /// A document of the metadata service, or one event of it; - is standard input. Left out: the built-in scenarios
    #[arg(value_name = "EVENT.json")]
    event: Option<PathBuf>,
    /// When the event is first seen, as 2026-01-01T00:00:00Z; left out: now
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    at: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// All that is told.
#[derive(Serialize)]
struct Report {
    /// When the events are first seen.
    at: String,
    cases: Vec<Case>,
}

/// A document, or a scenario.
#[derive(Serialize)]
struct Case {
    name: String,
    about: String,
    /// Why it could not be tried.
    skipped: Option<String>,
    events: Vec<Forecast>,
}

impl Policy {
    pub(super) fn run(self) -> Result<(), Exit> {
        let Self::Test(Test { file, event, at, json }) = self;
        let config = file.load()?;
        let now = at.unwrap_or_else(clock::now);
        let cases = match &event {
            Some(path) => {
                let read = read_event(path);
                let document = read.map_err(|why| misused(format_args!("{}: {why}", path.display())))?;
                vec![of_document(&config, path, &document, now)]
            }
            None => SCENARIOS.iter().map(|(name, _)| of_scenario(&config, name, now)).collect(),
        };
        print(json, &Report { at: rfc3339(now), cases }, told::report).map_err(failed)
    }
}

fn read_time(text: &str) -> Result<Timestamp, String> {
    clock::from_rfc3339(text).ok_or_else(|| "it is no time in UTC; write it as 2026-01-01T00:00:00Z".into())
}

/// What a file says, or why it says nothing.
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
    if document.events.is_empty() { Err("it lists no event".into()) } else { Ok(document) }
}

fn of_document(config: &Config, path: &Path, document: &Document, now: Timestamp) -> Case {
    let events = forecasts(config, document, now);
    let name = if path == Path::new("-") { "standard input".into() } else { path.display().to_string() };
    Case { name, about: String::new(), skipped: None, events }
}

/// Its events stand alone: one that follows another is announced when that one is over.
fn of_scenario(config: &Config, name: &str, now: Timestamp) -> Case {
    let found = Scenario::find(name).and_then(|scenario| {
        let sights = scenario.first_sights(&members(config), now);
        Ok((scenario.about().to_owned(), sights?))
    });
    let (about, skipped, sights) = match found {
        Ok((about, sights)) => (about, None, sights),
        Err(ScenarioError::TooFewVms { needs, has, .. }) => {
            let why = format!("it needs {needs} VMs, and the configuration names {has}");
            (String::new(), Some(why), Vec::new())
        }
        Err(error) => (String::new(), Some(error.to_string()), Vec::new()),
    };
    let alone = |sight| forecasts(config, &Document::new(vec![sight]), now);
    Case { name: name.into(), about, skipped, events: sights.into_iter().flat_map(alone).collect() }
}
