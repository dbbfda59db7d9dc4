//! A primary that no failover moves: an operator is told before and after the commands with which it goes down.

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::json;

use super::cluster::Cluster;
use super::operators::{at_a_terminal, done, waits_for};
use super::workload::hook;

#[tokio::test(flavor = "multi_thread")]
async fn who_skips_the_failover_of_a_held_event_is_told_that_the_primary_goes_down() {
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("failover"), hook("restore")])
        .with_primary("db-0")
        .start()
        .await;
    done(&cluster, 1, &["pause", "--until", "1h", "--reason", "so that there is time to hold it"]);
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": 0, "notice": "14m" });
    let id = cluster.cloud.announce(order).await;
    let is_paused = |event: &Event| waits_for(event, "paused") && !event.primaries.is_empty();
    cluster.until_event(1, &id, "paused", is_paused).await;
    done(&cluster, 1, &["hold", &id, "--until", "1h", "--reason", "the standby is rebuilt"]);
    let out = done(&cluster, 1, &["resume", "--reason", "it is held"]);
    assert!(out.contains(&format!("is still held: {id} Reboot of db-0 by Platform: ")), "{out}");
    assert!(!out.contains("WARNING"), "its failover is still to run: {out}");

    let goes_down = "db-0 holds the primary of databases, which is NOT moved and goes down";
    let warning = format!("WARNING: {goes_down}\n");
    let out = done(&cluster, 1, &["skip", &id, "db-0/database/failover", "--reason", "no standby"]);
    assert!(out.starts_with("skipped db-0/database/failover: ") && out.ends_with(&warning), "{out}");
    let (_, explained, _) = cluster.says(1, &["explain", &id]);
    assert!(explained.contains(&format!("Azure may start it at once; {goes_down}\n")), "{explained}");
    let (code, said) = at_a_terminal(&cluster, 1, &format!("release {id} --reason go"), "n");
    assert!(code == Some(1) && said.contains(goes_down) && said.contains("nothing is changed"), "{said}");
    let event = cluster.event(1, &id).await.unwrap();
    assert!(event.hold.is_some() && event.approvals.is_empty(), "{event:#?}");

    done(&cluster, 1, &["pause", "--until", "1h", "--reason", "look at it once more"]);
    let out = done(&cluster, 1, &["release", &id, "--reason", "go"]);
    assert!(out.starts_with("released: ") && out.ends_with(&warning), "{out}");
    let (code, said) = at_a_terminal(&cluster, 1, "resume --reason go", "n");
    assert!(code == Some(1) && said.contains(goes_down) && said.contains("nothing is changed"), "{said}");
    let event = cluster.event(1, &id).await.unwrap();
    assert!(waits_for(&event, "paused") && event.approvals.is_empty(), "{event:#?}");

    done(&cluster, 1, &["resume", "--reason", "go"]);
    let event = cluster.until_stage(2, &id, "started").await;
    assert_eq!((event.approvals.len(), event.approvals[0].reason.as_str()), (1, "prepared"));
    assert_eq!(cluster.hooks.begun(), [""; 0], "{event:#?}");
}
