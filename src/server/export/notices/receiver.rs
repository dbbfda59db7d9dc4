//! A configured receiver. Secrets are in files, which are read for each notification, because files may be renewed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::export::headers::Headers;
use crate::export::post::client;
use crate::http_client::{Url, parse_external};
use crate::secrets;
use allclear_core::model::notification::NotificationKind;
use allclear_core::string_enum;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// Deliveries to the receiver are recorded under this name.
    pub name: String,
    pub address: Address,
    pub format: Format,
    pub topics: BTreeSet<NotificationKind>,
    /// An event with an unchanged blocker for this time is notified as blocked.
    pub blocked_after: Duration,
    /// The key that signs notifications.
    pub secret_file: Option<PathBuf>,
    pub headers: Headers,
    /// Certificate authorities beside those of the system.
    pub ca: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Written(Url),
    /// The file with the address, if the address itself is secret.
    InFile(PathBuf),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    CloudEvents,
    Slack,
}

string_enum!(Format { CloudEvents => "cloudevents", Slack => "slack" });

impl Receiver {
    pub(super) async fn url(&self) -> Result<Url, String> {
        let url = match &self.address {
            Address::Written(url) => url.clone(),
            Address::InFile(path) => parse_external(&secrets::read(path).await?)
                .map_err(|why| format!("the address in {} {why}", path.display()))?,
        };
        self.headers.may_go_to(&url).map_err(|why| format!("the address {why}"))?;
        Ok(url)
    }

    /// Checks everything a notification needs except the sending; returns one sentence for each problem.
    pub async fn try_out(&self) -> Vec<String> {
        let key = async { super::signature::key(self.secret_file.as_deref()).await.map(drop) };
        let client = async { client(&self.url().await?, self.ca.as_deref()).await.map(drop) };
        let wrong = [client.await.err(), self.headers.read().await.err(), key.await.err()];
        wrong.into_iter().flatten().collect()
    }
}
