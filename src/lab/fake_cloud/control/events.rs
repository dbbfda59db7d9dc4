//! Announces events and advances open events.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::dates::rfc3339;
use super::super::order::EventOrder;
use super::super::server_state::ServerState;
use super::super::span::ScenarioTime;
use super::super::tenant::enough;
use super::{OrderFailure, read};
use allclear_cloud::{Approver, EventEnd, PlatformEvent, PlatformStartCause, When};
use allclear_core::model::id::{EventId, VmName};

/// The cloud's time, the endpoint of each VM, and all events.
pub(super) async fn state(State(house): State<Arc<ServerState>>) -> Json<Value> {
    let vms = house.ports.iter().map(|(name, endpoint)| json!({ "name": name.as_str(), "endpoint": endpoint }));
    let (vms, now) = (vms.collect::<Vec<_>>(), house.now());
    let mut tenant = house.tenant();
    tenant.cloud.advance(now);
    let events: Vec<_> = tenant.cloud.events().iter().map(shown).collect();
    Json(json!({ "now": rfc3339(now), "speed": tenant.speed, "vms": vms, "events": events }))
}

pub(super) async fn list(state: State<Arc<ServerState>>) -> Json<Value> {
    let Json(mut whole) = self::state(state).await;
    Json(json!({ "events": whole["events"].take() }))
}

pub(super) async fn show(
    State(house): State<Arc<ServerState>>,
    Path(id): Path<String>,
) -> Result<Json<Value>, OrderFailure> {
    let mut tenant = house.tenant();
    tenant.cloud.advance(house.now());
    let found = tenant.cloud.event(&EventId::new(&id)).map(shown);
    found.map(Json).ok_or_else(|| OrderFailure::nowhere(format!("no event {id} has been announced")))
}

pub(super) async fn announce(State(house): State<Arc<ServerState>>, body: Bytes) -> Result<Response, OrderFailure> {
    let order: EventOrder = read(&body)?;
    OrderFailure::unless_empty(&order.mistakes())?;
    let now = house.now();
    let mut tenant = house.tenant();
    if tenant.room() == 0 {
        return Err(OrderFailure::conflict(enough()));
    }
    let speed = tenant.speed;
    let plan = order.plan(&tenant.vms, speed).map_err(OrderFailure::wrong)?;
    let when = match &order.after {
        Some(after) => When::After {
            event: EventId::new(&after.event),
            pause: after.pause.map(|pause| pause.real(speed)).unwrap_or_default(),
        },
        None => When::At(now.plus(order.at.map(|at| at.real(speed)).unwrap_or_default())),
    };
    let id = tenant.cloud.schedule(now, when, plan)?;
    Ok((StatusCode::CREATED, Json(json!({ "id": id.as_str() }))).into_response())
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeRequest {
    /// The time from now to the new `NotBefore`.
    notice: ScenarioTime,
}

pub(super) async fn change(
    State(house): State<Arc<ServerState>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, OrderFailure> {
    let ChangeRequest { notice } = read(&body)?;
    {
        let mut tenant = house.tenant();
        let notice = notice.real(tenant.speed);
        tenant.cloud.move_not_before(house.now(), &EventId::new(&id), notice)?;
        // The history has no reader here, and is the only data that orders could grow without bound.
        tenant.cloud.take_history();
    }
    show(State(house), Path(id)).await
}

pub(super) async fn order(
    State(house): State<Arc<ServerState>>,
    Path((id, order)): Path<(String, String)>,
) -> Result<Json<Value>, OrderFailure> {
    let (id, now) = (EventId::new(&id), house.now());
    let mut tenant = house.tenant();
    match order.as_str() {
        "cancel" => tenant.cloud.cancel(now, &id)?,
        "start" => tenant.cloud.start(now, &id)?,
        "finish" => tenant.cloud.finish(now, &id)?,
        other => return Err(OrderFailure::nowhere(format!("there is no order {other}; use cancel, start or finish"))),
    }
    Ok(Json(json!({})))
}

/// The incarnation of every VM's document starts again; the array stays.
pub(super) async fn restart_incarnations(State(house): State<Arc<ServerState>>) -> Result<Json<Value>, OrderFailure> {
    let mut tenant = house.tenant();
    tenant.cloud.advance(house.now());
    tenant.cloud.restart_incarnation(None)?;
    Ok(Json(json!({})))
}

fn shown(event: &PlatformEvent) -> Value {
    let status = match (&event.started, &event.ended) {
        (_, Some((_, EventEnd::Finished))) => "Finished",
        (_, Some((_, EventEnd::Cancelled))) => "Cancelled",
        (Some(_), None) => "Started",
        (None, None) => "Scheduled",
    };
    let approver = |by: &Approver| match by {
        Approver::Vm(vm) => vm.to_string(),
        Approver::Other(who) => who.clone(),
    };
    let cause = |cause: &PlatformStartCause| match cause {
        PlatformStartCause::Failure => "failure",
        PlatformStartCause::Approved => "approved",
        PlatformStartCause::NotBefore => "not_before",
        PlatformStartCause::Ordered => "ordered",
    };
    json!({
        "id": event.id.as_str(),
        "type": event.plan.kind.as_str(),
        "source": event.plan.source.as_str(),
        "resources": event.plan.resources.iter().map(VmName::as_str).collect::<Vec<_>>(),
        "status": status,
        "description": event.plan.description,
        "duration_s": event.plan.duration.map_or(-1, |span| i64::try_from(span.as_secs()).unwrap_or(i64::MAX)),
        "announced_at": rfc3339(event.announced_at),
        "not_before": rfc3339(event.not_before),
        "accepted": event.accepted.as_ref().map(|(at, by)| json!({ "at": rfc3339(*at), "by": approver(by) })),
        "started": event.started.as_ref().map(|(at, why)| json!({ "at": rfc3339(*at), "cause": cause(why) })),
        "ended_at": event.ended.as_ref().map(|(at, _)| rfc3339(*at)),
    })
}
