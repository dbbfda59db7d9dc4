//! `[metadata]`: the endpoint of the metadata service, and its timeouts.

use core::time::Duration;

use super::reader::TomlTable;
use super::scalar;
use super::source::Value;
use crate::imds::{ApiVersion, is_address};

/// The platform's endpoint, never reached through a proxy.
const ENDPOINT: &str = "http://169.254.169.254";

#[derive(Clone, PartialEq, Debug)]
pub struct Metadata {
    /// `http://host[:port]`, without a path.
    pub endpoint: String,
    pub api_version: ApiVersion,
    pub poll_interval: Duration,
    /// Without a validated document for this long, a replica's channel counts as stalled.
    pub stall_after: Duration,
    /// A replica no longer counts for the end of an event after this time unreachable or stalled.
    pub stale_after: Duration,
    /// An event that may be approved or has started is over after this time without being listed.
    pub gone_after: Duration,
    /// An event ends after this time if the only replica that ever saw the event cannot be asked.
    pub forget_after: Duration,
}

pub(super) fn read(table: &mut TomlTable<'_>) -> Metadata {
    let seconds = Duration::from_secs;
    let metadata = Metadata {
        endpoint: table.or("endpoint", endpoint, ENDPOINT.to_owned()),
        api_version: table.or("api_version", api_version, ApiVersion::newest()),
        poll_interval: table.or("poll_interval", scalar::duration(Duration::from_millis(50)..=seconds(60)), seconds(1)),
        stall_after: table.or("stall_after", scalar::duration(Duration::from_millis(100)..=seconds(3600)), seconds(15)),
        stale_after: table.or(
            "stale_after",
            scalar::duration(Duration::from_millis(100)..=seconds(86_400)),
            seconds(60),
        ),
        gone_after: table.or("gone_after", scalar::duration(Duration::from_millis(100)..=seconds(3600)), seconds(10)),
        forget_after: table.or("forget_after", scalar::duration(seconds(1)..=seconds(7 * 86_400)), seconds(2 * 3600)),
    };
    let ladder = [
        ("poll_interval", metadata.poll_interval),
        ("stall_after", metadata.stall_after),
        ("stale_after", metadata.stale_after),
        ("forget_after", metadata.forget_after),
    ];
    for pair in ladder.windows(2) {
        let [(shorter, short), (longer, long)] = pair else { continue };
        if short >= long {
            let (short, long) = (humantime::format_duration(*short), humantime::format_duration(*long));
            let message = format!(
                "`metadata.{longer}` is {long}: the value has to be longer than `metadata.{shorter}`, which \
                         is {short}"
            );
            table.mistake(&table.place_of(if table.has(longer) { longer } else { shorter }), message);
        }
    }
    metadata
}

fn endpoint(value: &Value) -> Result<String, String> {
    let text = scalar::name(value)?;
    if is_address(&text) {
        return Ok(text.trim_end_matches('/').to_owned());
    }
    // A password is not repeated.
    let what = if text.contains('@') { "contains a user".to_owned() } else { format!("is {text:?}") };
    Err(format!("{what}: write http://HOST[:PORT] without a path, as \"http://169.254.169.254\""))
}

fn api_version(value: &Value) -> Result<ApiVersion, String> {
    let word = scalar::name(value)?;
    ApiVersion::parse(&word)
        .ok_or_else(|| format!("is {word:?}, and Azure does not know this version: write {}", ApiVersion::newest()))
}
