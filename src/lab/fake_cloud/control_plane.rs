//! The control plane beside the metadata endpoints: tokens of the VMs' identities, and approvals with such a token.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Json, Response};
use serde_json::{Value, json};

use super::approve::word;
use super::dates::rfc3339;
use super::request_log::{ApprovalRecord, EventResult, LoggedRequest};
use super::server_state::ServerState;
use allclear_cloud::{ApprovalEffect, Approver};
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

/// The approver in the request log.
pub(super) const NAME: &str = "control-plane";

/// The answer of a VM's identity endpoint.
pub(super) fn token(vm: &VmName) -> Value {
    json!({ "access_token": mark(vm), "expires_in": "86400", "token_type": "Bearer" })
}

/// No secret: the fake cloud is on loopback.
fn mark(vm: &VmName) -> String {
    format!("identity-of-{vm}")
}

/// `POST /subscriptions/…/virtualMachines/VM/providers/Microsoft.Maintenance/scheduledevents/ID/acknowledge`
pub(super) async fn acknowledge(
    State(house): State<Arc<ServerState>>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> Response {
    let (now, at) = (house.now(), house.clock.since_1970());
    let mut tenant = house.tenant();
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if !tenant.vms.iter().any(|vm| bearer == Some(&mark(vm))) {
        return refused(StatusCode::UNAUTHORIZED, "AuthenticationFailed");
    }
    let parts: Vec<&str> = path.split('/').collect();
    let [.., "virtualMachines", vm, "providers", "Microsoft.Maintenance", "scheduledevents", id, "acknowledge"] =
        parts[..]
    else {
        return refused(StatusCode::NOT_FOUND, "InvalidResourceType");
    };
    if !tenant.vms.contains(&VmName::new(vm)) {
        return refused(StatusCode::NOT_FOUND, "ResourceNotFound");
    }
    let result = tenant.cloud.approve(now, Approver::Other(NAME.to_owned()), &EventId::new(id));
    let is_known = !matches!(result, ApprovalEffect::Unknown | ApprovalEffect::Finished);
    let status = if is_known { StatusCode::OK } else { StatusCode::NOT_FOUND };
    let events = vec![EventResult { id: id.to_owned(), result: Some(word(result)) }];
    let seq = tenant.requests.arrived(LoggedRequest {
        at: rfc3339(Timestamp(0).plus(at)),
        at_us: i64::try_from(at.as_micros()).unwrap_or(i64::MAX),
        vm: NAME.to_owned(),
        method: "POST".to_owned(),
        path: format!("/subscriptions/{path}"),
        status: Some(status.as_u16()),
        approval: Some(ApprovalRecord { events, took_effect: result == ApprovalEffect::Accepted }),
        ..LoggedRequest::default()
    });
    tenant.requests.settled(seq);
    if is_known {
        (status, Json(json!({ "value": "Successfully Approved" }))).into_response()
    } else {
        refused(status, "ScheduledEventNotFound")
    }
}

fn refused(status: StatusCode, code: &str) -> Response {
    (status, Json(json!({ "error": { "code": code, "message": "refused by the fake cloud" } }))).into_response()
}
