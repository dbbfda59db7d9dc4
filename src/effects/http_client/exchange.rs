//! One request and its reply, within a time and a size. No error contains the URL, which may be a secret.

use core::error::Error;
use core::iter::successors;
use std::time::Duration;

use reqwest::header::{HeaderMap, HeaderName, LOCATION, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};

#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Reply {
    pub status: u16,
    pub location: Option<String>,
    /// Only if the server names seconds; a date is ignored.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// How much of a reply's body is read, in bytes.
#[derive(Clone, Copy, Debug)]
pub enum BodyLimit {
    /// The whole body; a longer or incomplete one is a failure.
    Whole(usize),
    /// The start of the body; the status counts even if the body breaks off.
    Start(usize),
}

/// Why there is no reply, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ExchangeError {
    /// The server received nothing.
    NotSent(String),
    /// The server may have received and executed the request.
    Lost(String),
}

impl ExchangeError {
    pub fn into_reason(self) -> String {
        match self {
            Self::NotSent(why) | Self::Lost(why) => why,
        }
    }
}

/// Sends a request; the reply has to be complete within `patience`.
pub async fn exchange(request: RequestBuilder, patience: Duration, body: BodyLimit) -> Result<Reply, ExchangeError> {
    let mut response = request.timeout(patience).send().await.map_err(|error| {
        if error.is_connect() || error.is_builder() { ExchangeError::NotSent(reason(&error)) } else { lost(&error) }
    })?;
    let header = |name| text(response.headers(), &name);
    let (status, location) = (response.status().as_u16(), header(LOCATION));
    let retry_after = header(RETRY_AFTER).and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
    let body = match body {
        BodyLimit::Whole(limit) => {
            let too_long = || ExchangeError::Lost(format!("the answer is longer than {} KiB", limit / 1024));
            read_body(&mut response, limit).await.map_err(|error| lost(&error))?.ok_or_else(too_long)?
        }
        BodyLimit::Start(limit) => read_start(&mut response, limit).await,
    };
    Ok(Reply { status, location, retry_after, body })
}

/// Reads a body of at most `limit` bytes; a longer one is `None`.
pub async fn read_body(response: &mut Response, limit: usize) -> reqwest::Result<Option<Vec<u8>>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if body.len() + chunk.len() > limit {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}

async fn read_start(response: &mut Response, limit: usize) -> Vec<u8> {
    let mut body = Vec::new();
    while body.len() < limit
        && let Ok(Some(chunk)) = response.chunk().await
    {
        body.extend_from_slice(&chunk);
    }
    body.truncate(limit);
    body
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn lost(error: &reqwest::Error) -> ExchangeError {
    ExchangeError::Lost(if error.is_timeout() { "the server did not answer in time".to_owned() } else { reason(error) })
}

/// The innermost cause. The error itself would contain the URL.
pub fn reason(error: &reqwest::Error) -> String {
    let causes = successors(error.source(), |cause: &&(dyn Error + 'static)| (**cause).source());
    causes.last().map_or_else(|| "no reason given".to_owned(), ToString::to_string)
}
