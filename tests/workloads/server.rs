//! A small HTTP server for tests: records every request, and may send any answer, or none at all.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Headers by their names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
}

pub(crate) struct Server {
    scheme: &'static str,
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    serving: JoinHandle<()>,
}

/// The bytes of the answer; `None` closes the connection.
type Respond = Arc<dyn Fn(&Request) -> Option<Vec<u8>> + Send + Sync>;

impl Server {
    /// Starts a server that answers with the bytes of `respond`, or closes the connection for `None`.
    pub(crate) async fn start(respond: impl Fn(&Request) -> Option<Vec<u8>> + Send + Sync + 'static) -> Self {
        Self::serving(None, Arc::new(respond)).await
    }

    /// Starts a server over TLS if `tls` is set.
    pub(crate) async fn start_with(
        tls: Option<TlsAcceptor>,
        respond: impl Fn(&Request) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        Self::serving(tls, Arc::new(respond)).await
    }

    /// Not generic: it would be compiled for each answer, with its tasks.
    async fn serving(tls: Option<TlsAcceptor>, respond: Respond) -> Self {
        let scheme = if tls.is_some() { "https" } else { "http" };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (seen, respond, tls) = (seen.clone(), respond.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        None => serve(stream, &seen, &*respond).await,
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            serve(stream, &seen, &*respond).await;
                        }
                    }
                });
            }
        });
        Self { scheme, address, requests, serving }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Requests with this method, the oldest first.
    pub(crate) fn requests(&self, method: &str) -> Vec<Request> {
        let requests = self.requests.lock().unwrap();
        requests.iter().filter(|request| request.method == method).cloned().collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    seen: &Mutex<Vec<Request>>,
    respond: &(impl Fn(&Request) -> Option<Vec<u8>> + ?Sized),
) {
    let Some(request) = read(&mut stream).await else { return };
    seen.lock().unwrap().push(request.clone());
    if let Some(bytes) = respond(&request) {
        let _ = stream.write_all(&bytes).await;
        let _ = stream.shutdown().await;
    }
}

async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        (stream.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    };
    let text = String::from_utf8(bytes[..head].to_vec()).unwrap();
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let (method, path) = (first.next()?.to_owned(), first.next()?.to_owned());
    let header = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
    let headers: BTreeMap<String, String> = lines.filter_map(header).collect();
    let length: usize = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head + 4 + length {
        (stream.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    }
    let body = String::from_utf8(bytes[head + 4..].to_vec()).unwrap();
    Some(Request { method, path, headers, body })
}

/// A complete answer.
#[expect(clippy::unnecessary_wraps, reason = "it stands where nothing may be answered")]
pub(crate) fn answer(status: u16, headers: &[(&str, &str)], body: &str) -> Option<Vec<u8>> {
    let mut text = format!("HTTP/1.1 {status} Whatever\r\nConnection: close\r\nContent-Length: {}\r\n", body.len());
    for (name, value) in headers {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    Some(format!("{text}\r\n{body}").into_bytes())
}
