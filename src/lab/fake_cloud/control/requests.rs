//! The requests to the endpoints so far, and the faults of the endpoints.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Json;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::fault::{FaultRule, On, Switched};
use super::super::request_log::LoggedRequest;
use super::super::server_state::ServerState;
use super::super::tenant::Tenant;
use super::{OrderFailure, read};
use allclear_core::model::id::VmName;

/// Maximum number of pending faults of one VM.
const MOST_FAULTS: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestFilter {
    vm: Option<String>,
    method: Option<String>,
}

pub(super) async fn list(State(house): State<Arc<ServerState>>, Query(wanted): Query<RequestFilter>) -> Json<Value> {
    let tenant = house.tenant();
    let vm = wanted.vm.map(|vm| VmName::new(&vm));
    let fits = |record: &&LoggedRequest| {
        vm.as_ref().is_none_or(|vm| VmName::new(&record.vm) == *vm)
            && wanted.method.as_ref().is_none_or(|method| record.method.eq_ignore_ascii_case(method))
    };
    Json(json!({ "requests": tenant.requests.records().filter(fits).collect::<Vec<_>>() }))
}

/// The result of each approval that a VM posted.
pub(super) async fn approvals(State(house): State<Arc<ServerState>>) -> Json<Value> {
    let posts = house.posts().into_iter();
    let posts = posts.filter_map(|post| {
        let result = post.result?;
        Some(json!({ "at": post.at, "event": post.event.as_str(), "by": post.vm.as_str(), "result": result }))
    });
    Json(json!({ "approvals": posts.collect::<Vec<_>>() }))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetFault {
    /// The VM with the fault; left out: every VM.
    vm: Option<String>,
    #[serde(default)]
    on: On,
    /// Number of requests of each VM with the fault; left out: until cleared.
    times: Option<u32>,
    fault: FaultRule,
}

pub(super) async fn set_fault(State(house): State<Arc<ServerState>>, body: Bytes) -> Result<Json<Value>, OrderFailure> {
    let SetFault { vm, on, times, fault } = read(&body)?;
    OrderFailure::unless_empty(&fault.mistakes(times))?;
    let now = house.now();
    let mut tenant = house.tenant();
    tenant.cloud.advance(now);
    let vms = chosen(&tenant, vm.as_deref())?;
    if vms.iter().any(|vm| tenant.faults.get(vm).is_some_and(|faults| faults.len() >= MOST_FAULTS)) {
        return Err(OrderFailure::conflict(format!("{MOST_FAULTS} faults wait already; clear them first")));
    }
    for vm in vms {
        let stale = (fault == FaultRule::Stale).then(|| tenant.cloud.notice(&vm)).flatten();
        if let Some(faults) = tenant.faults.get_mut(&vm) {
            faults.push(Switched { fault: fault.clone(), on, times, stale });
        }
    }
    Ok(Json(json!({})))
}

/// The faults to clear: by default the faults of every VM and of all requests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Cleared {
    vm: Option<String>,
    on: Option<On>,
}

pub(super) async fn clear_faults(
    State(house): State<Arc<ServerState>>,
    Query(Cleared { vm, on }): Query<Cleared>,
) -> Result<Json<Value>, OrderFailure> {
    let mut tenant = house.tenant();
    for vm in chosen(&tenant, vm.as_deref())? {
        tenant.faults.entry(vm).or_default().retain(|switched| on.is_some_and(|on| switched.on != on));
    }
    Ok(Json(json!({})))
}

/// The named VM or all VMs.
fn chosen(tenant: &Tenant, vm: Option<&str>) -> Result<Vec<VmName>, OrderFailure> {
    let Some(name) = vm else { return Ok(tenant.vms.clone()) };
    let asked = VmName::new(name);
    if !tenant.vms.contains(&asked) {
        return Err(OrderFailure::nowhere(format!("this cloud has no VM {name}; see /control/state")));
    }
    Ok(vec![asked])
}
