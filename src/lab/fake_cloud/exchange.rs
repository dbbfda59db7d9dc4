//! The handling of a request: read, logged, delayed where a fault demands a delay, answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::answer::{EmulatedResponse, ResponseEnd};
use super::dates::{rfc1123, rfc3339};
use super::fault::{FaultRule, Switched};
use super::listener::ConnectionEnd;
use super::metadata::ImdsRequest;
use super::request_log::LoggedRequest;
use super::server_state::ServerState;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;

const LARGEST_BODY: usize = 64 * 1024;
/// Maximum number of logged bytes of a path or a body.
const LONGEST_LOGGED: usize = 4 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that never ends must end when its client has silently disappeared.
const LONGEST_HANG: Duration = Duration::from_mins(10);

/// Answers as the endpoint of a VM.
pub(super) async fn exchange(house: Arc<ServerState>, vm: VmName, line: ConnectionEnd, request: Request) -> Response {
    let at = house.clock.since_1970();
    let asked = read(vm, request).await;
    let (seq, switched) = {
        let mut tenant = house.tenant();
        let switched = tenant.fault_for(&asked);
        (tenant.requests.arrived(record(at, &asked, switched.as_ref())), switched)
    };
    // Settles the record also when the client disconnects and this future is dropped.
    let pending = PendingExchange { house: Arc::clone(&house), seq };
    let fault = switched.as_ref().map(|switched| &switched.fault);
    if let Some(FaultRule::LateEffect { ms }) = fault
        && asked.is_post()
    {
        tokio::spawn(take_effect_late(pending, asked, Duration::from_millis(*ms)));
        return deliver(EmulatedResponse::none(ResponseEnd::Closed), &line, String::new());
    }
    let slow = match fault {
        Some(FaultRule::Slow { ms }) => Duration::from_millis(*ms),
        Some(_) | None => Duration::ZERO,
    };
    if !asked.is_post() {
        wait(&house, slow).await;
    }
    let answer = house.tenant().answer(house.now(), seq, &asked, switched.as_ref());
    if asked.is_post() {
        wait(&house, slow).await;
    }
    if answer.ending == ResponseEnd::Never {
        wait(&house, LONGEST_HANG).await;
    }
    if answer.has_status()
        && let Some(record) = house.tenant().requests.record(seq)
    {
        record.status = Some(answer.status);
    }
    // The record is complete before the answer is sent.
    drop(pending);
    deliver(answer, &line, dated(house.now(), fault))
}

/// The header `Date`: the cloud's time, changed by the fault.
fn dated(now: Timestamp, fault: Option<&FaultRule>) -> String {
    match fault {
        Some(FaultRule::Undated) => String::new(),
        Some(FaultRule::Dated { ahead_ms }) => rfc1123(Timestamp(now.0.saturating_add(*ahead_ms))),
        Some(_) | None => rfc1123(now),
    }
}

/// A request that takes effect after its client saw the connection close.
async fn take_effect_late(pending: PendingExchange, asked: ImdsRequest, span: Duration) {
    let PendingExchange { house, seq } = &pending;
    wait(house, span).await;
    if !house.stop.is_cancelled() {
        house.tenant().answer(house.now(), *seq, &asked, None);
    }
}

async fn read(vm: VmName, request: Request) -> ImdsRequest {
    let (parts, body) = request.into_parts();
    let body = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, LARGEST_BODY)).await;
    ImdsRequest {
        vm,
        method: parts.method.as_str().to_owned(),
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        has_header: parts.headers.get("metadata").is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true")),
        is_forwarded: parts.headers.contains_key("x-forwarded-for"),
        if_none_match: parts.headers.get(header::IF_NONE_MATCH).and_then(|mark| Some(mark.to_str().ok()?.to_owned())),
        body: body.ok().and_then(Result::ok),
    }
}

fn record(at: Duration, asked: &ImdsRequest, switched: Option<&Switched>) -> LoggedRequest {
    let body = asked.body.as_ref().map_or(&[][..], Bytes::as_ref);
    let question = if asked.query.is_empty() { "" } else { "?" };
    LoggedRequest {
        at: rfc3339(Timestamp(0).plus(at)),
        at_us: i64::try_from(at.as_micros()).unwrap_or(i64::MAX),
        vm: asked.vm.to_string(),
        method: asked.method.clone(),
        path: kept(format!("{}{question}{}", asked.path, asked.query).as_bytes()),
        body: kept(body),
        fault: switched.map(|switched| switched.fault.word()),
        ..LoggedRequest::default()
    }
}

/// The part of a body or path for the log.
fn kept(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..LONGEST_LOGGED).unwrap_or(bytes)).into_owned()
}

struct PendingExchange {
    house: Arc<ServerState>,
    seq: u64,
}

impl Drop for PendingExchange {
    fn drop(&mut self) {
        self.house.tenant().requests.settled(self.seq);
    }
}

async fn wait(house: &ServerState, span: Duration) {
    tokio::select! {
        () = tokio::time::sleep(span) => {}
        () = house.stop.cancelled() => {}
    }
}

fn deliver(answer: EmulatedResponse, line: &ConnectionEnd, date: String) -> Response {
    match answer.ending {
        ResponseEnd::Whole | ResponseEnd::Cut => {}
        ResponseEnd::Reset => line.reset(),
        ResponseEnd::Closed | ResponseEnd::Never => line.close(),
    }
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let length = answer.body.len();
    let body = if answer.ending == ResponseEnd::Cut { cut(&answer.body) } else { Body::from(answer.body) };
    let mut response = (status, body).into_response();
    let map = response.headers_mut();
    map.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    // The header is empty where `date` is: without the header the server would add the time of this machine.
    map.insert(header::DATE, HeaderValue::try_from(date).unwrap_or(HeaderValue::from_static("")));
    // The full length also for a cut body, so that the client can detect the cut.
    map.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    if let Some(etag) = answer.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
        map.insert(header::ETAG, etag);
    }
    if status == StatusCode::FOUND {
        // A path that does not exist: a client following the redirect appears in the request log.
        map.insert(header::LOCATION, HeaderValue::from_static("/redirected"));
    }
    response
}

/// Half of a body, then an error.
fn cut(body: &Bytes) -> Body {
    let half = body.slice(..body.len() / 2);
    let end = stream::once(async {
        // One turn of the scheduler, in which the half is sent before the connection ends.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::UnexpectedEof))
    });
    Body::from_stream(stream::iter([Ok(half)]).chain(end))
}
