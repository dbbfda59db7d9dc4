//! A configured receiver. Secrets are in files, which are read for each notification, because they may be renewed.

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
    /// What is told to it is noted under this name.
    pub name: String,
    pub address: Address,
    pub format: Format,
    pub topics: BTreeSet<NotificationKind>,
    /// For how long an event waits for the same before it is called blocked.
    pub blocked_after: Duration,
    /// What notices are signed with.
    pub secret_file: Option<PathBuf>,
    pub headers: Headers,
    /// Certificate authorities beside those of the system.
    pub ca: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Written(Url),
    /// Where the address itself is the secret.
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
        self.headers.may_go_to(&url).map_err(|why| format!("its address {why}"))?;
        Ok(url)
    }

    /// Everything that a notice takes, apart from sending it: what is wrong with it, one sentence each.
    pub async fn try_out(&self) -> Vec<String> {
        let key = async { super::signature::key(self.secret_file.as_deref()).await.map(drop) };
        let client = async { client(&self.url().await?, self.ca.as_deref()).await.map(drop) };
        let wrong = [client.await.err(), self.headers.read().await.err(), key.await.err()];
        wrong.into_iter().flatten().collect()
    }
}
