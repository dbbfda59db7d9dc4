//! `allclear events --export`: everything that is kept of events, for an archive.

use std::io::Write as _;
use std::path::Path;

use crate::rpc::client::{AskError, Asking};
use crate::wire::pb::allclear::operator::v1 as shown;

pub(super) const EXAMPLES: &str = "\
Examples:
  Everything that the cluster keeps (the last 1,000 closed events, for 90 days), asked of any replica:
    allclear events --export > events.jsonl
  What is new since yesterday, for an archive (an event that is open is told again, whole, when it is over):
    allclear events --export --since \"$(date -u -d yesterday +%FT%TZ)\" >> archive.jsonl
  How long approvals took, and how long VMs stood still, in milliseconds:
    allclear events --export | jq -c '[.id, .measures.all_clear_ms, .measures.impact_observed_ms]'";

/// Prints page after page.
pub(super) async fn all(endpoint: &Path, since: Option<String>) -> Result<(), AskError> {
    let mut asking = Asking::connect(endpoint).await?;
    let mut after = String::new();
    loop {
        let request = shown::ListEventsRequest { all: true, after, since: since.clone() };
        let page = asking.page(request).await?;
        print(&page.events).map_err(AskError::Output)?;
        match page.next {
            Some(next) => after = next,
            None => return Ok(()),
        }
    }
}

fn print(events: &[shown::Event]) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    for event in events {
        let line = serde_json::to_string(event).map_err(|error| error.to_string())?;
        writeln!(out, "{line}").map_err(|error| error.to_string())?;
    }
    out.flush().map_err(|error| error.to_string())
}
