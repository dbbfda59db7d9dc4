//! Announcing events, and driving those that are under way.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::dates::rfc3339;
use super::super::house::House;
use super::super::order::EventOrder;
use super::super::span::Span;
use super::super::tenant::enough;
use super::{Failure, read};
use allclear_core::model::id::{EventId, VmName};
use allclear_sim::cloud::{Approver, Cause, End, Event, When};

/// What time it is, where each VM's endpoint is, and all events.
pub(super) async fn state(State(house): State<Arc<House>>) -> Json<Value> {
    let vms = house.ports.iter().map(|(name, endpoint)| json!({ "name": name.as_str(), "endpoint": endpoint }));
    let (vms, now) = (vms.collect::<Vec<_>>(), house.now());
    let mut tenant = house.tenant();
    tenant.cloud.advance(now);
    let events: Vec<_> = tenant.cloud.events().iter().map(shown).collect();
    Json(json!({ "now": rfc3339(now), "speed": tenant.speed, "vms": vms, "events": events }))
}

pub(super) async fn list(state: State<Arc<House>>) -> Json<Value> {
    let Json(mut whole) = self::state(state).await;
    Json(json!({ "events": whole["events"].take() }))
}

pub(super) async fn show(State(house): State<Arc<House>>, Path(id): Path<String>) -> Result<Json<Value>, Failure> {
    let mut tenant = house.tenant();
    tenant.cloud.advance(house.now());
    let found = tenant.cloud.event(&EventId::new(&id)).map(shown);
    found.map(Json).ok_or_else(|| Failure::nowhere(format!("no event {id} has been announced")))
}

pub(super) async fn announce(State(house): State<Arc<House>>, body: Bytes) -> Result<Response, Failure> {
    let order: EventOrder = read(&body)?;
    Failure::unless_empty(&order.mistakes())?;
    let now = house.now();
    let mut tenant = house.tenant();
    if tenant.room() == 0 {
        return Err(Failure::conflict(enough()));
    }
    let speed = tenant.speed;
    let plan = order.plan(&tenant.vms, speed).map_err(Failure::wrong)?;
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
struct Change {
    /// From now to the new NotBefore.
    notice: Span,
}

pub(super) async fn change(
    State(house): State<Arc<House>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let Change { notice } = read(&body)?;
    {
        let mut tenant = house.tenant();
        let notice = notice.real(tenant.speed);
        tenant.cloud.move_not_before(house.now(), &EventId::new(&id), notice)?;
        // Nobody reads it here, and changes are the one thing that can be ordered without end.
        tenant.cloud.take_history();
    }
    show(State(house), Path(id)).await
}

pub(super) async fn order(
    State(house): State<Arc<House>>,
    Path((id, order)): Path<(String, String)>,
) -> Result<Json<Value>, Failure> {
    let (id, now) = (EventId::new(&id), house.now());
    let mut tenant = house.tenant();
    match order.as_str() {
        "cancel" => tenant.cloud.cancel(now, &id)?,
        "start" => tenant.cloud.start(now, &id)?,
        "finish" => tenant.cloud.finish(now, &id)?,
        other => return Err(Failure::nowhere(format!("there is no order {other}; use cancel, start or finish"))),
    }
    Ok(Json(json!({})))
}

/// The incarnation of every VM's document starts again; the array stays.
pub(super) async fn restart_incarnations(State(house): State<Arc<House>>) -> Result<Json<Value>, Failure> {
    let mut tenant = house.tenant();
    tenant.cloud.advance(house.now());
    tenant.cloud.restart_incarnation(None)?;
    Ok(Json(json!({})))
}

fn shown(event: &Event) -> Value {
    let status = match (&event.started, &event.ended) {
        (_, Some((_, End::Finished))) => "Finished",
        (_, Some((_, End::Cancelled))) => "Cancelled",
        (Some(_), None) => "Started",
        (None, None) => "Scheduled",
    };
    let approver = |by: &Approver| match by {
        Approver::Vm(vm) => vm.to_string(),
        Approver::Other(who) => who.clone(),
    };
    let cause = |cause: &Cause| match cause {
        Cause::Failure => "failure",
        Cause::Approved => "approved",
        Cause::NotBefore => "not_before",
        Cause::Ordered => "ordered",
    };
    json!({
        "id": event.id.as_str(),
        "type": event.plan.kind.as_word(),
        "source": event.plan.source.as_word(),
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
