//! The answers of an endpoint: the checks of the real service, the document, and the faults that change an answer.
//! This module only decides; `exchange` has the waiting and the sockets.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use bytes::Bytes;
use serde_json::json;

use super::answer::{EmulatedResponse, ResponseEnd};
use super::fault::{FaultRule, Field, Switched};
use super::tenant::Tenant;
use super::version::EmulatedVersion;
use super::{control_plane, document, instance, lies};
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;

/// One request as received by the endpoint of a VM.
#[derive(Clone, Debug)]
pub(super) struct ImdsRequest {
    pub(super) vm: VmName,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    /// Whether the request has the header that the service demands.
    pub(super) has_header: bool,
    pub(super) is_forwarded: bool,
    /// The mark of the document that the client has.
    pub(super) if_none_match: Option<String>,
    /// `None` when the body was too large or incomplete.
    pub(super) body: Option<Bytes>,
}

impl ImdsRequest {
    pub(super) fn is_post(&self) -> bool {
        self.method == "POST"
    }

    fn is_of_instance(&self) -> bool {
        self.path.trim_end_matches('/') == "/metadata/instance"
    }

    fn is_of_identity(&self) -> bool {
        self.path == "/metadata/identity/oauth2/token"
    }

    fn version(&self) -> Option<&str> {
        self.query.split('&').find_map(|pair| pair.strip_prefix("api-version="))
    }
}

impl Tenant {
    /// The fault that applies to this request.
    pub(super) fn fault_for(&mut self, asked: &ImdsRequest) -> Option<Switched> {
        if asked.is_of_instance() || asked.is_of_identity() {
            None
        } else {
            self.take_fault(&asked.vm, asked.is_post())
        }
    }

    /// The answer; `seq` is the request's number in the log.
    pub(super) fn answer(
        &mut self,
        now: Timestamp,
        seq: u64,
        asked: &ImdsRequest,
        fault: Option<&Switched>,
    ) -> EmulatedResponse {
        if let Some(answer) = fault.and_then(|switched| instead_of_answer(&switched.fault, asked)) {
            if asked.is_post() {
                self.note_unheard(seq, asked);
            }
            return answer;
        }
        let plain = self.plain(now, seq, asked, fault);
        match fault {
            Some(Switched { fault: FaultRule::Lies { events, resources }, .. }) if plain.status == 200 => {
                EmulatedResponse { body: lies::with_lies(&plain.body, seq, *events, *resources), ..plain }
            }
            Some(switched) if plain.status == 200 => shaped(plain, &switched.fault),
            Some(_) | None => plain,
        }
    }

    /// The answer without faults, after the checks of the real service, in the order of the real service.
    fn plain(&mut self, now: Timestamp, seq: u64, asked: &ImdsRequest, fault: Option<&Switched>) -> EmulatedResponse {
        if asked.is_of_identity() && asked.has_header && asked.query.contains("resource=") {
            return EmulatedResponse::json(200, &control_plane::token(&asked.vm));
        }
        let is_of_instance = asked.is_of_instance();
        if !is_of_instance && asked.path.trim_end_matches('/') != "/metadata/scheduledevents" {
            return EmulatedResponse::error(404, "Not found");
        }
        if asked.method != "GET" && (is_of_instance || !asked.is_post()) {
            return EmulatedResponse::error(405, "Method not allowed");
        }
        if asked.is_forwarded {
            return EmulatedResponse::error(400, "Bad request. Header X-Forwarded-For is not allowed");
        }
        let version = asked.version().filter(|_| !is_of_instance).and_then(EmulatedVersion::parse);
        if !asked.has_header && version.is_none_or(EmulatedVersion::wants_header) {
            return EmulatedResponse::error(400, "Bad request. Required metadata header not specified");
        }
        match version {
            // The general metadata service has many versions, which do not matter here.
            None if is_of_instance && asked.version().is_some() => self.instance(&asked.vm),
            None => no_version(),
            Some(_) if asked.is_post() => self.approval(now, seq, asked),
            Some(version) => self.document(now, asked, version, fault),
        }
    }

    fn document(
        &mut self,
        now: Timestamp,
        asked: &ImdsRequest,
        version: EmulatedVersion,
        fault: Option<&Switched>,
    ) -> EmulatedResponse {
        let Some(current) = self.cloud.poll(now, &asked.vm) else { return EmulatedResponse::error(404, "no such VM") };
        let notice = fault.and_then(|switched| switched.stale.as_ref()).unwrap_or(&current);
        let text = document::written(notice, version);
        let etag = Some(etag_of(&text));
        let is_known = asked.if_none_match == etag;
        let (status, body) = if is_known { (304, String::new()) } else { (200, text) };
        EmulatedResponse { etag, ..EmulatedResponse::text(status, "application/json; charset=utf-8", body) }
    }

    fn instance(&self, vm: &VmName) -> EmulatedResponse {
        let position = self.vms.iter().position(|candidate| candidate == vm).unwrap_or(0);
        EmulatedResponse::json(200, &instance::written(vm.as_str(), position))
    }
}

/// Equal for equal documents: an incarnation may return with another document.
fn etag_of(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

/// The answer of faults that keep a request from the platform.
fn instead_of_answer(fault: &FaultRule, asked: &ImdsRequest) -> Option<EmulatedResponse> {
    match fault {
        FaultRule::Serves { version, .. } if asked.version() == Some(version) => None,
        FaultRule::Serves { status: 400, .. } => Some(no_version()),
        FaultRule::Serves { status, .. } => Some(EmulatedResponse::error(*status, "Not found")),
        FaultRule::Hang => Some(EmulatedResponse::none(ResponseEnd::Never)),
        FaultRule::Status { status } => Some(EmulatedResponse::error(*status, "the fake cloud was told to answer so")),
        FaultRule::Reset => Some(EmulatedResponse::none(ResponseEnd::Reset)),
        FaultRule::RequestLost | FaultRule::LateEffect { .. } => Some(EmulatedResponse::none(ResponseEnd::Closed)),
        FaultRule::Redirect => Some(EmulatedResponse::text(302, "text/plain", "")),
        _ => None,
    }
}

/// The answer of faults that change an answer after the request took effect.
fn shaped(answer: EmulatedResponse, fault: &FaultRule) -> EmulatedResponse {
    let body = &answer.body;
    match fault {
        FaultRule::Empty => EmulatedResponse { body: Bytes::new(), ..answer },
        FaultRule::Html => {
            EmulatedResponse::text(200, "text/html", "<!DOCTYPE html><html><body><h1>It works!</h1></body></html>")
        }
        FaultRule::ErrorJson => EmulatedResponse::error(200, "Internal error. Try again later"),
        FaultRule::Malformed => EmulatedResponse { body: body.slice(..body.len() / 2), ..answer },
        // An empty answer has no middle.
        FaultRule::Truncated if body.is_empty() => {
            EmulatedResponse { body: "{}".into(), ending: ResponseEnd::Cut, ..answer }
        }
        FaultRule::Truncated => EmulatedResponse { ending: ResponseEnd::Cut, ..answer },
        FaultRule::WrongTypes { of } => EmulatedResponse { body: with_wrong_type(body, *of), ..answer },
        FaultRule::Lacks { event } => EmulatedResponse { body: with_event(body, event, |_| false), ..answer },
        FaultRule::Shows { event, fields } => EmulatedResponse {
            body: with_event(body, event, |shown| {
                for (key, value) in fields {
                    shown[key] = value.clone();
                }
                true
            }),
            ..answer
        },
        FaultRule::Oversized { bytes } => {
            let missing = bytes.saturating_sub(body.len());
            EmulatedResponse { body: [body.as_ref(), " ".repeat(missing).as_bytes()].concat().into(), ..answer }
        }
        FaultRule::ReplyLost => EmulatedResponse::none(ResponseEnd::Reset),
        _ => answer,
    }
}

/// The document with the event `event` changed, or left out where `change` returns false.
fn with_event(body: &Bytes, event: &str, change: impl Fn(&mut serde_json::Value) -> bool) -> Bytes {
    let mut page: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    if let Some(events) = page["Events"].as_array_mut() {
        let is_it =
            |shown: &serde_json::Value| shown["EventId"].as_str().is_some_and(|id| id.eq_ignore_ascii_case(event));
        events.retain_mut(|shown| !is_it(shown) || change(shown));
    }
    page.to_string().into()
}

fn with_wrong_type(body: &Bytes, of: Field) -> Bytes {
    let mut page: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    match of {
        Field::Document => page = json!([page]),
        Field::Incarnation => page["DocumentIncarnation"] = json!(true),
        Field::Events => page["Events"] = json!({ "EventId": 7 }),
        Field::Event => {
            page["Events"] =
                json!([{ "EventId": 7, "EventStatus": null, "EventType": ["Freeze"], "Resources": "all" }]);
        }
    }
    page.to_string().into()
}

fn no_version() -> EmulatedResponse {
    let error = "Bad request. api-version is invalid or was not specified in the request. \
                 For more information refer to aka.ms/azureimds";
    EmulatedResponse::json(
        400,
        &json!({ "error": error, "newest-versions": ["2025-04-07", "2024-07-17", "2024-03-15"] }),
    )
}
