//! A POST: which events it approves, and what the endpoint answers.

use serde::Deserialize;
use serde_json::Value;

use super::answer::Answer;
use super::dates::rfc3339;
use super::metadata::Asked;
use super::request_log::{ApprovalRecord, EventResult};
use super::tenant::{ApprovalEntry, Tenant};
use crate::machine::id::EventId;
use crate::machine::time::Timestamp;
use crate::simulator::cloud::{Approval, Approver};

/// More than a document can hold.
const MOST_IDS: usize = 100;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Body {
    start_requests: Vec<StartRequest>,
    /// In samples of 2017, as a string or a number.
    document_incarnation: Option<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StartRequest {
    event_id: String,
}

impl Tenant {
    pub(super) fn approval(&mut self, now: Timestamp, seq: u64, asked: &Asked) -> Answer {
        let Some(body) = body_of(asked) else {
            return Answer::error(400, "Bad request. The body must be {\"StartRequests\":[{\"EventId\":\"…\"}]}");
        };
        let habits = self.desks.get(&asked.vm).map(|desk| desk.habits.clone()).unwrap_or_default();
        if habits.checks_incarnation
            && let Some(given) = &body.document_incarnation
        {
            let current = self.cloud.notice(&asked.vm).map_or(0, |notice| notice.incarnation).to_string();
            if given.to_string().trim_matches('"') != current {
                self.note_unheard(seq, asked);
                return Answer::error(409, "Conflict. DocumentIncarnation is not the current one");
            }
        }
        let mut status = 200;
        let mut record = ApprovalRecord::default();
        for StartRequest { event_id } in body.start_requests {
            let result = self.approve_by(now, Approver::Vm(asked.vm.clone()), &EventId::new(&event_id));
            status = status.max(match result {
                Approval::Accepted | Approval::Repeated => 200,
                Approval::Started => habits.started_status,
                Approval::Finished => habits.finished_status,
                Approval::Unknown => habits.unknown_status,
            });
            record.took_effect |= result == Approval::Accepted;
            record.events.push(EventResult { id: event_id, result: Some(word(result)) });
        }
        if let Some(logged) = self.requests.record(seq) {
            logged.approval = Some(record);
        }
        if status == 200 {
            Answer::text(200, "application/json; charset=utf-8", "")
        } else {
            Answer::error(status, "Bad request")
        }
    }

    /// Approves and writes it down.
    pub(super) fn approve_by(&mut self, now: Timestamp, by: Approver, id: &EventId) -> Approval {
        let shown = match &by {
            Approver::Vm(vm) => vm.to_string(),
            Approver::Other(who) => who.clone(),
        };
        let result = self.cloud.approve(now, by, id);
        self.note_approval(ApprovalEntry { at: rfc3339(now), event: id.to_string(), by: shown, result: word(result) });
        result
    }

    /// The log shows what was asked for, also when it never reached the platform.
    pub(super) fn note_unheard(&mut self, seq: u64, asked: &Asked) {
        let events = body_of(asked).map(|body| body.start_requests).unwrap_or_default();
        let events = events.into_iter().map(|request| EventResult { id: request.event_id, result: None }).collect();
        if let Some(logged) = self.requests.record(seq) {
            logged.approval = Some(ApprovalRecord { events, took_effect: false });
        }
    }
}

fn body_of(asked: &Asked) -> Option<Body> {
    let body: Body = serde_json::from_slice(asked.body.as_ref()?).ok()?;
    (1..=MOST_IDS).contains(&body.start_requests.len()).then_some(body)
}

pub(super) const fn word(result: Approval) -> &'static str {
    match result {
        Approval::Accepted => "accepted",
        Approval::Repeated => "repeated",
        Approval::Started => "started",
        Approval::Finished => "finished",
        Approval::Unknown => "unknown",
    }
}
