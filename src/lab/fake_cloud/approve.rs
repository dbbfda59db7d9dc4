//! A POST: the events that the request approves, and the endpoint's answer.

use serde::Deserialize;

use super::answer::EmulatedResponse;
use super::metadata::ImdsRequest;
use super::request_log::{ApprovalRecord, EventResult};
use super::tenant::Tenant;
use allclear_cloud::{ApprovalEffect, Approver};
use allclear_core::model::id::EventId;
use allclear_core::model::time::Timestamp;

/// Maximum number of ids in a request, more than a document can hold.
const MOST_IDS: usize = 100;

/// Further fields, as in the samples of 2017, are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ApprovalBody {
    start_requests: Vec<StartRequest>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct StartRequest {
    event_id: String,
}

impl Tenant {
    pub(super) fn approval(&mut self, now: Timestamp, seq: u64, asked: &ImdsRequest) -> EmulatedResponse {
        let Some(requests) = requests_of(asked) else {
            return EmulatedResponse::error(
                400,
                "Bad request. The body must be {\"StartRequests\":[{\"EventId\":\"…\"}]}",
            );
        };
        let mut record = ApprovalRecord::default();
        for StartRequest { event_id } in requests {
            let result = self.cloud.approve(now, Approver::Vm(asked.vm.clone()), &EventId::new(&event_id));
            record.took_effect |= result == ApprovalEffect::Accepted;
            record.events.push(EventResult { id: event_id, result: Some(word(result)) });
        }
        // The platform's answer to a late approval is not documented.
        let is_known = |event: &EventResult| !matches!(event.result, Some("unknown" | "finished"));
        let is_good = record.events.iter().all(is_known);
        if let Some(logged) = self.requests.record(seq) {
            logged.approval = Some(record);
        }
        if is_good {
            EmulatedResponse::text(200, "application/json; charset=utf-8", "")
        } else {
            EmulatedResponse::error(400, "Bad request")
        }
    }

    /// Logs the requested approvals, also of a request that never reached the platform.
    pub(super) fn note_unheard(&mut self, seq: u64, asked: &ImdsRequest) {
        let events = requests_of(asked).unwrap_or_default().into_iter();
        let events = events.map(|request| EventResult { id: request.event_id, result: None }).collect();
        if let Some(logged) = self.requests.record(seq) {
            logged.approval = Some(ApprovalRecord { events, took_effect: false });
        }
    }
}

fn requests_of(asked: &ImdsRequest) -> Option<Vec<StartRequest>> {
    let body: ApprovalBody = serde_json::from_slice(asked.body.as_ref()?).ok()?;
    (1..=MOST_IDS).contains(&body.start_requests.len()).then_some(body.start_requests)
}

pub(super) fn word(result: ApprovalEffect) -> &'static str {
    match result {
        ApprovalEffect::Accepted => "accepted",
        ApprovalEffect::Repeated => "repeated",
        ApprovalEffect::Started => "started",
        ApprovalEffect::Finished => "finished",
        ApprovalEffect::Unknown => "unknown",
    }
}
