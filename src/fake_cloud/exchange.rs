//! One request on its way: read, logged, kept waiting where a fault says so, answered.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};

use super::answer::{Answer, Ending};
use super::dates::rfc3339;
use super::fault::{Errand, Fault, Switched};
use super::gate::Line;
use super::house::House;
use super::metadata::Asked;
use super::request_log::{Headers, Record};
use crate::machine::id::VmName;
use crate::machine::time::Timestamp;

const LARGEST_BODY: usize = 64 * 1024;
/// Of a path, a header or a body.
const LONGEST_LOGGED: usize = 4 * 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(10);

/// A request that never ends must end when its client is gone without a word.
const LONGEST_HANG: Duration = Duration::from_mins(10);

/// Answers as the endpoint of a VM. `prefix` is what stands in front of the path where VMs share a port.
pub(super) async fn exchange(house: Arc<House>, vm: VmName, prefix: String, line: Line, request: Request) -> Response {
    let at = house.since_1970();
    let (asked, headers) = read(vm, prefix, request).await;
    let seq = house.tenant().requests.arrived(record(at, &asked, headers));
    // Settles the record also when the client goes away and this future is dropped.
    let pending = Pending { house: Arc::clone(&house), seq };
    let switched = match admit(&house, seq, &asked) {
        Ok(switched) => switched,
        Err(answer) => return settle(pending, answer, &line),
    };
    if let Some(Fault::LateEffect { ms }) = switched.as_ref().map(|switched| &switched.fault)
        && asked.errand() == Errand::Post
    {
        tokio::spawn(take_effect_late(pending, asked, Duration::from_millis(*ms)));
        return deliver(Answer::none(Ending::Closed), &line);
    }
    let answer = answer(&house, seq, &asked, switched.as_ref()).await;
    if answer.ending == Ending::Never {
        wait(&house, LONGEST_HANG).await;
    }
    settle(pending, answer, &line)
}

fn admit(house: &House, seq: u64, asked: &Asked) -> Result<Option<Switched>, Answer> {
    let mut tenant = house.tenant();
    let switched = tenant.admit(house.now(), asked)?;
    if let Some(record) = tenant.requests.record(seq) {
        record.fault = switched.as_ref().map(|switched| switched.fault.word());
    }
    Ok(switched)
}

/// The record is complete, and the answer goes out.
fn settle(pending: Pending, answer: Answer, line: &Line) -> Response {
    if answer.has_status() {
        let now = pending.house.now();
        if let Some(record) = pending.house.tenant().requests.record(pending.seq) {
            record.status = Some(answer.status);
            record.answered_at = Some(rfc3339(now));
        }
    }
    drop(pending);
    deliver(answer, line)
}

/// A request that was on its way when its client heard the connection close.
async fn take_effect_late(pending: Pending, asked: Asked, span: Duration) {
    let Pending { house, seq } = &pending;
    wait(house, span).await;
    if !house.stop.is_cancelled() {
        house.tenant().answer(house.now(), *seq, &asked, None);
        house.news.notify_waiters();
    }
}

async fn answer(house: &House, seq: u64, asked: &Asked, switched: Option<&Switched>) -> Answer {
    let fault = switched.map(|switched| &switched.fault);
    let is_post = asked.errand() == Errand::Post;
    match fault {
        Some(Fault::Slow { ms }) if !is_post => wait(house, Duration::from_millis(*ms)).await,
        Some(Fault::LongPoll { ms }) => wait_for_news(house, &asked.vm, Duration::from_millis(*ms)).await,
        Some(_) | None => {}
    }
    let answer = house.tenant().answer(house.now(), seq, asked, switched);
    if is_post {
        house.news.notify_waiters();
        if let Some(Fault::Slow { ms }) = fault {
            wait(house, Duration::from_millis(*ms)).await;
        }
    }
    answer
}

async fn read(vm: VmName, prefix: String, request: Request) -> (Asked, Headers) {
    let (parts, body) = request.into_parts();
    let headers = headers(&parts.headers);
    let path = parts.uri.path().strip_prefix(&prefix).unwrap_or(parts.uri.path()).to_owned();
    let body = tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, LARGEST_BODY)).await;
    let asked = Asked {
        vm,
        method: parts.method.as_str().to_owned(),
        path,
        query: parts.uri.query().unwrap_or_default().to_owned(),
        metadata: headers.metadata.clone(),
        is_forwarded: headers.x_forwarded_for.is_some(),
        body: body.ok().and_then(Result::ok),
        prefix,
    };
    (asked, headers)
}

fn headers(map: &HeaderMap) -> Headers {
    let text = |name: &str| map.get(name).map(|value| kept(value.as_bytes()));
    Headers {
        host: text("host"),
        metadata: text("metadata"),
        x_forwarded_for: text("x-forwarded-for"),
        user_agent: text("user-agent"),
        content_type: text("content-type"),
    }
}

fn record(at: Duration, asked: &Asked, headers: Headers) -> Record {
    let body = asked.body.as_ref().map_or(&[][..], Bytes::as_ref);
    let question = if asked.query.is_empty() { "" } else { "?" };
    Record {
        at: rfc3339(Timestamp(0).plus(at)),
        at_us: i64::try_from(at.as_micros()).unwrap_or(i64::MAX),
        vm: Some(asked.vm.to_string()),
        method: asked.method.clone(),
        path: kept(format!("{}{question}{}", asked.path, asked.query).as_bytes()),
        headers,
        body: kept(body),
        ..Record::default()
    }
}

/// As much of it as the log keeps.
fn kept(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.get(..LONGEST_LOGGED).unwrap_or(bytes)).into_owned()
}

struct Pending {
    house: Arc<House>,
    seq: u64,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.house.tenant().requests.settled(self.seq);
    }
}

async fn wait(house: &House, span: Duration) {
    tokio::select! {
        () = tokio::time::sleep(span) => {}
        () = house.stop.cancelled() => {}
    }
}

/// Until the VM's array changes, or so long.
async fn wait_for_news(house: &House, vm: &VmName, span: Duration) {
    let end = house.now().plus(span);
    let before = house.tenant().cloud.poll(house.now(), vm);
    loop {
        let mut news = std::pin::pin!(house.news.notified());
        // From here on no notice is missed, also one that comes while the state is looked at.
        news.as_mut().enable();
        let now = house.now();
        let (current, next) = {
            let mut tenant = house.tenant();
            (tenant.cloud.poll(now, vm), tenant.cloud.next_change())
        };
        if current != before || now >= end || house.stop.is_cancelled() {
            return;
        }
        // One millisecond more, because times are whole milliseconds.
        let nap = next.unwrap_or(end).min(end).since(now) + Duration::from_millis(1);
        tokio::select! {
            () = wait(house, nap) => {}
            () = news => {}
        }
    }
}

fn deliver(answer: Answer, line: &Line) -> Response {
    match answer.ending {
        Ending::Whole | Ending::Cut => {}
        Ending::Reset => line.reset(),
        Ending::Closed | Ending::Never => line.close(),
    }
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let length = answer.body.len();
    let body = if answer.ending == Ending::Cut { cut(&answer.body) } else { Body::from(answer.body) };
    let mut response = (status, body).into_response();
    let map = response.headers_mut();
    map.insert(header::CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    // Said for a cut body too: that is how the client can tell.
    map.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    for (name, value) in [(header::ETAG, answer.etag), (header::LOCATION, answer.location)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            map.insert(name, value);
        }
    }
    response
}

/// Half of a body and then its end.
fn cut(body: &Bytes) -> Body {
    let half = body.slice(..body.len() / 2);
    let end = stream::once(async {
        // One turn for the half to be sent before the connection ends.
        tokio::task::yield_now().await;
        Err(io::Error::from(io::ErrorKind::UnexpectedEof))
    });
    Body::from_stream(stream::iter([Ok(half)]).chain(end))
}
