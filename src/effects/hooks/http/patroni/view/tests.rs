//! The rules on answers of Patroni, in all its versions.

use serde_json::{Value, json};

use super::*;

mod recorded;

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

/// The cluster of three with changed fields of one member.
fn with(place: usize, changes: &Value) -> Value {
    let mut cluster = three();
    cluster["members"][place].as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
    cluster
}

/// The view without statuses of the members.
fn read(cluster: &Value) -> PatroniView {
    PatroniView { cluster: PatroniCluster::read(&cluster.to_string()).unwrap(), leader: None, others: BTreeMap::new() }
}

fn same_names() -> MemberVms {
    MemberVms::default()
}

fn candidates(view: &PatroniView, changes: &Value, names: &MemberVms) -> Result<Vec<String>, HookOutcome> {
    view.plan(&facts(changes), names).map(|plan| plan.candidates)
}

fn candidate(cluster: &Value, changes: &Value) -> Result<String, HookOutcome> {
    candidates(&read(cluster), changes, &same_names()).map(|candidates| candidates[0].clone())
}

#[test]
fn the_leader_is_asked_to_hand_over_to_the_one_that_is_preferred() {
    let expected = Switchover {
        leader: "db-0".into(),
        candidates: vec!["db-2".into(), "db-1".into()],
        unfit: Vec::new(),
        leaders_api: Some("http://10.0.0.4:8008/patroni".into()),
        started: None,
    };
    assert_eq!(read(&three()).plan(&facts(&json!({})), &same_names()), Ok(expected));
    assert_eq!(candidate(&three(), &json!({ "prefer_vms": ["db-1", "db-2"] })), Ok("db-1".into()));
    assert_eq!(candidate(&three(), &json!({ "prefer_vms": [] })), Ok("db-1".into()), "the one that lags least");
}

#[test]
fn nobody_is_taken_who_should_not() {
    for (changes, why) in [
        (json!({ "state": "starting" }), "not streaming"),
        (json!({ "state": "start failed" }), "not streaming"),
        (json!({ "state": "creating replica" }), "not streaming"),
        (json!({ "state": "in archive recovery" }), "the last of the leader's WAL may not be archived"),
        (json!({ "lag": 2_000_000 }), "lags"),
        (json!({ "lag": "unknown" }), "lag unknown"),
        (json!({ "lag": null }), "lag missing"),
        (json!({ "timeline": 2 }), "another timeline"),
        (json!({ "tags": { "nofailover": true } }), "tag"),
        (json!({ "tags": { "nofailover": "true" } }), "tag"),
        (json!({ "tags": { "nofailover": "on" } }), "tag"),
        (json!({ "tags": { "nofailover": "yes" } }), "tag"),
        (json!({ "tags": { "nofailover": 1 } }), "tag"),
        (json!({ "tags": { "nofailover": "false" } }), "a text that is not empty is true to Patroni"),
        (json!({ "tags": { "failover_priority": 0 } }), "priority"),
        (json!({ "tags": { "failover_priority": "0" } }), "priority"),
        (json!({ "tags": { "failover_priority": -1 } }), "priority"),
    ] {
        assert_eq!(candidate(&with(2, &changes), &json!({})), Ok("db-1".into()), "{why}");
    }
    assert_eq!(candidate(&three(), &json!({ "avoid_vms": ["_DB-2"] })), Ok("db-1".into()));
    assert_eq!(candidate(&three(), &json!({ "event_resources": ["db-0", "db-2"] })), Ok("db-1".into()));
    assert_eq!(candidate(&with(1, &json!({ "role": "sync_standby" })), &json!({})), Ok("db-1".into()));
}

#[test]
fn without_a_candidate_nothing_is_switched_and_each_objection_is_told() {
    let stopped = with(1, &json!({ "state": "stopped" }));
    let Err(HookOutcome::Blocked(why)) = candidate(&stopped, &json!({ "avoid_vms": ["db-2"] })) else {
        panic!("it is blocked")
    };
    let expected = "no standby for a switchover: db-1 is not streaming, but in the state \"stopped\", db-2 is on a VM \
                    to avoid";
    assert_eq!(why, expected);
}

/// `nofailover` counts before `failover_priority`, and other tags do not affect leading.
#[test]
fn tags_that_are_not_true_keep_nobody_out() {
    for tags in [
        json!({ "nofailover": false }),
        json!({ "nofailover": 0 }),
        json!({ "nofailover": "" }),
        json!({ "nofailover": null }),
        json!({ "nofailover": false, "failover_priority": 0 }),
        json!({ "failover_priority": 2 }),
        json!({ "nosync": "true", "noloadbalance": 1, "clonefrom": true }),
    ] {
        assert_eq!(candidate(&with(2, &json!({ "tags": tags })), &json!({})), Ok("db-2".into()), "{tags}");
    }
}

#[test]
fn without_a_leader_it_is_tried_again() {
    for changes in [json!({ "role": "replica" }), json!({ "state": "stopping" })] {
        assert!(matches!(candidate(&with(0, &changes), &json!({})), Err(HookOutcome::Blocked(_))), "{changes}");
    }
}

#[test]
fn where_the_leader_stays_there_is_nothing_to_do() {
    let on_db_1 = json!({ "vm": "db-1", "event_resources": ["db-1"] });
    assert_eq!(candidate(&three(), &on_db_1), Err(HookOutcome::NotApplicable));
    // Another affected VM holds the leader: the switchover is made for the group.
    let both = json!({ "vm": "db-1", "event_resources": ["db-0", "db-1"], "avoid_vms": ["db-0", "db-1"] });
    assert_eq!(candidate(&three(), &both), Ok("db-2".into()));
}

#[test]
fn members_that_are_not_named_as_their_vms_are_not_trusted() {
    let elsewhere = json!({ "vm": "orders-vm-0", "event_resources": ["orders-vm-0"] });
    assert!(matches!(candidate(&three(), &elsewhere), Err(HookOutcome::Failed(_))));
}

#[test]
fn members_are_found_by_the_vms_that_the_configuration_names() {
    let names = |pairs: &[(&str, &str)]| {
        let pairs: Vec<_> = pairs.iter().map(|(member, vm)| ((*member).to_owned(), (*vm).to_owned())).collect();
        MemberVms::new(&pairs)
    };
    let vms =
        json!({ "vm": "vm-a", "event_resources": ["_VM-A"], "avoid_vms": ["vm-a", "vm-c"], "prefer_vms": ["vm-b"] });
    let all = names(&[("DB-0", "vm-a"), ("db-1", "VM-B"), ("db-2", "vm-c")]);
    assert_eq!(candidates(&read(&three()), &vms, &all), Ok(vec!["db-1".to_owned()]));
    assert_eq!(read(&three()).rejoined(&facts(&json!({ "vm": "vm-c" })), &all, None), Ok(()));
    // A missing member may be on the next VM of the event.
    let less = names(&[("db-0", "vm-a"), ("db-1", "vm-b")]);
    let plan = read(&three()).plan(&facts(&vms), &less).unwrap();
    assert_eq!(plan.candidates, ["db-1"]);
    assert!(plan.unfit[0].starts_with("db-2 is not in `members`"), "{:?}", plan.unfit);
    let no_leader = names(&[("db-1", "vm-a"), ("db-2", "vm-c")]);
    assert!(matches!(candidates(&read(&three()), &vms, &no_leader), Err(HookOutcome::Failed(_))));
}

#[test]
fn it_is_done_when_the_leader_is_elsewhere() {
    let moved = |cluster: &Value| read(cluster).has_moved(&facts(&json!({})), &same_names());
    assert_eq!(moved(&three()), HookOutcome::NotDone);
    let mut elsewhere = with(0, &json!({ "role": "replica", "state": "streaming", "lag": 0 }));
    assert!(matches!(moved(&elsewhere), HookOutcome::Blocked(_)));
    elsewhere["members"][1]["role"] = json!("leader");
    elsewhere["members"][1]["state"] = json!("running");
    assert_eq!(moved(&elsewhere), HookOutcome::Done);
    let after = |facts: &Facts| read(&elsewhere).moved_from("db-0", facts, &same_names());
    assert_eq!(after(&facts(&json!({}))), Some(HookOutcome::Done));
    assert!(matches!(after(&facts(&json!({ "event_resources": ["db-0", "db-1"] }))), Some(HookOutcome::Failed(_))));
    assert_eq!(read(&three()).moved_from("db-0", &facts(&json!({})), &same_names()), None);
}

fn rejoined(view: &PatroniView, target: Option<u64>) -> Result<(), String> {
    view.rejoined(&facts(&json!({ "vm": "db-1" })), &same_names(), target)
}

#[test]
fn a_member_has_rejoined_when_it_streams_on_the_leaders_timeline() {
    assert_eq!(rejoined(&read(&three()), None), Ok(()));
    let older = read(&with(1, &json!({ "timeline": 2 })));
    assert_eq!(rejoined(&older, None), Err("db-1 is not on the leader's timeline".into()));
    assert!(rejoined(&read(&with(1, &json!({ "state": "starting" }))), None).is_err());
    assert!(rejoined(&read(&with(1, &json!({ "lag": 1 << 30 }))), None).is_err());
    let whole = read(&three());
    assert_eq!(whole.rejoined(&facts(&json!({})), &same_names(), None), Ok(()), "the leader is whole");
    assert!(whole.rejoined(&facts(&json!({ "vm": "db-7" })), &same_names(), None).is_err());
}

/// An archive lags by a segment of WAL, which keeps a member from leading and not from having rejoined.
#[test]
fn a_member_that_never_leads_may_live_on_the_archive() {
    let archive = |tags: &Value| {
        let changes = json!({ "state": "in archive recovery", "lag": 20_000_000, "tags": tags });
        rejoined(&read(&with(1, &changes)), Some(u64::MAX))
    };
    assert_eq!(archive(&json!({ "nofailover": true, "nostream": true })), Ok(()));
    assert_eq!(archive(&json!({})), Err("db-1 is not streaming, but in the state \"in archive recovery\"".into()));
}

/// `/cluster` is as old as Patroni's last loop, so a lag of zero may be outdated.
#[test]
fn a_member_has_rejoined_when_all_that_the_leader_had_written_has_arrived() {
    let mut view = read(&three());
    for (received, is_back) in [(699, false), (700, true), (701, true)] {
        let word = json!({ "role": "replica", "xlog": { "received_location": received, "replayed_location": 600 } });
        view.others.insert("db-1".into(), PatroniStatus::read(&word.to_string()).unwrap());
        assert_eq!(rejoined(&view, Some(700)).is_ok(), is_back, "{received}");
    }
}

/// A running member streams if the leader says so, and the members know a lag that is missing in `/cluster`.
#[test]
fn what_the_cluster_leaves_open_members_say_themselves() {
    let leader = |replication: &Value| {
        let said = json!({ "role": "master", "timeline": 3, "xlog": { "location": 5000 }, "replication": replication });
        Some(PatroniStatus::read(&said.to_string()).unwrap())
    };
    let sender = |name: &str, state: &str| json!({ "application_name": name, "state": state });
    let running = with(1, &json!({ "state": "running" }));
    for (replication, expected) in [
        (json!([sender("db-1", "streaming"), sender("db-2", "streaming")]), Ok(())),
        (json!([sender("DB-1", "streaming")]), Ok(())),
        (json!([sender("db-1", "catchup")]), Err("db-1 is running, and does not stream from the leader".to_owned())),
        (Value::Null, Err("db-1 is running, and does not stream from the leader".to_owned())),
    ] {
        let view = PatroniView { leader: leader(&replication), ..read(&running) };
        assert_eq!(rejoined(&view, None), expected, "{replication}");
    }
    assert_eq!(rejoined(&read(&running), None), Ok(()), "a leader that says nothing denies nothing");
    let cascading = with(1, &json!({ "state": "running", "tags": { "replicatefrom": "db-2" } }));
    assert_eq!(rejoined(&PatroniView { leader: leader(&Value::Null), ..read(&cascading) }, None), Ok(()));

    for lag in [json!("unknown"), Value::Null] {
        let mut view =
            PatroniView { leader: leader(&Value::Null), ..read(&with(1, &json!({ "lag": lag, "timeline": null }))) };
        assert_eq!(view.doubtful().iter().map(|member| &*member.name).collect::<Vec<_>>(), ["db-1"]);
        assert!(rejoined(&view, None).is_err());
        let word = json!({ "role": "replica", "timeline": 3, "xlog": { "received_location": 4000 } });
        view.others.insert("db-1".into(), PatroniStatus::read(&word.to_string()).unwrap());
        assert_eq!(rejoined(&view, None), Ok(()));
    }
}

#[test]
fn a_standby_cluster_has_a_leader_to_switch_over_as_well() {
    for state in ["running", "streaming", "in archive recovery"] {
        let mut cluster = with(0, &json!({ "role": "standby_leader", "state": state }));
        assert_eq!(candidate(&cluster, &json!({})), Ok("db-2".into()), "{state}");
        cluster["members"][2]["state"] = json!("in archive recovery");
        assert_eq!(candidate(&cluster, &json!({})), Ok("db-2".into()), "{state}");
        cluster["members"][0]["timeline"] = Value::Null;
        assert_eq!(candidate(&cluster, &json!({})), Ok("db-2".into()), "{state}");
    }
}

/// Up to 3.3.0 `/cluster` calls a member of a standby cluster synchronous if the store says so from a time before the
/// standby cluster: Patroni itself then accepts any other member as well.
#[test]
fn nobody_is_synchronous_in_a_standby_cluster() {
    let mut cluster = with(0, &json!({ "role": "standby_leader", "state": "streaming" }));
    cluster["members"][1]["role"] = json!("sync_standby");
    assert_eq!(candidate(&cluster, &json!({})), Ok("db-2".into()));
}

#[test]
fn answers_that_are_no_cluster_are_refused() {
    for body in ["", "[]", "{}", r#"{"members": [{}]}"#, r#"{"members": 1}"#] {
        assert!(PatroniCluster::read(body).is_err(), "{body}");
    }
    let many: Vec<_> = (0..=100).map(|number| json!({ "name": number.to_string() })).collect();
    assert!(PatroniCluster::read(&json!({ "members": many }).to_string()).is_err());
}
