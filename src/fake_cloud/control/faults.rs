//! Switching faults on and off.

use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::Json;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::fault::{Fault, On, Switched};
use super::super::house::House;
use super::{Failure, ForVm, chosen, read};

/// Faults of one VM that wait for their requests.
const MOST_FAULTS: usize = 100;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetFault {
    /// Left out: every VM.
    vm: Option<String>,
    #[serde(default)]
    on: On,
    /// For so many requests of each VM; left out: until cleared.
    times: Option<u32>,
    fault: Fault,
}

pub(super) async fn list(State(house): State<Arc<House>>) -> Json<Value> {
    let tenant = house.tenant();
    let by_vm = tenant.desks.iter().map(|(vm, desk)| (vm.to_string(), json!(desk.faults)));
    Json(json!({ "faults": by_vm.collect::<serde_json::Map<_, _>>() }))
}

pub(super) async fn set(State(house): State<Arc<House>>, body: Bytes) -> Result<Json<Value>, Failure> {
    let order: SetFault = read(&body)?;
    Failure::unless_empty(&order.fault.mistakes(order.times))?;
    let now = house.now();
    let mut tenant = house.tenant();
    tenant.cloud.advance(now);
    let vms = chosen(&tenant, order.vm.as_deref())?;
    let is_full = |vm| tenant.desks.get(vm).is_some_and(|desk| desk.faults.len() >= MOST_FAULTS);
    if vms.iter().any(is_full) {
        return Err(Failure::conflict(format!("{MOST_FAULTS} faults wait already; clear them first")));
    }
    for vm in vms {
        let stale = (order.fault == Fault::Stale).then(|| tenant.cloud.notice(&vm)).flatten();
        if let Some(desk) = tenant.desks.get_mut(&vm) {
            desk.set_fault(Switched { fault: order.fault.clone(), on: order.on, times: order.times, stale });
        }
    }
    Ok(Json(json!({})))
}

pub(super) async fn clear(
    State(house): State<Arc<House>>,
    Query(ForVm { vm }): Query<ForVm>,
) -> Result<Json<Value>, Failure> {
    let mut tenant = house.tenant();
    for vm in chosen(&tenant, vm.as_deref())? {
        if let Some(desk) = tenant.desks.get_mut(&vm) {
            desk.clear_faults();
        }
    }
    Ok(Json(json!({})))
}
