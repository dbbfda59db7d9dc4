//! One request and the bytes of its answer, within a time and a size.
//!
//! The client has neither TLS nor a proxy, and follows no redirect: `http_client::plain`.

use core::error::Error;
use core::time::Duration;
use std::io;

use reqwest::header::{HeaderMap, HeaderValue};
use reqwest::{Client, RequestBuilder};

use super::dated;
use super::document::MAX_BODY;
use super::event::cut;
use super::no_information::NoInformation;
use crate::http_client::{plain, read_body, reason};
use allclear_core::model::time::Timestamp;

/// Idle connections are closed after this time; polls are more frequent.
const IDLE: Duration = Duration::from_mins(1);
/// The longest wait for the body after an approval's status.
const DRAIN: Duration = Duration::from_secs(1);
/// Bytes kept of a system's error text.
const MAX_WHY: usize = 256;

/// Makes a client that keeps `idle` connections for the next request.
pub(super) fn client(connect: Duration, idle: usize) -> Result<Client, String> {
    let mut headers = HeaderMap::new();
    headers.insert("Metadata", HeaderValue::from_static("true"));
    let builder = plain()?.default_headers(headers).connect_timeout(connect);
    builder.pool_max_idle_per_host(idle).pool_idle_timeout(IDLE).build().map_err(|error| reason(&error))
}

/// A whole answer.
pub(super) struct Whole {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    /// The time of the answering server.
    pub(super) date: Option<Timestamp>,
}

/// Reads the whole answer within `patience`.
pub(super) async fn whole(request: RequestBuilder, patience: Duration) -> Result<Whole, NoInformation> {
    let broken = |error: reqwest::Error| failure(&error, patience);
    let mut response = request.timeout(patience).send().await.map_err(broken)?;
    let body = read_body(&mut response, MAX_BODY).await.map_err(broken)?;
    let body = body.ok_or(NoInformation::TooLarge { limit: MAX_BODY })?;
    Ok(Whole { status: response.status().as_u16(), body, date: dated::read(response.headers()) })
}

/// Reads the status only. The body is read and dropped, as far as it arrives soon: the status is the whole answer.
pub(super) async fn status(request: RequestBuilder, patience: Duration) -> Result<u16, NoInformation> {
    let mut response = request.timeout(patience).send().await.map_err(|error| failure(&error, patience))?;
    let code = response.status().as_u16();
    drop(tokio::time::timeout(DRAIN, read_body(&mut response, MAX_BODY)).await);
    Ok(code)
}

fn failure(error: &reqwest::Error, patience: Duration) -> NoInformation {
    let system = causes(error).find_map(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match system {
        Some(io::ErrorKind::ConnectionRefused) if error.is_connect() => NoInformation::Refused,
        // Before `is_timeout`: a slow connect is also a timeout, but nothing was sent.
        _ if error.is_connect() => NoInformation::NotConnected { why: innermost(error) },
        _ if error.is_timeout() => NoInformation::Timeout { after: patience },
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => NoInformation::Reset,
        Some(_) | None => NoInformation::BrokenOff { why: innermost(error) },
    }
}

fn innermost(error: &reqwest::Error) -> String {
    cut(&reason(error), MAX_WHY)
}

/// The causes of an error, without the error itself, which would only name the address.
fn causes<'a>(error: &'a reqwest::Error) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    core::iter::successors(error.source(), |cause: &&'a (dyn Error + 'static)| (**cause).source())
}
