//! The metadata endpoint of one VM: polls, approvals, and the VM's own name.
//!
//! Refuses a second request while one is under way, because the service counts them for the whole VM. A poll or a
//! question that is still waiting when an approval comes, or the look before one, is given up for it: the approval is what
//! we are here for.

use core::pin::pin;
use core::time::Duration;

use reqwest::Client;
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::Instant;

use super::approval::Approval;
use super::exchange::Whole;
use super::health::ENROLS_WITHIN;
use super::no_information::NoInformation;
use super::version::ApiVersion;
use super::version_fallback::VersionFallback;
use super::{document, exchange, instance};
use crate::http_client::parse;
use allclear_core::model::document::Document;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    pub connect: Duration,
    /// For a whole answer, until the service has answered once: it switches the feature on first.
    pub first_answer: Duration,
    /// For every whole answer after that.
    pub answer: Duration,
}

impl Default for Timeouts {
    /// The suggestions of `imds.md`, status codes.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(2), first_answer: ENROLS_WITHIN, answer: seconds(10) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("there can be no client for the metadata endpoint {endpoint:?}: {why}")]
pub struct BadEndpoint {
    endpoint: String,
    why: String,
}

/// A validated document, and how it was asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Polled {
    pub document: Document,
    /// The one in use, which is not the configured one after a fallback. What it does not
    /// [show](ApiVersion::shows) is not absent.
    pub version: ApiVersion,
    /// From the request to the end of the answer.
    pub took: Duration,
    /// The `Date` that came with it: the platform's time, in which ends of notices are written.
    pub date: Option<Timestamp>,
}

pub struct Endpoint {
    polls: Client,
    approvals: Client,
    /// Without a slash at its end.
    base: String,
    timeouts: Timeouts,
    /// Held while a request is under way.
    turn: Mutex<VersionFallback>,
    /// An approval, and the look before one, asks whoever has the turn to give way.
    way: Notify,
}

impl Endpoint {
    /// For `http://host[:port]`, without a path.
    ///
    /// # Errors
    /// [`BadEndpoint`] if the address is none of plain HTTP.
    pub fn new(endpoint: &str, version: ApiVersion, timeouts: Timeouts) -> Result<Self, BadEndpoint> {
        let bad = |why| BadEndpoint { endpoint: endpoint.to_owned(), why };
        let base = base(endpoint).ok_or_else(|| bad("it is not http://HOST[:PORT] without a path".to_owned()))?;
        let client = |idle| exchange::client(timeouts.connect, idle).map_err(bad);
        Ok(Self {
            polls: client(1)?,
            // Each over a connection of its own: on a kept one that the service has just closed, an approval would
            // end as unknown.
            approvals: client(0)?,
            base,
            timeouts,
            turn: Mutex::new(VersionFallback::new(version)),
            way: Notify::new(),
        })
    }

    /// What is announced now. A poll that has to wait for another request waits.
    ///
    /// # Errors
    /// [`NoInformation`], which is never "no events".
    pub async fn poll(&self) -> Result<Polled, NoInformation> {
        let mut way = pin!(self.way.notified());
        way.as_mut().enable();
        let turn = self.turn.lock().await;
        self.document(turn, way).await
    }

    /// The same at once: a poll that is under way gives way to it, and it gives way to nothing.
    ///
    /// # Errors
    /// [`NoInformation`], which is never "no events".
    pub async fn look(&self) -> Result<Polled, NoInformation> {
        let (turn, ()) = tokio::join!(self.turn.lock(), async { self.way.notify_waiters() });
        self.document(turn, std::future::pending()).await
    }

    async fn document(
        &self,
        mut turn: MutexGuard<'_, VersionFallback>,
        way: impl Future<Output = ()>,
    ) -> Result<Polled, NoInformation> {
        let version = turn.version();
        let patience = if turn.has_answered() { self.timeouts.answer } else { self.timeouts.first_answer };
        let request = self.polls.get(self.address(&version.events_path()));
        let asked = Instant::now();
        let answer = tokio::select! {
            biased;
            () = way => Err(NoInformation::GaveWay),
            answer = exchange::whole(request, patience) => answer,
        };
        let read = |answer: Whole| Ok((document::read(answer.status, &answer.body)?, answer.date));
        match answer.and_then(read) {
            Ok((document, date)) => {
                turn.answered();
                Ok(Polled { document, version, took: asked.elapsed(), date })
            }
            Err(why) => {
                turn.failed(&why);
                Err(why)
            }
        }
    }

    /// Posts the approval of one event, once. Without `DocumentIncarnation`, which may be taken for a condition.
    /// Whoever drops it unfinished has to take the outcome for unknown.
    pub async fn approve(&self, event: &EventId) -> Approval {
        // In line first, then the request to give way: no poll slips in between.
        let (turn, ()) = tokio::join!(self.turn.lock(), async { self.way.notify_waiters() });
        let body = json!({ "StartRequests": [{ "EventId": event.as_received() }] });
        let request = self.approvals.post(self.address(&turn.version().events_path())).json(&body);
        match exchange::status(request, self.timeouts.answer).await {
            Ok(code) => Approval::from_status(code),
            Err(why) => Approval::from_failure(why),
        }
    }

    /// What the platform calls this VM.
    ///
    /// # Errors
    /// [`NoInformation`] if it did not say.
    pub async fn name(&self) -> Result<VmName, NoInformation> {
        let mut way = pin!(self.way.notified());
        way.as_mut().enable();
        let _turn = self.turn.lock().await;
        let request = self.polls.get(self.address(instance::PATH));
        let Whole { status, body, .. } = tokio::select! {
            biased;
            () = way => return Err(NoInformation::GaveWay),
            answer = exchange::whole(request, self.timeouts.answer) => answer?,
        };
        instance::name(status, &body)
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// Whether an endpoint can be there.
pub fn is_address(endpoint: &str) -> bool {
    base(endpoint).is_some()
}

/// Nothing but scheme, host and port: a path, a query or credentials would change what is asked.
fn base(endpoint: &str) -> Option<String> {
    let url = parse(endpoint).ok()?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    (url.scheme() == "http" && bare).then(|| url.as_str().trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_host_and_port_is_an_address() {
        for (endpoint, read) in [
            ("http://127.0.0.1:80/", "http://127.0.0.1"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://[::1]:8080", "http://[::1]:8080"),
            ("http://metadata.internal", "http://metadata.internal"),
        ] {
            assert_eq!(base(endpoint).as_deref(), Some(read), "{endpoint}");
        }
        for endpoint in
            ["", "127.0.0.1:80", "https://a", "http://", "http://a/b", "http://a?b", "http://u:p@a", "file:///a"]
        {
            assert_eq!(base(endpoint), None, "{endpoint}");
        }
    }
}
