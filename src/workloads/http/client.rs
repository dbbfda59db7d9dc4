//! One request and its answer, within a time and a size. Refuses what HTTP clients do on their own: proxies,
//! redirects, repeated requests, decompression, connections that are kept.

use core::error::Error;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, Response, Url};

const CONNECT_WITHIN: Duration = Duration::from_secs(3);
/// Answers are short; a longer one is none.
const MAX_BODY: usize = 64 * 1024;

pub(super) struct Server {
    client: Client,
    pub(super) url: Url,
}

/// A whole answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) retry_after: Option<Duration>,
    pub(super) body: String,
}

/// Why there is no answer, for people.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Silence {
    /// Nothing reached the server.
    NotSent(String),
    /// It may have done what it was asked to.
    Lost(String),
}

impl Server {
    pub(super) fn at(url: &str) -> Result<Self, String> {
        let client = Client::builder()
            .no_proxy()
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .http1_only()
            .user_agent(concat!("allclear/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(CONNECT_WITHIN)
            .pool_max_idle_per_host(0)
            .build();
        let client = client.map_err(|error| format!("cannot speak HTTP here: {}", innermost(&error)))?;
        Ok(Self { client, url: usable(url)? })
    }

    /// An address that the server named, provided it is one of its own.
    pub(super) fn own(&self, location: &str) -> Result<Url, String> {
        let elsewhere = || format!("it named {location:?}, which is not on {}", self.url.authority());
        let url = self.url.join(location).map_err(|_| elsewhere())?;
        if url.origin() == self.url.origin() && url.username().is_empty() { Ok(url) } else { Err(elsewhere()) }
    }

    pub(super) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        self.client.request(method, url)
    }
}

/// Sends it; the whole answer has to be there within `patience`.
pub(super) async fn exchange(request: RequestBuilder, patience: Duration) -> Result<Reply, Silence> {
    let response = request.timeout(patience).send().await.map_err(|error| {
        let why = innermost(&error);
        // Connections are not kept, so one that could not be made has carried nothing.
        if error.is_connect() || error.is_builder() { Silence::NotSent(why) } else { lost(&error) }
    })?;
    let status = response.status().as_u16();
    let header = |name| text(response.headers(), &name);
    let (location, retry_after) = (header(LOCATION), header(RETRY_AFTER));
    let retry_after = retry_after.and_then(|seconds| seconds.trim().parse().ok()).map(Duration::from_secs);
    Ok(Reply { status, location, retry_after, body: whole(response).await? })
}

async fn whole(mut response: Response) -> Result<String, Silence> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
        if body.len() + chunk.len() > MAX_BODY {
            return Err(Silence::Lost(format!("its answer is longer than {} KiB", MAX_BODY / 1024)));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

fn text(headers: &HeaderMap, name: &reqwest::header::HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

fn lost(error: &reqwest::Error) -> Silence {
    Silence::Lost(if error.is_timeout() { "no answer came in time".to_owned() } else { innermost(error) })
}

/// Without the error itself, which would only name the address.
fn innermost(error: &reqwest::Error) -> String {
    let causes = core::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (**cause).source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Addresses may be written in many ways, so they are judged as they are understood here. Where the platform's
/// metadata is served nobody runs a hook, and what is sent there may be taken for an approval.
pub(super) fn usable(url: &str) -> Result<Url, String> {
    let parsed: Url = url.parse().map_err(|_| format!("{url:?} is not an HTTP address"))?;
    let host = parsed.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let is_metadata = host.parse().is_ok_and(|ip: IpAddr| match ip.to_canonical() {
        IpAddr::V4(ip) => ip.is_link_local() || ip == Ipv4Addr::new(168, 63, 129, 16),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    });
    if parsed.scheme() != "http" || host.is_empty() {
        return Err(format!("{url:?}: only http:// is spoken here"));
    }
    if is_metadata {
        return Err(format!("{url:?} is an address of the platform, not of a hook"));
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_the_platform_are_refused_however_they_are_written() {
        for bad in [
            "http://169.254.169.254/metadata",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "http://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "https://127.0.0.1/",
            "nothing",
        ] {
            assert!(usable(bad).is_err(), "{bad}");
        }
        assert!(usable("http://127.0.0.1:8008/switch?a=b").is_ok());
    }

    #[test]
    fn only_what_is_on_the_same_server_is_its_own() {
        let server = Server::at("http://127.0.0.1:8008/switch").unwrap();
        for good in ["/jobs/1", "jobs/1", "http://127.0.0.1:8008/jobs/1", "?job=1"] {
            assert!(server.own(good).is_ok(), "{good}");
        }
        for bad in ["http://127.0.0.1:8009/", "//10.0.0.1/", "https://127.0.0.1:8008/", "http://a@127.0.0.1:8008/"] {
            assert!(server.own(bad).is_err(), "{bad}");
        }
    }
}
