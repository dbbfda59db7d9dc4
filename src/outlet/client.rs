//! One POST over HTTP or HTTPS and what came of it, within a time and a size.
//!
//! Refuses what HTTP clients do on their own: proxies, redirects, repeated requests, decompression, connections that
//! are kept. No error names the address, which may be a secret.

use core::error::Error;
use core::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Of an answer so much is kept; the rest is not waited for.
const MAX_BODY: usize = 1024;
const USER: &str = concat!("allclear/", env!("CARGO_PKG_VERSION"));

/// Trusts the certificate authorities of the system, and one more where it is named.
#[derive(Clone)]
pub struct Client {
    http: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    trusts_nobody: bool,
}

/// What the other side said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    pub status: u16,
    /// When it was told in seconds.
    pub retry_after: Option<Duration>,
    /// Its beginning.
    pub body: Bytes,
}

impl Client {
    /// Reads certificates from the disk. `ca` is a file of PEM certificates that count beside the system's.
    pub fn new(ca: Option<&Path>) -> Result<Self, String> {
        let roots = roots(ca)?;
        let trusts_nobody = roots.is_empty();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("cannot speak TLS here: {error}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT_WITHIN));
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1();
        let mut builder = legacy::Client::builder(TokioExecutor::new());
        builder.pool_max_idle_per_host(0).retry_canceled_requests(false);
        Ok(Self { http: builder.build(connector.wrap_connector(tcp)), trusts_nobody })
    }

    /// The same, from among tasks.
    pub async fn trusting(ca: Option<&Path>) -> Result<Self, String> {
        let ca = ca.map(Path::to_owned);
        let client = tokio::task::spawn_blocking(move || Self::new(ca.as_deref())).await;
        client.map_err(|error| error.to_string())?
    }

    /// The answer has to be there within `patience`; an error is why there is none, for people.
    pub async fn post(&self, url: &Uri, headers: HeaderMap, body: Bytes, patience: Duration) -> Result<Answer, String> {
        if self.trusts_nobody && url.scheme_str() == Some("https") {
            return Err("this machine has no certificate authorities: install ca-certificates, or name a file".into());
        }
        let exchange = self.exchange(url, headers, body);
        tokio::time::timeout(patience, exchange).await.unwrap_or_else(|_| Err("no answer came in time".to_owned()))
    }

    async fn exchange(&self, url: &Uri, headers: HeaderMap, body: Bytes) -> Result<Answer, String> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.clone();
        *request.headers_mut() = headers;
        request.headers_mut().entry(USER_AGENT).or_insert(HeaderValue::from_static(USER));
        let mut response = self.http.request(request).await.map_err(|error| innermost(&error))?;
        let mut kept = Vec::new();
        // The status has said what counts; an answer that breaks off afterwards is still one.
        while kept.len() < MAX_BODY
            && let Some(Ok(frame)) = response.body_mut().frame().await
        {
            let chunk = frame.into_data().unwrap_or_default();
            kept.extend_from_slice(&chunk[..chunk.len().min(MAX_BODY - kept.len())]);
        }
        let retry_after =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let retry_after = retry_after.map(Duration::from_secs);
        Ok(Answer { status: response.status().as_u16(), retry_after, body: kept.into() })
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    // One of them that cannot be read is missed by nobody else than whom it vouches for.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let Some(ca) = ca else { return Ok(roots) };
    let wrong = |why: &dyn Display| format!("{}: {why}", ca.display());
    let mut count = 0;
    for certificate in CertificateDer::pem_file_iter(ca).map_err(|error| wrong(&error))? {
        let certificate = certificate.map_err(|error| wrong(&error))?;
        roots.add(certificate).map_err(|error| wrong(&error))?;
        count += 1;
    }
    if count == 0 { Err(wrong(&"has no certificate in it; PEM is expected")) } else { Ok(roots) }
}

/// Without the error itself, which says nothing.
fn innermost(error: &dyn Error) -> String {
    let causes = core::iter::successors(error.source(), |cause: &&(dyn Error + 'static)| (**cause).source());
    causes.last().map_or_else(|| error.to_string(), ToString::to_string)
}

/// Reads an address. Those of the platform are refused: what is sent to its metadata could be taken for an approval.
pub fn address(text: &str) -> Result<Uri, String> {
    let uri: Uri = text.parse().map_err(|error| format!("is not an address: {error}"))?;
    if !matches!(uri.scheme_str(), Some("https" | "http")) {
        return Err("has to begin with https:// or http://".to_owned());
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err("has a user in it: credentials belong in a header".to_owned());
    }
    if uri.authority().is_none_or(|it| it.host().is_empty() || (it.port().is_none() && it.as_str() != it.host())) {
        return Err("has no host, or a port that is none".to_owned());
    }
    match ip(&uri) {
        Some(IpAddr::V4(ip)) if ip.is_link_local() || ip == PLATFORM => Err("is an address of the platform".to_owned()),
        Some(IpAddr::V6(ip)) if ip.is_unicast_link_local() => Err("is an address of the platform".to_owned()),
        None if ends_in_a_number(uri.host().unwrap_or_default()) => Err("has a number for a host".to_owned()),
        Some(_) | None => Ok(uri),
    }
}

/// What is sent there stays on this machine.
pub fn is_loopback(url: &Uri) -> bool {
    url.host() == Some("localhost") || ip(url).is_some_and(|ip| ip.is_loopback())
}

/// Beside the link-local addresses the one at which every VM finds its platform.
const PLATFORM: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);

fn ip(url: &Uri) -> Option<IpAddr> {
    let host = url.host()?.trim_start_matches('[').trim_end_matches(']');
    host.parse().ok().map(|ip: IpAddr| ip.to_canonical())
}

/// Systems take such names for addresses, in spellings of their own.
fn ends_in_a_number(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    match last.strip_prefix("0x").or(last.strip_prefix("0X")) {
        Some(digits) => digits.chars().all(|letter| letter.is_ascii_hexdigit()),
        None => last.chars().all(|letter| letter.is_ascii_digit()),
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    /// Answers one request with these bytes and gives what it was sent.
    async fn once(reply: String) -> (Uri, tokio::task::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = address(&format!("http://{}/in?a=b", listener.local_addr().unwrap())).unwrap();
        let served = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"ping") {
                assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
            }
            stream.write_all(reply.as_bytes()).await.unwrap();
            String::from_utf8(request).unwrap()
        });
        (url, served)
    }

    async fn post(url: &Uri, patience: Duration) -> Result<Answer, String> {
        let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, HeaderValue::from_static("text/plain"))]);
        Client::new(None).unwrap().post(url, headers, Bytes::from_static(b"ping"), patience).await
    }

    #[tokio::test]
    async fn a_post_is_answered_and_of_a_long_answer_the_beginning_is_kept() {
        let long = "x".repeat(5_000);
        let (url, served) =
            once(format!("HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 9000\r\n\r\n{long}")).await;
        let answer = post(&url, PATIENCE).await.unwrap();
        assert_eq!((answer.status, answer.retry_after), (503, Some(Duration::from_secs(7))));
        assert_eq!(answer.body.len(), MAX_BODY);
        let request = served.await.unwrap();
        assert!(request.starts_with("POST /in?a=b HTTP/1.1\r\n"), "{request}");
        assert!(request.contains("content-type: text/plain\r\n"), "{request}");
    }

    #[tokio::test]
    async fn a_redirect_is_an_answer_as_any_other() {
        let (url, _served) =
            once("HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n".into()).await;
        assert_eq!(post(&url, PATIENCE).await.unwrap().status, 307);
    }

    #[tokio::test]
    async fn silence_and_a_closed_door_are_told_without_the_address() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = address(&format!("http://{}/secret", listener.local_addr().unwrap())).unwrap();
        let silent = post(&url, Duration::from_millis(50)).await.unwrap_err();
        drop(listener);
        let closed = post(&url, PATIENCE).await.unwrap_err();
        assert!(silent.contains("in time") && closed.contains("refused"), "{silent}; {closed}");
        assert!(!silent.contains("secret") && !closed.contains("secret"), "{silent}; {closed}");
    }

    #[test]
    fn a_file_without_certificates_is_a_mistake() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert!(Client::new(Some(file.path())).is_err());
        assert!(Client::new(Some(Path::new("/nowhere/ca.pem"))).is_err());
    }

    #[test]
    fn addresses_of_the_platform_and_credentials_are_refused() {
        for bad in [
            "http://169.254.169.254/metadata",
            "http://168.63.129.16/",
            "https://[::ffff:169.254.169.254]/",
            "http://[fe80::1]/",
            "http://0xa9fea9fe/",
            "http://2852039166/",
            "https://user:word@example.com/",
            "ftp://example.com/",
            "/path",
            "https://example.com:99999/",
            "https://:443/",
            "nothing",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
        for good in ["https://hooks.example.com/a?b=c", "http://127.0.0.1:80/", "http://[::1]:80/", "https://10.0.0.4"]
        {
            assert!(address(good).is_ok(), "{good}");
        }
        assert!(is_loopback(&address("http://[::1]:80/").unwrap()));
        assert!(!is_loopback(&address("http://10.0.0.4/").unwrap()));
    }
}
