//! The client of the metadata service against every possible answer of a service, a proxy or a broken machine.
//!
//! All servers are on loopback; `payloads.json` holds documents of the live service, each with its source.

mod approving;
mod asking;
mod control_plane;
mod documents;
mod faults;
mod fields;
mod instance;
mod payloads;
mod proxies;
mod server;
mod versions;

use std::time::Duration;

use allclear::imds::{ApiVersion, Endpoint, Timeouts};
use server::{Answer, Server};

const EMPTY: &str = r#"{"DocumentIncarnation":1,"Events":[]}"#;

/// Long enough that no timeout expires on a busy machine.
const PATIENT: Timeouts = Timeouts {
    connect: Duration::from_secs(20),
    first_answer: Duration::from_secs(20),
    answer: Duration::from_secs(20),
};
/// For tests that wait for a timeout.
const HASTY: Timeouts = Timeouts { first_answer: SHORT, answer: SHORT, ..PATIENT };
const SHORT: Duration = Duration::from_millis(300);

fn endpoint_at(url: &str, version: &str, timeouts: Timeouts) -> Endpoint {
    let version = ApiVersion::parse(version).unwrap();
    Endpoint::new(url, version, timeouts).unwrap()
}

fn endpoint(server: &Server) -> Endpoint {
    endpoint_at(&server.url(), "2020-07-01", PATIENT)
}

/// A whole HTTP answer that announces the end of the connection, so that the connection carries no later request.
fn http(status: u16, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer(status, "Connection: close\r\n", body.as_ref())
}

/// A whole HTTP answer, and the connection is closed.
fn says(status: u16, body: impl AsRef<[u8]>) -> Answer {
    Answer::Bytes(http(status, body))
}

/// A whole HTTP answer, and the connection is kept.
fn keeps(status: u16, body: impl AsRef<[u8]>) -> Answer {
    Answer::Keep(answer(status, "", body.as_ref()))
}

fn answer(status: u16, header: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\n{header}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// One scheduled event in a document.
fn document_with(event: &str) -> String {
    format!(r#"{{"DocumentIncarnation":2,"Events":[{event}]}}"#)
}
