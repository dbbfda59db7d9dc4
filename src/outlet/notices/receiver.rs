//! A receiver as it is configured. Secrets stand in files, which are read for each notice: they may be renewed.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::{HeaderMap, Uri};

use super::files;
use crate::machine::notice::Topic;
use crate::outlet::client::{self, Client};

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiver {
    /// What is told to it is noted under this name.
    pub name: String,
    pub address: Address,
    pub format: Format,
    pub topics: BTreeSet<Topic>,
    /// For how long an event waits for the same before it is called blocked.
    pub blocked_after: Duration,
    /// What notices are signed with.
    pub secret_file: Option<PathBuf>,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Headers whose values are secret.
    pub header_files: Vec<(HeaderName, PathBuf)>,
    /// Certificate authorities beside those of the system.
    pub ca: Option<PathBuf>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Address {
    Written(Uri),
    /// Where the address itself is the secret.
    InFile(PathBuf),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    CloudEvents,
    Slack,
}

impl Format {
    pub const WORDS: &'static [&'static str] = &["cloudevents", "slack"];

    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "cloudevents" => Some(Self::CloudEvents),
            "slack" => Some(Self::Slack),
            _ => None,
        }
    }

    pub const fn as_word(self) -> &'static str {
        match self {
            Self::CloudEvents => "cloudevents",
            Self::Slack => "slack",
        }
    }
}

/// A header that a configuration may set: not one that says where the request ends or whom it is for, nor the signature's.
pub fn header_name(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text.parse().map_err(|_| "is not a header's name".to_owned())?;
    if [HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) || name.as_str().starts_with("webhook-") {
        return Err(format!("is {name}, which is set by itself"));
    }
    Ok(name)
}

pub fn header_value(text: &str) -> Result<HeaderValue, String> {
    text.parse().map_err(|_| "is not a header's value: it is one line of visible characters".to_owned())
}

impl Receiver {
    /// What is secret goes out encrypted, or stays on this machine.
    pub fn may_be_told_at(&self, url: &Uri) -> Result<(), String> {
        let is_safe = url.scheme_str() == Some("https") || client::is_loopback(url);
        if is_safe || self.header_files.is_empty() {
            return Ok(());
        }
        Err("begins with http://, and the values of `header_files` are secret: use https://".to_owned())
    }

    pub(super) async fn url(&self) -> Result<Uri, String> {
        let url = match &self.address {
            Address::Written(url) => url.clone(),
            Address::InFile(path) => client::address(&files::secret(path).await?)
                .map_err(|why| format!("the address in {} {why}", path.display()))?,
        };
        self.may_be_told_at(&url).map_err(|why| format!("its address {why}"))?;
        Ok(url)
    }

    /// Those of the configuration.
    pub(super) async fn headers(&self) -> Result<HeaderMap, String> {
        let mut headers: HeaderMap = self.headers.iter().cloned().collect();
        for (name, path) in &self.header_files {
            let mut value = header_value(&files::secret(path).await?)
                .map_err(|why| format!("what stands in {} {why}", path.display()))?;
            value.set_sensitive(true);
            headers.insert(name.clone(), value);
        }
        Ok(headers)
    }

    /// Reads certificates from the disk.
    pub(super) async fn client(&self) -> Result<Client, String> {
        let ca = self.ca.clone();
        let client = tokio::task::spawn_blocking(move || Client::new(ca.as_deref())).await;
        client.map_err(|error| error.to_string())?
    }

    /// Everything that a notice takes, apart from sending it: what is wrong with it, one sentence each.
    pub async fn try_out(&self) -> Vec<String> {
        let key = async { super::signature::key(self.secret_file.as_deref()).await.map(drop) };
        let (url, headers, client) = (self.url().await.err(), self.headers().await.err(), self.client().await.err());
        let mut wrong: Vec<String> = [url, headers, key.await.err(), client].into_iter().flatten().collect();
        let url_file = match &self.address {
            Address::Written(_) => None,
            Address::InFile(path) => Some(path),
        };
        let secrets =
            url_file.into_iter().chain(&self.secret_file).chain(self.header_files.iter().map(|(_, path)| path));
        for path in secrets {
            wrong.extend(files::exposed(path).await);
        }
        wrong
    }
}
