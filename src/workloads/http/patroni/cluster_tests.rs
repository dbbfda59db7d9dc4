//! The rules on answers as Patroni gives them.

use serde_json::{Value, json};

use super::*;

fn facts(changes: &Value) -> Facts {
    let mut facts = json!({
        "time_left_ms": 60_000, "vm": "db-0", "event_resources": ["db-0"], "avoid_vms": ["db-0"],
        "prefer_vms": ["db-2", "db-1"], "phase": "failover", "intent": "run",
    });
    let known = facts.as_object_mut().unwrap();
    known.extend(changes.as_object().unwrap().clone());
    Facts::read(&facts.to_string()).unwrap()
}

fn three() -> Value {
    json!({ "members": [
        { "name": "db-0", "role": "leader", "state": "running", "api_url": "http://10.0.0.4:8008/patroni",
          "host": "10.0.0.4", "port": 5432, "timeline": 3 },
        { "name": "db-1", "role": "replica", "state": "streaming", "api_url": "http://10.0.0.5:8008/patroni",
          "host": "10.0.0.5", "port": 5432, "timeline": 3, "lag": 0 },
        { "name": "db-2", "role": "replica", "state": "streaming", "api_url": "http://10.0.0.6:8008/patroni",
          "host": "10.0.0.6", "port": 5432, "timeline": 3, "lag": 1000, "tags": { "clonefrom": true } },
    ], "scope": "orders" })
}

/// The three with some fields of one changed.
fn with(place: usize, changes: &Value) -> Value {
    let mut cluster = three();
    cluster["members"][place].as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    cluster
}

fn read(cluster: &Value) -> Cluster {
    Cluster::read(&cluster.to_string()).unwrap()
}

fn candidate(cluster: &Value, changes: &Value) -> Result<String, Ended> {
    read(cluster).plan(&facts(changes)).map(|switch| switch.candidate)
}

#[test]
fn the_leader_is_asked_to_hand_over_to_the_one_that_is_preferred() {
    let expected = Switch {
        leader: "db-0".into(),
        candidate: "db-2".into(),
        leaders_api: Some("http://10.0.0.4:8008/patroni".into()),
    };
    assert_eq!(read(&three()).plan(&facts(&json!({}))), Ok(expected));
    assert_eq!(candidate(&three(), &json!({ "prefer_vms": ["db-1", "db-2"] })), Ok("db-1".into()));
    assert_eq!(candidate(&three(), &json!({ "prefer_vms": [] })), Ok("db-1".into()), "the one that lags least");
}

#[test]
fn nobody_is_taken_who_should_not() {
    for (changes, why) in [
        (json!({ "state": "starting" }), "not streaming"),
        (json!({ "state": "running" }), "not streaming"),
        (json!({ "lag": 2_000_000 }), "lags"),
        (json!({ "lag": "unknown" }), "lag unknown"),
        (json!({ "lag": null }), "lag missing"),
        (json!({ "timeline": 2 }), "another timeline"),
        (json!({ "tags": { "nofailover": true } }), "tag"),
        (json!({ "tags": { "failover_priority": 0 } }), "priority"),
    ] {
        assert_eq!(candidate(&with(2, &changes), &json!({})), Ok("db-1".into()), "{why}");
    }
    assert_eq!(candidate(&three(), &json!({ "avoid_vms": ["_DB-2"] })), Ok("db-1".into()));
    assert_eq!(candidate(&three(), &json!({ "event_resources": ["db-0", "db-2"] })), Ok("db-1".into()));
    assert_eq!(candidate(&with(1, &json!({ "role": "sync_standby" })), &json!({})), Ok("db-1".into()));
}

#[test]
fn without_a_candidate_nothing_is_switched_and_each_objection_is_told() {
    let Err(Ended::Blocked(why)) =
        candidate(&with(1, &json!({ "state": "stopped" })), &json!({ "avoid_vms": ["db-2"] }))
    else {
        panic!("it is blocked")
    };
    let expected = "no standby to switch over to: db-1 is not streaming but \"stopped\", db-2 is on a VM to avoid";
    assert_eq!(why, expected);
}

#[test]
fn without_a_leader_it_is_tried_again() {
    for changes in [json!({ "role": "replica" }), json!({ "state": "stopping" })] {
        assert!(matches!(candidate(&with(0, &changes), &json!({})), Err(Ended::Blocked(_))), "{changes}");
    }
}

#[test]
fn where_the_leader_stays_there_is_nothing_to_do() {
    let on_db_1 = json!({ "vm": "db-1", "event_resources": ["db-1"] });
    assert_eq!(candidate(&three(), &on_db_1), Err(Ended::NotApplicable));
    // Another one that the event takes holds it: the switch is made for the group.
    let both = json!({ "vm": "db-1", "event_resources": ["db-0", "db-1"], "avoid_vms": ["db-0", "db-1"] });
    assert_eq!(candidate(&three(), &both), Ok("db-2".into()));
}

#[test]
fn members_that_are_not_named_as_their_vms_are_are_not_trusted() {
    let elsewhere = json!({ "vm": "orders-vm-0", "event_resources": ["orders-vm-0"] });
    assert!(matches!(candidate(&three(), &elsewhere), Err(Ended::Failed(_))));
}

#[test]
fn it_is_done_when_the_leader_is_elsewhere() {
    let moved = |cluster: &Value| read(cluster).has_moved(&facts(&json!({})));
    assert_eq!(moved(&three()), Ended::NotDone);
    let mut elsewhere = with(0, &json!({ "role": "replica", "state": "streaming", "lag": 0 }));
    assert!(matches!(moved(&elsewhere), Ended::Blocked(_)));
    elsewhere["members"][1]["role"] = json!("leader");
    elsewhere["members"][1]["state"] = json!("running");
    assert_eq!(moved(&elsewhere), Ended::Done);
    let after = |facts: &Facts| read(&elsewhere).moved_from("db-0", facts);
    assert_eq!(after(&facts(&json!({}))), Some(Ended::Done));
    assert!(matches!(after(&facts(&json!({ "event_resources": ["db-0", "db-1"] }))), Some(Ended::Failed(_))));
    assert_eq!(read(&three()).moved_from("db-0", &facts(&json!({}))), None);
}

#[test]
fn a_member_has_rejoined_when_it_streams_on_the_leaders_timeline() {
    let rejoined = |cluster: &Value| read(cluster).rejoined(&facts(&json!({ "vm": "db-1" })));
    assert_eq!(rejoined(&three()), Ok(()));
    assert_eq!(rejoined(&with(1, &json!({ "timeline": 2 }))), Err("db-1 is not on the leader's timeline".into()));
    assert!(rejoined(&with(1, &json!({ "state": "running" }))).is_err());
    assert!(rejoined(&with(1, &json!({ "lag": 1 << 30 }))).is_err());
    assert_eq!(read(&three()).rejoined(&facts(&json!({}))), Ok(()), "the leader is whole");
    assert!(read(&three()).rejoined(&facts(&json!({ "vm": "db-7" }))).is_err());
}

#[test]
fn answers_that_are_no_cluster_are_refused() {
    for body in ["", "[]", "{}", r#"{"members": [{}]}"#, r#"{"members": 1}"#] {
        assert!(Cluster::read(body).is_err(), "{body}");
    }
    let many: Vec<_> = (0..=MAX_MEMBERS).map(|number| json!({ "name": number.to_string() })).collect();
    assert!(Cluster::read(&json!({ "members": many }).to_string()).is_err());
}
