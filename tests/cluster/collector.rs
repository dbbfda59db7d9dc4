//! A collector of traces on loopback. Received requests are decoded by the protocol's own messages for Python,
//! independent of this program.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Serves requests until dropped.
pub(crate) struct Collector {
    kept: Arc<Mutex<Kept>>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Kept {
    requests: Vec<(HeaderMap, Bytes)>,
    /// Number of requests still to be answered with `SERVICE_UNAVAILABLE`.
    busy_for: usize,
}

/// One span, as printed by the decoder.
pub(crate) type Span = Value;

impl Collector {
    /// Starts a collector at an unused address.
    pub(crate) async fn at(address: &str) -> Self {
        let kept = Arc::new(Mutex::new(Kept::default()));
        let listener = TcpListener::bind(address).await.unwrap();
        let routes = Router::new().route("/v1/traces", post(take)).with_state(kept.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { kept, serving }
    }

    pub(crate) fn is_busy_for(&self, requests: usize) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).busy_for = requests;
    }

    /// All received requests, including requests answered with `SERVICE_UNAVAILABLE`.
    pub(crate) fn requests(&self) -> Vec<(HeaderMap, Bytes)> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).requests.clone()
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn take(State(kept): State<Arc<Mutex<Kept>>>, headers: HeaderMap, body: Bytes) -> impl IntoResponse {
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    kept.requests.push((headers, body));
    if kept.busy_for > 0 {
        kept.busy_for -= 1;
        return (StatusCode::SERVICE_UNAVAILABLE, [("Retry-After", "1")]).into_response();
    }
    StatusCode::OK.into_response()
}

/// The interpreter with the decoder's packages. `None` without the packages that `.ci/tools` installs.
/// `ALLCLEAR_PYTHON` names another interpreter.
pub(crate) fn decoder() -> Option<PathBuf> {
    let wanted = env::var_os("ALLCLEAR_PYTHON").map(PathBuf::from);
    let interpreter = wanted.clone().unwrap_or_else(|| Path::new(ROOT).join("target/python/bin/python3"));
    let has_it = ["-c", "import opentelemetry.proto.collector.trace.v1.trace_service_pb2"];
    let found = Command::new(&interpreter).args(has_it).stderr(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(interpreter);
    }
    crate::left_out::lacks("opentelemetry-proto");
    None
}

/// Decodes every span of one request, each with its resource; the request may contain nothing unknown to the protocol.
pub(crate) fn decoded(interpreter: &Path, body: &[u8], folder: &Path) -> Vec<Span> {
    let file = folder.join("request.bin");
    std::fs::write(&file, body).unwrap();
    let script = Path::new(ROOT).join("tests/cluster/decode_trace.py");
    let output = Command::new(interpreter).arg(script).arg(&file).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}
