//! Announcing events, and driving those that are under way.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::approve::word;
use super::super::house::House;
use super::super::order::{EventOrder, Vms, duration};
use super::super::span::Span;
use super::super::tenant::enough;
use super::state::event as shown;
use super::{Failure, read};
use crate::machine::id::EventId;
use crate::simulator::cloud::{Amendment, Approver, When};

pub(super) async fn list(State(house): State<Arc<House>>) -> Json<Value> {
    let mut tenant = house.tenant();
    tenant.cloud.advance(house.now());
    Json(json!({ "events": tenant.cloud.events().iter().map(shown).collect::<Vec<_>>() }))
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
    drop(tenant);
    house.news.notify_waiters();
    Ok((StatusCode::CREATED, Json(json!({ "id": id.as_str() }))).into_response())
}

/// What changes about an event; the rest stays.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    /// From now to the new NotBefore.
    notice: Option<Span>,
    #[serde(alias = "vm")]
    vms: Option<Vms>,
    duration_s: Option<i64>,
}

pub(super) async fn change(
    State(house): State<Arc<House>>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let change: Change = read(&body)?;
    Failure::unless_empty(&change.vms.as_ref().map(|vms| vms.mistakes("vms")).unwrap_or_default())?;
    let id = EventId::new(&id);
    let now = house.now();
    {
        let mut tenant = house.tenant();
        let vms = change.vms.map(|vms| vms.names(&tenant.vms)).transpose().map_err(Failure::wrong)?;
        if let Some(notice) = change.notice {
            let notice = notice.real(tenant.speed);
            tenant.cloud.move_not_before(now, &id, notice)?;
        }
        if let Some(vms) = vms {
            tenant.cloud.amend(now, &id, Amendment::Resources(vms))?;
        }
        if let Some(seconds) = change.duration_s {
            tenant.cloud.amend(now, &id, Amendment::Duration(duration(seconds)))?;
        }
        // Nobody reads it here, and changes are the one thing that can be ordered without end.
        tenant.cloud.take_history();
    }
    house.news.notify_waiters();
    show(State(house), Path(id.as_str().to_owned())).await
}

/// Who approves, when it is not a VM.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct By {
    by: Option<String>,
}

pub(super) async fn order(
    State(house): State<Arc<House>>,
    Path((id, order)): Path<(String, String)>,
    body: Bytes,
) -> Result<Json<Value>, Failure> {
    let id = EventId::new(&id);
    let now = house.now();
    let mut answer = json!({});
    {
        let mut tenant = house.tenant();
        match order.as_str() {
            "cancel" => tenant.cloud.cancel(now, &id)?,
            "start" => tenant.cloud.start(now, &id)?,
            "finish" => tenant.cloud.finish(now, &id)?,
            "approve" => {
                let By { by } = read(&body)?;
                let by = by.unwrap_or_else(|| "control plane".into()).chars().take(128).collect();
                answer = json!({ "result": word(tenant.approve_by(now, Approver::Other(by), &id)) });
            }
            other => {
                return Err(Failure::nowhere(format!(
                    "there is no order {other}; use cancel, start, finish or approve"
                )));
            }
        }
    }
    house.news.notify_waiters();
    Ok(Json(answer))
}
