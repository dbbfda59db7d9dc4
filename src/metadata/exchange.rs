//! One request and the bytes of its answer, within a time and a size.
//!
//! Refuses everything that HTTP clients do on their own: proxies, redirects, repeated requests, decompression.

use core::error::Error;
use core::time::Duration;
use std::io;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response};

use super::document::{MAX_BODY, cut};
use super::no_information::NoInformation;

/// Idle connections are given up after this; polls come more often.
const IDLE: Duration = Duration::from_mins(1);
/// The body that follows an approval's status is not waited for longer than this.
const DRAIN: Duration = Duration::from_secs(1);
/// Bytes of a system's error text that are kept.
const MAX_WHY: usize = 256;

/// With `idle` connections kept for the next request.
pub(super) fn client(connect: Duration, idle: usize) -> reqwest::Result<Client> {
    let mut headers = HeaderMap::new();
    headers.insert("Metadata", HeaderValue::from_static("true"));
    Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .http1_only()
        .default_headers(headers)
        .user_agent(concat!("allclear/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .pool_max_idle_per_host(idle)
        .pool_idle_timeout(IDLE)
        .build()
}

/// Status and body; the whole answer has to be there within `patience`.
pub(super) async fn whole(request: RequestBuilder, patience: Duration) -> Result<(u16, Vec<u8>), NoInformation> {
    let broken = |error: reqwest::Error| failure(&error, patience);
    let mut response = request.timeout(patience).send().await.map_err(broken)?;
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(NoInformation::TooLarge { limit: MAX_BODY });
        }
        body.extend_from_slice(&chunk);
    }
    Ok((response.status().as_u16(), body))
}

/// The status only. The body is read and dropped, as far as it comes soon: the status has said everything.
pub(super) async fn status(request: RequestBuilder, patience: Duration) -> Result<u16, NoInformation> {
    let response = request.timeout(patience).send().await.map_err(|error| failure(&error, patience))?;
    let code = response.status().as_u16();
    drop(tokio::time::timeout(DRAIN, drain(response)).await);
    Ok(code)
}

async fn drain(mut response: Response) {
    let mut bytes = 0;
    while let Ok(Some(chunk)) = response.chunk().await {
        bytes += chunk.len();
        if bytes > MAX_BODY {
            return;
        }
    }
}

fn failure(error: &reqwest::Error, patience: Duration) -> NoInformation {
    let system = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match system {
        Some(io::ErrorKind::ConnectionRefused) if error.is_connect() => NoInformation::Refused,
        // Before `is_timeout`: a connection that took too long is also a timeout, but nothing was sent over it.
        _ if error.is_connect() => NoInformation::NotConnected { why: innermost(error) },
        _ if error.is_timeout() => NoInformation::Timeout { after: patience },
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => NoInformation::Reset,
        Some(_) | None => NoInformation::BrokenOff { why: innermost(error) },
    }
}

fn innermost(error: &reqwest::Error) -> String {
    cut(&causes(error).last().map_or_else(|| "no reason given".into(), ToString::to_string), MAX_WHY)
}

/// Without the error itself, which would only name the address.
fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    core::iter::successors(error.source(), |cause: &&'a (dyn Error + 'static)| (**cause).source())
}
