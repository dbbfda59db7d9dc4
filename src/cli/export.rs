//! `allclear events --export`: the complete record of events, for an archive.

use std::io::Write as _;
use std::path::Path;

use super::events::Since;
use allclear_server::grpc::client::{OperatorClientError, OperatorConnection};
use allclear_server::replica::clock::rfc3339;
use allclear_server::replica::sanitize::harmless_json;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Prints page after page.
pub(super) async fn all(endpoint: &Path, since: Option<Since>) -> Result<(), OperatorClientError> {
    let mut asking = OperatorConnection::connect(endpoint).await?;
    let since = match since {
        Some(since) => Some(since.time(&mut asking).await?),
        None => None,
    };
    asking.all_events(since.map(rfc3339), |events| print(&events).map_err(OperatorClientError::Output)).await
}

fn print(events: &[shown::Event]) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    for event in events {
        let line = serde_json::to_string(event).map_err(|error| error.to_string())?;
        writeln!(out, "{}", harmless_json(&line)).map_err(|error| error.to_string())?;
    }
    out.flush().map_err(|error| error.to_string())
}
