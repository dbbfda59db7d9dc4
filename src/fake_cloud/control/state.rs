//! The whole state as JSON: VMs and their endpoints, events and how far they are, the scenario.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Json;
use serde_json::{Value, json};

use super::super::dates::rfc3339;
use super::super::house::House;
use super::super::tenant::Tenant;
use crate::machine::id::{EventId, VmName};
use crate::simulator::cloud::{Approver, Cause, End, Event};

pub(super) async fn show(State(house): State<Arc<House>>) -> Json<Value> {
    let now = house.now();
    let mut tenant = house.tenant();
    tenant.cloud.advance(now);
    let vms: Vec<Value> = house.ports.iter().map(|(name, endpoint)| vm(&tenant, &house.base, name, endpoint)).collect();
    let manners = tenant.cloud.manners();
    let scenario = tenant.play.as_ref().map(|play| {
        let ids: Vec<&str> = play.events.iter().map(EventId::as_str).collect();
        json!({ "name": play.name, "about": play.about, "began_at": rfc3339(play.began_at),
                "events": ids, "over": tenant.is_over() })
    });
    Json(json!({
        "now": rfc3339(now),
        "speed": tenant.speed,
        "vms": vms,
        "platform": {
            "enrolment_ms": u64::try_from(manners.enrolment.as_millis()).unwrap_or(u64::MAX),
            "forget_after_ms": u64::try_from(manners.forget_after.as_millis()).unwrap_or(u64::MAX),
            "incarnation_step": manners.incarnation_step,
            "first_incarnation": manners.first_incarnation,
            "zonal": manners.zonal,
        },
        "events": tenant.cloud.events().iter().map(event).collect::<Vec<_>>(),
        "planned": tenant.cloud.planned(),
        "scenario": scenario,
    }))
}

fn vm(tenant: &Tenant, base: &str, name: &VmName, endpoint: &str) -> Value {
    let desk = tenant.desks.get(name);
    json!({
        "name": name.as_str(),
        "endpoint": endpoint,
        "path_endpoint": format!("{base}/vm/{name}"),
        "zone": tenant.cloud.vms().find(|vm| vm.name == *name).and_then(|vm| vm.zone.clone()),
        "incarnation": tenant.cloud.notice(name).map(|notice| notice.incarnation),
        "impacted": tenant.cloud.is_impacted(name),
        "faults": desk.map(|desk| &desk.faults),
        "habits": desk.map(|desk| &desk.habits),
    })
}

pub(super) fn event(event: &Event) -> Value {
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
