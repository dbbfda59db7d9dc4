//! The metadata endpoint of one VM: polls, approvals, the VM's own name, and tokens.
//!
//! Refuses a second concurrent request, because the service counts requests for the whole VM. A waiting poll or name
//! query is cancelled for an approval, or for the poll before an approval: approvals are the purpose of this client.

use core::pin::pin;
use core::time::Duration;

use reqwest::{Client, RequestBuilder};
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio::time::{Instant, timeout};

use super::approval::Approval;
use super::exchange::Whole;
use super::health::ENROLS_WITHIN;
use super::instance::Instance;
use super::no_information::NoInformation;
use super::token::IdentityToken;
use super::version::ApiVersion;
use super::version_fallback::VersionFallback;
use super::{document, exchange, instance, token};
use crate::http_client::parse;
use allclear_core::model::document::Document;
use allclear_core::model::id::EventId;
use allclear_core::model::time::Timestamp;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timeouts {
    pub connect: Duration,
    /// Time limit of a whole answer until the first answer: the service may first have to switch the feature on.
    pub first_answer: Duration,
    /// Time limit of every whole answer after the first.
    pub answer: Duration,
}

impl Default for Timeouts {
    /// The timeouts of `SPEC.md` 17.5.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self { connect: seconds(2), first_answer: ENROLS_WITHIN, answer: seconds(10) }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("no client can be made for the metadata endpoint {endpoint:?}: {why}")]
pub struct BadEndpoint {
    endpoint: String,
    why: String,
}

/// A validated document, with the facts of its request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Polled {
    pub document: Document,
    /// The version in use, which differs from the configured version after a fallback. A type of event that the version
    /// does not [show](ApiVersion::shows) may exist regardless.
    pub version: ApiVersion,
    /// From the request to the end of the answer.
    pub took: Duration,
    /// The answer's `Date`: the platform's time, which is also the time of notices' ends.
    pub date: Option<Timestamp>,
}

pub struct Endpoint {
    polls: Client,
    approvals: Client,
    /// Without a trailing slash.
    base: String,
    timeouts: Timeouts,
    /// Held during a request.
    turn: Mutex<VersionFallback>,
    /// Notified by an approval, and by the poll before an approval, to cancel the current request.
    way: Notify,
}

impl Endpoint {
    /// Makes the client for `http://host[:port]`, without a path.
    ///
    /// # Errors
    /// [`BadEndpoint`] if the address has another form or scheme.
    pub fn new(endpoint: &str, version: ApiVersion, timeouts: Timeouts) -> Result<Self, BadEndpoint> {
        let bad = |why| BadEndpoint { endpoint: endpoint.to_owned(), why };
        let base =
            base(endpoint).ok_or_else(|| bad("the endpoint is not http://HOST[:PORT] without a path".to_owned()))?;
        let client = |idle| exchange::client(timeouts.connect, idle).map_err(bad);
        Ok(Self {
            polls: client(1)?,
            // A new connection for each approval: on a kept connection that the service has just closed, an approval
            // would end as unknown.
            approvals: client(0)?,
            base,
            timeouts,
            turn: Mutex::new(VersionFallback::new(version)),
            way: Notify::new(),
        })
    }

    /// Polls the current document, after any other request has ended.
    ///
    /// # Errors
    /// [`NoInformation`], which never means "no events".
    pub async fn poll(&self) -> Result<Polled, NoInformation> {
        let mut way = pin!(self.way.notified());
        way.as_mut().enable();
        let turn = self.turn.lock().await;
        self.document(turn, way).await
    }

    /// Polls at once: cancels a current poll, and is never cancelled itself.
    ///
    /// # Errors
    /// [`NoInformation`], which never means "no events".
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

    /// Posts the approval of one event, once. Omits `DocumentIncarnation`, which may be taken for a condition. If the
    /// future is dropped unfinished, the outcome is unknown. Does not post if another approval, or the poll before it,
    /// takes longer than `within`: from then on the cluster may give the approval to another replica, and an operator may
    /// hold the event.
    pub async fn approve(&self, event: &EventId, within: Duration) -> Approval {
        // Queues for the lock before the notification, so that no poll slips in between.
        let queued = timeout(within, self.turn.lock());
        let (turn, ()) = tokio::join!(queued, async { self.way.notify_waiters() });
        let Ok(turn) = turn else { return Approval::from_failure(NoInformation::Queued { after: within }) };
        let body = json!({ "StartRequests": [{ "EventId": event.as_received() }] });
        let request = self.approvals.post(self.address(&turn.version().events_path())).json(&body);
        match exchange::status(request, self.timeouts.answer).await {
            Ok(code) => Approval::from_status(code),
            Err(why) => Approval::from_failure(why),
        }
    }

    /// The platform's name of this VM.
    ///
    /// # Errors
    /// [`NoInformation`] without a usable answer.
    pub async fn instance(&self) -> Result<Instance, NoInformation> {
        let Whole { status, body, .. } = self.read(self.polls.get(self.address(instance::PATH))).await?;
        instance::read(status, &body)
    }

    /// A token of the VM's managed identity for the service `audience`.
    ///
    /// # Errors
    /// [`NoInformation`] without a usable answer.
    pub async fn token(&self, audience: &str, client_id: Option<&str>) -> Result<IdentityToken, NoInformation> {
        let Whole { status, body, .. } = self.read(self.polls.get(token::url(&self.base, audience, client_id))).await?;
        token::read(status, &body)
    }

    /// A request that yields to approvals.
    async fn read(&self, request: RequestBuilder) -> Result<Whole, NoInformation> {
        let mut way = pin!(self.way.notified());
        way.as_mut().enable();
        let _turn = self.turn.lock().await;
        tokio::select! {
            biased;
            () = way => Err(NoInformation::GaveWay),
            answer = exchange::whole(request, self.timeouts.answer) => answer,
        }
    }

    fn address(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }
}

/// True for a possible address of an endpoint.
pub fn is_address(endpoint: &str) -> bool {
    base(endpoint).is_some()
}

/// Only scheme, host and port are allowed: a path, a query or credentials would change the request.
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
