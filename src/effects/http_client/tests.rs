//! The client against real servers on loopback, over TCP and over TLS with certificates made for the test.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use reqwest::{Method, Url};
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);
/// System authorities, no login.
const DEFAULT: Options = Options { ca: None, identity: None, login: None };
const DONE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Answers one request with `reply` and returns the request; `None` if the TLS handshake fails.
async fn serve_once(tls: Option<ServerConfig>, reply: String) -> (Url, JoinHandle<Option<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let scheme = if tls.is_some() { "https" } else { "http" };
    let url = parse_external(&format!("{scheme}://{}/in?a=b", listener.local_addr().unwrap())).unwrap();
    let served = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        match tls {
            Some(tls) => answer(TlsAcceptor::from(Arc::new(tls)).accept(stream).await.ok()?, &reply).await,
            None => answer(stream, &reply).await,
        }
    });
    (url, served)
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin, reply: &str) -> Option<String> {
    let mut request = Vec::new();
    while !request.ends_with(b"ping") {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
    }
    stream.write_all(reply.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
    Some(String::from_utf8(request).unwrap())
}

async fn post(url: &Url, options: &Options, patience: Duration, body: BodyLimit) -> Result<Reply, ExchangeError> {
    let client = HttpClient::new(url, options).await.map_err(ExchangeError::NotSent)?;
    exchange(client.request(Method::POST, url.clone()).body("ping"), patience, body).await
}

async fn post_plainly(reply: &str, body: BodyLimit) -> (Result<Reply, ExchangeError>, String) {
    let (url, served) = serve_once(None, reply.to_owned()).await;
    let reply = post(&url, &DEFAULT, PATIENCE, body).await;
    (reply, served.await.unwrap().unwrap())
}

#[tokio::test]
async fn of_a_long_body_the_start_is_kept_or_the_whole_reply_is_lost() {
    let reply = format!("HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 9000\r\n\r\n{}", "x".repeat(5_000));
    let (answer, request) = post_plainly(&reply, BodyLimit::Start(1024)).await;
    let answer = answer.unwrap();
    assert_eq!((answer.status, answer.retry_after), (503, Some(Duration::from_secs(7))));
    assert_eq!(answer.body, [b'x'; 1024]);
    assert!(request.starts_with("POST /in?a=b HTTP/1.1\r\n"), "{request}");
    let (answer, _) = post_plainly(&reply, BodyLimit::Start(6_000)).await;
    assert_eq!(answer.unwrap().body.len(), 5_000, "the rest never came, and the status counts");
    let (answer, _) = post_plainly(&reply, BodyLimit::Whole(1024)).await;
    assert_eq!(answer, Err(ExchangeError::Lost("the answer is longer than 1 KiB".to_owned())));
    let (answer, _) = post_plainly(&reply, BodyLimit::Whole(9_000)).await;
    assert!(matches!(answer, Err(ExchangeError::Lost(_))), "{answer:?}");
}

#[tokio::test]
async fn a_redirect_is_a_reply_like_any_other() {
    let redirect = "HTTP/1.1 307 Go\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n";
    let reply = post_plainly(redirect, BodyLimit::Whole(1024)).await.0.unwrap();
    assert_eq!((reply.status, reply.location.as_deref()), (307, Some("http://127.0.0.1:1/")));
}

#[tokio::test]
async fn a_silent_server_and_a_closed_port_are_told_apart_without_the_address() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = parse_external(&format!("http://{}/secret", listener.local_addr().unwrap())).unwrap();
    let silent = post(&url, &DEFAULT, Duration::from_millis(50), BodyLimit::Start(1024)).await;
    let Err(ExchangeError::Lost(silent)) = silent else { panic!("it answered") };
    // A bound socket that does not listen keeps its port from other tests.
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = parse_external(&format!("http://{}/secret", bound.local_addr().unwrap())).unwrap();
    let closed = post(&url, &DEFAULT, PATIENCE, BodyLimit::Start(1024)).await;
    let Err(ExchangeError::NotSent(closed)) = closed else { panic!("it was sent") };
    assert!(silent.contains("in time") && closed.contains("refused"), "{silent}; {closed}");
    assert!(!silent.contains("secret") && !closed.contains("secret"), "{silent}; {closed}");
}

/// A certificate authority, and the folder of its files.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: TempDir,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer, folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn trusted(&self) -> Options {
        Options { ca: Some(self.file("ca.pem", &self.issuer.pem())), ..Options::default() }
    }

    fn identity(&self) -> ClientCertificate {
        let key = KeyPair::generate().unwrap();
        let certificate = CertificateParams::new(["client".to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        ClientCertificate {
            certificate: self.file("client.pem", &certificate.pem()),
            key: self.file("client.key", &key.serialize_pem()),
        }
    }

    /// A server at 127.0.0.1, which may demand a certificate of this authority.
    fn server(&self, demands_certificate: bool) -> ServerConfig {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = KeyPair::generate().unwrap();
        let certificate =
            CertificateParams::new(["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &self.issuer).unwrap();
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
        let builder = if demands_certificate {
            let mut roots = RootCertStore::empty();
            roots.add(self.issuer.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        builder.with_single_cert(vec![certificate.der().clone()], key).unwrap()
    }

    /// The status of a POST to this authority's server, and the request as the server read it.
    async fn post(&self, demands_certificate: bool, options: &Options) -> (Result<u16, ExchangeError>, Option<String>) {
        let (url, served) = serve_once(Some(self.server(demands_certificate)), DONE.to_owned()).await;
        let reply = post(&url, options, PATIENCE, BodyLimit::Whole(1024)).await;
        (reply.map(|reply| reply.status), served.await.unwrap())
    }
}

#[tokio::test]
async fn only_a_server_of_a_trusted_authority_receives_a_request() {
    let authority = Authority::new();
    assert_eq!(authority.post(false, &authority.trusted()).await.0, Ok(200));
    let (reply, request) = authority.post(false, &Authority::new().trusted()).await;
    assert!(matches!(&reply, Err(ExchangeError::NotSent(_))), "{reply:?}");
    assert_eq!(request, None);
}

#[tokio::test]
async fn a_client_certificate_is_presented_where_a_server_demands_it() {
    let authority = Authority::new();
    let anonymous = authority.trusted();
    let options = Options { identity: Some(authority.identity()), ..anonymous.clone() };
    assert_eq!(authority.post(true, &options).await.0, Ok(200));
    let (reply, request) = authority.post(true, &anonymous).await;
    assert!(reply.is_err() && request.is_none(), "{reply:?} {request:?}");
}

#[tokio::test]
async fn a_login_is_read_from_its_file_and_sent_to_nobody_else_unencrypted() {
    let authority = Authority::new();
    let (password_file, token_file) = (authority.file("password", "open sesame\n"), authority.file("token", "abc\n"));
    let basic = Login::Basic { username: "db".to_owned(), password_file };
    let bearer = Login::Bearer { token_file };
    for (login, header) in [(basic, "Basic ZGI6b3BlbiBzZXNhbWU="), (bearer, "Bearer abc")] {
        let options = Options { login: Some(login), ..authority.trusted() };
        let (reply, request) = authority.post(false, &options).await;
        assert_eq!(reply, Ok(200));
        let request = request.unwrap();
        assert!(request.contains(&format!("authorization: {header}\r\n")), "{request}");

        let elsewhere = parse_external("http://10.0.0.4/").unwrap();
        assert!(HttpClient::new(&elsewhere, &options).await.err().unwrap().contains("https://"));
        let client = HttpClient::new(&parse_external("https://10.0.0.4/").unwrap(), &options).await.unwrap();
        let is_sent = |url| client.request(Method::GET, url).build().unwrap().headers().contains_key("authorization");
        assert!(is_sent(parse_external("https://10.0.0.5/").unwrap()) && !is_sent(elsewhere));
    }
}

#[tokio::test]
async fn files_that_cannot_be_used_are_named() {
    let (authority, url) = (Authority::new(), parse_external("http://127.0.0.1/").unwrap());
    let empty = authority.file("empty", "");
    let of_ca = |path: &Path| Options { ca: Some(path.to_owned()), ..Options::default() };
    let identity = |certificate: &Path, key: &Path| Options {
        identity: Some(ClientCertificate { certificate: certificate.to_owned(), key: key.to_owned() }),
        ..Options::default()
    };
    let (good, nowhere) = (authority.identity(), Path::new("/nowhere/empty"));
    for options in [of_ca(&empty), of_ca(nowhere), identity(&empty, &good.key), identity(&good.certificate, &empty)] {
        let why = HttpClient::new(&url, &options).await.err().unwrap();
        assert!(why.contains("/empty: "), "{why}");
    }
    let token_file = authority.file("two lines", "one\ntwo");
    let why = HttpClient::new(&url, &Options { login: Some(Login::Bearer { token_file }), ..Options::default() }).await;
    let why = why.err().unwrap();
    assert!(why.contains("two lines: ") && !why.contains("one\n"), "{why}");
}

/// Two URLs; set only in the process that the test starts of itself, whose system trusts the authority.
const TARGETS: &str = "ALLCLEAR_TEST_HTTPS_SERVERS";

#[tokio::test]
async fn the_systems_authorities_are_trusted_and_by_the_plain_client_nobody() {
    if let Ok(targets) = std::env::var(TARGETS) {
        let (first, second) = targets.split_once(' ').unwrap();
        let reply = post(&parse(first).unwrap(), &DEFAULT, PATIENCE, BodyLimit::Whole(1024)).await;
        assert_eq!(reply.map(|reply| reply.status), Ok(200));
        let error = plain().unwrap().build().unwrap().post(second).body("ping").send().await.unwrap_err();
        assert!(error.is_connect(), "{error:?}");
        return;
    }
    let authority = Authority::new();
    let (first, sent) = serve_once(Some(authority.server(false)), DONE.to_owned()).await;
    let (second, refused) = serve_once(Some(authority.server(false)), DONE.to_owned()).await;
    let mut child = tokio::process::Command::new(std::env::current_exe().unwrap());
    child.arg("the_systems_authorities_are_trusted_and_by_the_plain_client_nobody").env_remove("SSL_CERT_DIR");
    child.env("SSL_CERT_FILE", authority.trusted().ca.unwrap()).env(TARGETS, format!("{first} {second}"));
    let output = tokio::time::timeout(PATIENCE, child.kill_on_drop(true).output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(sent.await.unwrap().is_some());
    assert_eq!(refused.await.unwrap(), None);
}
