//! The rules on recorded answers of real clusters of several versions, from `recorded/`.

use serde_json::{Value, json};

use super::*;

/// The answers of a real cluster's members: without and with synchronous replication, paused, and as a standby cluster.
struct Recorded {
    version: &'static str,
    answers: Value,
}

fn recorded() -> Vec<Recorded> {
    [
        ("2.1.7", include_str!("../../recorded/2.1.7.json")),
        ("3.0.2", include_str!("../../recorded/3.0.2.json")),
        ("4.1.5", include_str!("../../recorded/4.1.5.json")),
    ]
    .map(|(version, text)| Recorded { version, answers: serde_json::from_str(text).unwrap() })
    .into()
}

/// Of pg-0 to pg-2 the last is tagged `nofailover: "true"`, so pg-0 and pg-1 hand over to each other.
#[test]
fn answers_of_every_version_are_understood() {
    let names = MemberVms::new(&["0", "1", "2"].map(|number| (format!("pg-{number}"), format!("db-{number}"))));
    for Recorded { version, answers } in recorded() {
        for kind in ["plain", "synchronous", "quorum_paused", "standby"] {
            let said = &answers[kind];
            let leader = PatroniStatus::read(&said["leader"].to_string()).unwrap();
            assert!(leader.is_leader() && leader.started.is_some(), "{version} {kind}");
            assert_eq!(leader.version.as_deref(), Some(version));
            let view = PatroniView { leader: Some(leader), ..read(&said["cluster"]) };
            let (from, to) = match view.cluster.leader().unwrap().name.as_str() {
                "pg-0" => ("db-0", "pg-1"),
                _ => ("db-1", "pg-0"),
            };
            let event = json!({ "vm": from, "event_resources": [from], "avoid_vms": [from] });
            assert_eq!(candidates(&view, &event, &names), Ok(vec![to.to_owned()]), "{version} {kind}");
            for vm in ["db-0", "db-1", "db-2"] {
                assert_eq!(view.rejoined(&facts(&json!({ "vm": vm })), &names, None), Ok(()), "{version} {kind} {vm}");
            }
            let replica = PatroniStatus::read(&said["replica"].to_string()).unwrap();
            assert!(!replica.is_leader() && replica.position >= Some(1), "{version} {kind}");
        }
    }
}
