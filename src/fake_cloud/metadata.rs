//! What an endpoint answers: the checks of the real service, the document, and the faults that shape an answer.
//! Decides only; waiting and sockets are the concern of `exchange`.

use bytes::Bytes;
use serde_json::json;

use super::answer::{Answer, Ending};
use super::fault::{Errand, Fault, Field, Switched};
use super::tenant::Tenant;
use super::version::ApiVersion;
use super::{document, instance};
use crate::machine::id::VmName;
use crate::machine::time::Timestamp;

/// One request as it reached the endpoint of a VM.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) vm: VmName,
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) metadata: Option<String>,
    pub(super) is_forwarded: bool,
    /// Nothing when it was too large or never came whole.
    pub(super) body: Option<Bytes>,
    /// In front of the path where VMs share a port.
    pub(super) prefix: String,
}

/// What a path is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Target<'a> {
    Events,
    /// The form of the first preview, with the version in the path.
    EventsOf(&'a str),
    Instance,
    Nowhere,
}

impl Asked {
    fn target(&self) -> Target<'_> {
        let Some(rest) = self.path.strip_prefix("/metadata/") else { return Target::Nowhere };
        match rest.trim_end_matches('/') {
            "scheduledevents" => Target::Events,
            "instance" => Target::Instance,
            other => match other.strip_suffix("/scheduledevents") {
                Some(version) if !version.contains('/') => Target::EventsOf(version),
                Some(_) | None => Target::Nowhere,
            },
        }
    }

    pub(super) fn errand(&self) -> Errand {
        match (self.target(), self.method.as_str()) {
            (Target::Instance, _) => Errand::Instance,
            (Target::Events | Target::EventsOf(_) | Target::Nowhere, "POST") => Errand::Post,
            (Target::Events | Target::EventsOf(_) | Target::Nowhere, _) => Errand::Get,
        }
    }

    fn version(&self) -> Option<&str> {
        self.query.split('&').find_map(|pair| pair.strip_prefix("api-version="))
    }
}

impl Tenant {
    /// Whether the request is let in, and with which fault.
    pub(super) fn admit(&mut self, now: Timestamp, asked: &Asked) -> Result<Option<Switched>, Answer> {
        let Some(desk) = self.desks.get_mut(&asked.vm) else { return Err(Answer::error(404, "no such VM")) };
        if desk.admits(now) { Ok(desk.take_fault(asked.errand())) } else { Err(too_many()) }
    }

    /// The answer; `seq` is the request's number in the log.
    pub(super) fn answer(&mut self, now: Timestamp, seq: u64, asked: &Asked, fault: Option<&Switched>) -> Answer {
        if let Some(answer) = fault.and_then(|switched| instead_of_answer(asked, &switched.fault)) {
            if asked.errand() == Errand::Post {
                self.note_unheard(seq, asked);
            }
            return answer;
        }
        let plain = match self.checked(asked) {
            Err(refusal) => return refusal,
            Ok(Checked::Instance) => Answer::json(200, &self.instance(&asked.vm)),
            Ok(Checked::Approval) => self.approval(now, seq, asked),
            Ok(Checked::Document(version)) => self.document(now, &asked.vm, version, fault),
        };
        match fault {
            Some(switched) if plain.status == 200 => shaped(plain, &switched.fault),
            Some(_) | None => plain,
        }
    }

    fn checked(&self, asked: &Asked) -> Result<Checked, Answer> {
        let habits = self.desks.get(&asked.vm).map(|desk| desk.habits.clone()).unwrap_or_default();
        let target = asked.target();
        let version = match target {
            Target::Nowhere => return Err(Answer::error(404, "Not found")),
            Target::EventsOf(_) if !habits.path_form => return Err(Answer::error(404, "Not found")),
            // It never had more than the first shape.
            Target::EventsOf("latest") => Some(ApiVersion::V2017_03_01),
            Target::EventsOf(version) => ApiVersion::from_word(version),
            Target::Events => asked.version().and_then(ApiVersion::from_word),
            Target::Instance => None,
        };
        let is_verb_known = match target {
            Target::Instance => asked.method == "GET",
            Target::Events | Target::EventsOf(_) | Target::Nowhere => asked.method == "GET" || asked.method == "POST",
        };
        if !is_verb_known {
            return Err(Answer::error(405, "Method not allowed"));
        }
        if asked.is_forwarded {
            return Err(Answer::error(400, "Bad request. Header X-Forwarded-For is not allowed"));
        }
        let has_header = asked.metadata.as_deref().is_some_and(|value| value.eq_ignore_ascii_case("true"));
        if !has_header && version.is_none_or(ApiVersion::wants_header) {
            return Err(Answer::error(400, "Bad request. Required metadata header not specified"));
        }
        if target == Target::Instance {
            return if asked.version().is_some_and(instance::is_version) {
                Ok(Checked::Instance)
            } else {
                Err(no_version())
            };
        }
        match version {
            Some(version) if version.as_word() <= habits.newest_version.as_str() => {
                Ok(if asked.method == "POST" { Checked::Approval } else { Checked::Document(version) })
            }
            Some(_) | None => Err(no_version()),
        }
    }

    fn document(&mut self, now: Timestamp, vm: &VmName, version: ApiVersion, fault: Option<&Switched>) -> Answer {
        let Some(current) = self.cloud.poll(now, vm) else { return Answer::error(404, "no such VM") };
        let notice = fault.and_then(|switched| switched.stale.as_ref()).unwrap_or(&current);
        let habits = self.desks.get(vm).map(|desk| desk.habits.clone()).unwrap_or_default();
        let body = document::written(notice, version, &habits);
        let etag = Some(format!("\"{}\"", notice.incarnation));
        Answer { etag, ..Answer::text(200, "application/json; charset=utf-8", body) }
    }

    fn instance(&self, vm: &VmName) -> serde_json::Value {
        let zone = self.cloud.vms().find(|candidate| candidate.name == *vm).and_then(|vm| vm.zone.as_deref());
        instance::written(vm.as_str(), zone, self.position_of(vm))
    }
}

/// What a request that passed the checks is about.
enum Checked {
    Document(ApiVersion),
    Approval,
    Instance,
}

/// The faults that keep a request from the platform.
fn instead_of_answer(asked: &Asked, fault: &Fault) -> Option<Answer> {
    match fault {
        Fault::Hang => Some(Answer::none(Ending::Never)),
        Fault::Status { status } => Some(Answer::error(*status, "the fake cloud was told to answer so")),
        Fault::Reset | Fault::Refused => Some(Answer::none(Ending::Reset)),
        Fault::RequestLost | Fault::LateEffect { .. } => Some(Answer::none(Ending::Closed)),
        Fault::Redirect => {
            let location = Some(format!("{}/redirected", asked.prefix));
            Some(Answer { location, ..Answer::text(302, "text/plain", "") })
        }
        Fault::Slow { .. }
        | Fault::LongPoll { .. }
        | Fault::Empty
        | Fault::Html
        | Fault::ErrorJson
        | Fault::Malformed
        | Fault::Truncated
        | Fault::WrongTypes { .. }
        | Fault::Oversized { .. }
        | Fault::Stale
        | Fault::ReplyLost => None,
    }
}

/// The faults that spoil an answer after the request took effect.
fn shaped(answer: Answer, fault: &Fault) -> Answer {
    let body = &answer.body;
    match fault {
        Fault::Empty => Answer { body: Bytes::new(), ..answer },
        Fault::Html => Answer::text(200, "text/html", "<!DOCTYPE html><html><body><h1>It works!</h1></body></html>"),
        Fault::ErrorJson => Answer::error(200, "Internal error. Try again later"),
        Fault::Malformed => Answer { body: body.slice(..body.len() / 2), ..answer },
        // An empty answer has no middle.
        Fault::Truncated if body.is_empty() => Answer { body: "{}".into(), ending: Ending::Cut, ..answer },
        Fault::Truncated => Answer { ending: Ending::Cut, ..answer },
        Fault::WrongTypes { of } => Answer { body: with_wrong_type(body, *of), ..answer },
        Fault::Oversized { bytes } => {
            let missing = bytes.saturating_sub(body.len());
            Answer { body: [body.as_ref(), " ".repeat(missing).as_bytes()].concat().into(), ..answer }
        }
        Fault::ReplyLost => Answer::none(Ending::Reset),
        Fault::Slow { .. }
        | Fault::Hang
        | Fault::LongPoll { .. }
        | Fault::Status { .. }
        | Fault::Reset
        | Fault::Refused
        | Fault::Redirect
        | Fault::Stale
        | Fault::RequestLost
        | Fault::LateEffect { .. } => answer,
    }
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

fn too_many() -> Answer {
    Answer::error(429, "Too many requests")
}

fn no_version() -> Answer {
    let error = "Bad request. api-version is invalid or was not specified in the request. \
                 For more information refer to aka.ms/azureimds";
    Answer::json(400, &json!({ "error": error, "newest-versions": ["2025-04-07", "2024-07-17", "2024-03-15"] }))
}
