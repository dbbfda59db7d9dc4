//! Setting the stage: scenarios, how the platform and single endpoints behave, and starting over.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::State;
use axum::response::Json;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::super::habits::HabitsChange;
use super::super::house::House;
use super::super::scenario::{SCENARIOS, Scenario};
use super::super::span::Span;
use super::{Failure, chosen, read};
use crate::machine::id::VmName;

pub(super) async fn list() -> Json<Value> {
    let about = |(name, text)| json!({ "name": name, "about": Scenario::parse(name, text).map_or(String::new(), |found| found.about().to_owned()) });
    Json(json!({ "scenarios": SCENARIOS.map(about) }))
}

/// A built-in scenario by name, or the text of a scenario file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Play {
    name: Option<String>,
    toml: Option<String>,
}

pub(super) async fn play(State(house): State<Arc<House>>, body: Bytes) -> Result<Json<Value>, Failure> {
    let scenario = match read(&body)? {
        // A name is never a path here: what is on disk is the business of whoever serves.
        Play { name: Some(name), toml: None } => match SCENARIOS.iter().find(|(known, _)| *known == name) {
            Some((name, text)) => Scenario::parse(name, text),
            None => Err(super::super::ScenarioError::Unknown { name }),
        },
        Play { name, toml: Some(text) } => Scenario::parse(name.as_deref().unwrap_or("(sent)"), &text),
        Play { name: None, toml: None } => return Err(Failure::wrong("send {\"name\": \"…\"} or {\"toml\": \"…\"}")),
    };
    let scenario = scenario.map_err(|error| Failure::wrong(error.to_string()))?;
    let now = house.now();
    let events = {
        let mut tenant = house.tenant();
        tenant.play(&scenario, now).map_err(|error| Failure::conflict(error.to_string()))?;
        let ids = tenant.play.as_ref().map(|play| &play.events);
        ids.into_iter().flatten().map(ToString::to_string).collect::<Vec<_>>()
    };
    house.news.notify_waiters();
    Ok(Json(json!({ "events": events })))
}

/// How the platform behaves towards everybody; what is left out stays.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlatformChange {
    /// From a VM's first request until it is shown events.
    enrolment: Option<Span>,
    /// After so long without a request the VM must enrol again.
    forget_after: Option<Span>,
    incarnation_step: Option<u64>,
    first_incarnation: Option<u64>,
    /// Events are shown only when a VM in a zone of their resources polls.
    zonal: Option<bool>,
    #[serde(default)]
    zones: BTreeMap<String, Option<String>>,
}

pub(super) async fn platform(State(house): State<Arc<House>>, body: Bytes) -> Result<Json<Value>, Failure> {
    let change: PlatformChange = read(&body)?;
    {
        let mut tenant = house.tenant();
        for name in change.zones.keys() {
            chosen(&tenant, Some(name))?;
        }
        let mut manners = tenant.cloud.manners().clone();
        let speed = tenant.speed;
        manners.enrolment = change.enrolment.map_or(manners.enrolment, |span| span.real(speed));
        manners.forget_after = change.forget_after.map_or(manners.forget_after, |span| span.real(speed));
        manners.incarnation_step = change.incarnation_step.unwrap_or(manners.incarnation_step);
        manners.first_incarnation = change.first_incarnation.unwrap_or(manners.first_incarnation);
        manners.zonal = change.zonal.unwrap_or(manners.zonal);
        tenant.cloud.set_manners(house.now(), manners);
        for (name, zone) in change.zones {
            let zone = zone.map(|zone| zone.chars().take(32).collect());
            tenant.cloud.set_zone(&VmName::new(&name), zone)?;
        }
    }
    house.news.notify_waiters();
    Ok(Json(json!({})))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeHabits {
    vm: Option<String>,
    habits: HabitsChange,
}

pub(super) async fn habits(State(house): State<Arc<House>>, body: Bytes) -> Result<Json<Value>, Failure> {
    let order: ChangeHabits = read(&body)?;
    Failure::unless_empty(&order.habits.mistakes())?;
    let mut tenant = house.tenant();
    for vm in chosen(&tenant, order.vm.as_deref())? {
        if let Some(desk) = tenant.desks.get_mut(&vm) {
            order.habits.apply(&mut desk.habits);
        }
    }
    Ok(Json(json!({})))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangeIncarnation {
    vm: Option<String>,
    change: IncarnationChange,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum IncarnationChange {
    /// Starts again; the array stays.
    Restart,
    /// Changes without news.
    Touch,
}

pub(super) async fn incarnation(State(house): State<Arc<House>>, body: Bytes) -> Result<Json<Value>, Failure> {
    let order: ChangeIncarnation = read(&body)?;
    let vm = order.vm.map(|vm| VmName::new(&vm));
    let mut tenant = house.tenant();
    tenant.cloud.advance(house.now());
    match order.change {
        IncarnationChange::Restart => tenant.cloud.restart_incarnation(vm.as_ref())?,
        IncarnationChange::Touch => tenant.cloud.touch_incarnation(vm.as_ref())?,
    }
    Ok(Json(json!({})))
}

pub(super) async fn reset(State(house): State<Arc<House>>) -> Json<Value> {
    house.tenant().reset(house.now());
    house.news.notify_waiters();
    Json(json!({}))
}
