//! Where the real service varies: dates, incarnations, enrolment, zones, limits.

use reqwest::Method;
use serde_json::json;

use crate::stage::{Stage, reboot};

#[tokio::test(flavor = "multi_thread")]
async fn not_before_comes_in_every_form() {
    let stage = Stage::open(&["db-0"]).await;
    stage.announce(reboot("db-0")).await;
    let mut forms = Vec::new();
    for dates in ["rfc1123", "iso8601", "one_digit_day", "utc", "wrong_weekday", "padded", "garbage", "blank"] {
        stage.expect(Method::PATCH, "/habits", Some(json!({ "habits": { "dates": dates } }))).await;
        forms.push(stage.get("db-0").await.events()[0]["NotBefore"].as_str().expect("a text").to_owned());
    }
    let [usual, iso, _, utc, wrong, padded, garbage, blank] = &forms[..] else { panic!("{forms:?}") };
    assert!(usual.ends_with(" GMT") && utc.ends_with(" UTC"), "{forms:?}");
    assert!(iso.ends_with('Z') && iso.contains('T'), "{forms:?}");
    assert!(wrong != usual && wrong[3..] == usual[3..], "{forms:?}");
    assert_eq!(padded.trim(), usual);
    assert_eq!((garbage.as_str(), blank.as_str()), ("as soon as possible", ""));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_incarnation_is_a_number_or_a_text_and_starts_again_when_told() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage.announce(reboot("db-0")).await;
    assert_eq!(stage.get("db-0").await.json()["DocumentIncarnation"], 2);
    stage.order("/incarnation", json!({ "change": "touch" })).await;
    assert_eq!(stage.get("db-0").await.json()["DocumentIncarnation"], 3);
    stage.order("/incarnation", json!({ "vm": "db-0", "change": "restart" })).await;
    let again = stage.get("db-0").await;
    assert_eq!(again.json()["DocumentIncarnation"], 1);
    assert_eq!(again.events()[0]["EventId"], json!(id), "1 may already carry an event");
    assert_eq!(stage.get("db-1").await.json()["DocumentIncarnation"], 3);
    stage.expect(Method::PATCH, "/habits", Some(json!({ "habits": { "incarnation": "text" } }))).await;
    assert_eq!(stage.get("db-1").await.json()["DocumentIncarnation"], "3");
    stage.expect(Method::PATCH, "/platform", Some(json!({ "incarnation_step": 5 }))).await;
    stage.order(&format!("/events/{id}/cancel"), json!({})).await;
    assert_eq!(stage.get("db-1").await.json()["DocumentIncarnation"], "8");
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn some_events_are_shown_to_one_vm_only() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let id = stage
        .announce(json!({ "type": "Reboot", "source": "User", "vms": ["db-0"], "seen_by": [0], "notice": "15m" }))
        .await;
    assert_eq!(stage.get("db-0").await.events().len(), 1);
    assert_eq!(stage.get("db-1").await.events().len(), 0);
    assert_eq!(stage.approve("db-1", &id).await.status, 400, "it does not exist for that VM");
    assert_eq!(stage.approve("db-0", &id).await.status, 200);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_must_enrol_before_it_is_shown_events() {
    let stage = Stage::open(&["db-0"]).await;
    stage.expect(Method::PATCH, "/platform", Some(json!({ "enrolment": 300 }))).await;
    let id = stage.announce(reboot("db-0")).await;
    assert_eq!(stage.get("db-0").await.events().len(), 0);
    stage.until("/state", "the enrolment", |state| state["vms"][0]["incarnation"] == 2).await;
    assert_eq!(stage.get("db-0").await.events()[0]["EventId"], json!(id));
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_zone_that_does_not_poll_has_no_events() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    let zones = json!({ "zonal": true, "zones": { "db-0": "1", "db-1": "2" } });
    stage.expect(Method::PATCH, "/platform", Some(zones)).await;
    stage.announce(reboot("db-1")).await;
    assert_eq!(stage.get("db-0").await.events().len(), 0, "zone 2 is off");
    assert_eq!(stage.get("db-1").await.events().len(), 1);
    assert_eq!(stage.get("db-0").await.events().len(), 1, "zone 2 is on");
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn more_than_five_requests_in_a_second_are_too_many_when_switched_on() {
    let stage = Stage::open(&["db-0", "db-1"]).await;
    for _ in 0..8 {
        assert_eq!(stage.get("db-0").await.status, 200);
    }
    stage.expect(Method::PATCH, "/habits", Some(json!({ "habits": { "rate_limit": true } }))).await;
    // All at once, so that they arrive within a second also where the machine is slow.
    let asked = (0..12).map(|_| stage.get("db-0"));
    let statuses: Vec<u16> = futures_util::future::join_all(asked).await.iter().map(|reply| reply.status).collect();
    assert!(statuses.contains(&429) && statuses.contains(&200), "{statuses:?}");
    assert_eq!(stage.get("db-1").await.status, 200, "each VM is counted apart");
    stage.cloud.shutdown().await;
}
