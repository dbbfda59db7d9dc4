//! One POST to a receiver of notifications or to a collector of traces.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;

use crate::http_client::header::{CONTENT_LENGTH, HeaderMap};
use crate::http_client::{BodyLimit, ExchangeError, HttpClient, Method, Options, Reply, Url, exchange};

/// The time limit of the whole exchange.
const PATIENCE: Duration = Duration::from_secs(10);
/// Of a reply only the status and the start of its body are read, in bytes.
const MAX_BODY: usize = 1024;

/// A client for `url` that trusts the certificate authorities in the file `ca` beside the system's. The client is made
/// for one exchange, so a renewed file takes effect, and an idle replica holds no certificates.
pub(super) async fn client(url: &Url, ca: Option<&Path>) -> Result<HttpClient, String> {
    HttpClient::new(url, &Options { ca: ca.map(Path::to_owned), ..Options::default() }).await
}

/// The error is the reason why there is no reply, for people.
pub(super) async fn post(url: Url, ca: Option<&Path>, headers: HeaderMap, body: Bytes) -> Result<Reply, String> {
    let request = client(&url, ca).await?.request(Method::POST, url);
    // Some servers refuse an empty POST without a length.
    let request = request.headers(headers).header(CONTENT_LENGTH, body.len()).body(body);
    exchange(request, PATIENCE, BodyLimit::Start(MAX_BODY)).await.map_err(ExchangeError::into_reason)
}
