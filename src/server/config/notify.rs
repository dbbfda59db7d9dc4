//! `[[notify]]`: receivers of notifications.

use core::time::Duration;
use std::collections::BTreeSet;

use super::reader::{Located, TomlTable};
use super::source::Value;
use super::{headers, scalar};
use crate::export::notices::receiver::{Address, Format, Receiver};
use allclear_core::model::notification::NotificationKind;

/// The number of receivers in the delivery record of one notification.
const MAX_RECEIVERS: usize = 16;
const LONGEST_NAME: usize = 64;

pub(super) fn read_all(table: &mut TomlTable<'_>) -> Option<Vec<Receiver>> {
    let receivers = table.tables("notify", read);
    if receivers.len() > MAX_RECEIVERS {
        let message = format!("`notify` is listed {} times: the limit is {MAX_RECEIVERS} receivers", receivers.len());
        table.mistake(&table.place_of("notify"), message);
    }
    table.refuse_repeats("notify", receivers.iter().flatten().map(|(name, _)| name));
    receivers.into_iter().map(|receiver| receiver.map(|(_, receiver)| receiver)).collect()
}

fn read(table: &mut TomlTable<'_>) -> Option<(Located<String>, Receiver)> {
    let name = table.required("name", short_name, "allclear records the deliveries under this name");
    let url = table.optional("url", scalar::url).map(Address::Written);
    let file = table.secret_file("url_file").map(Address::InFile);
    let neither = "has no address: add `url = \"https://…\"`, or `url_file` if the address is a secret";
    let address = table.one_of(("url", url), ("url_file", file), neither);
    let format = table.or("format", scalar::word(Format::NAMES, Format::parse), Format::CloudEvents);
    let topics = table.list("topics", scalar::word(NotificationKind::NAMES, NotificationKind::parse));
    if table.is_empty("topics") {
        table.mistake(&table.place_of("topics"), "`notify.topics` is empty: leave the key out for all topics");
    }
    let topics = topics.map(|topics| topics.into_iter().map(|topic| topic.value).collect());
    let topics: Vec<_> = topics.unwrap_or_else(|| table.default("topics", NotificationKind::ALL.to_vec()));
    let hour = Duration::from_hours(1);
    let blocked_after = scalar::duration(Duration::from_secs(1)..=24 * hour);
    let blocked_after = table.or("blocked_after", blocked_after, Duration::from_mins(1));
    let secret_file = table.secret_file("secret_file");
    let headers = headers::read(table);
    let ca = table.optional("ca", scalar::path);
    let name = name?;
    let receiver = Receiver {
        name: name.value.clone(),
        address: address?,
        format,
        topics: BTreeSet::from_iter(topics),
        blocked_after,
        secret_file,
        headers: headers?,
        ca,
    };
    if let Address::Written(url) = &receiver.address
        && let Err(why) = receiver.headers.may_go_to(url)
    {
        table.mistake(&table.place_of("url"), format!("`notify.url` {why}"));
    }
    Some((name, receiver))
}

fn short_name(value: &Value) -> Result<String, String> {
    let name = scalar::name(value)?;
    if name.len() > LONGEST_NAME {
        return Err(format!("is {} bytes long: the limit is {LONGEST_NAME}", name.len()));
    }
    Ok(name)
}
