//! A replica that is frozen for a while, as by a hypervisor that preserves memory, and then continues as if nothing
//! had happened.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::approvers::takes_its_document;
use super::cluster::Cluster;
use super::workload::hook;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Idle,
    HooksRun,
    BeforePost,
    AfterPost,
}

/// The terms in which a replica led with a quorum, of all runs of all replicas.
fn terms_led(cluster: &Cluster) -> BTreeSet<String> {
    let logs: Vec<String> = (0..3).map(|place| cluster.log(place)).collect();
    let lines = logs.iter().flat_map(|log| log.lines());
    let leads = lines.filter(|line| line.contains("role=Leader") && line.contains("quorum=true"));
    leads.map(|line| line.split("term=").nth(1).unwrap().split(' ').next().unwrap().to_owned()).collect()
}

/// Freezes the leader for `span`, and waits until an open event is over.
async fn freeze_the_leader(moment: Moment, span: Duration) {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let order = json!({ "type": "Reboot", "vm": affected });
    let mut id = None;
    if moment != Moment::Idle {
        let announced = cluster.cloud.announce(order.clone()).await;
        cluster.seen_by_all(&announced).await;
        cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
        id = Some(announced);
    }
    let vm = format!("db-{leader}");
    let slow = json!({ "kind": "slow", "ms": 1500 });
    match moment {
        Moment::Idle | Moment::HooksRun => {}
        Moment::BeforePost => {
            cluster.cloud.fault(json!({ "vm": vm, "on": "get", "fault": slow })).await;
            cluster.hooks.open("gate");
            takes_its_document(&cluster, other, id.as_ref().unwrap(), &vm).await;
        }
        Moment::AfterPost => {
            cluster.cloud.fault(json!({ "vm": vm, "on": "post", "fault": slow })).await;
            cluster.hooks.open("gate");
            cluster.until_true("its post", async || cluster.cloud.posts().await.len() == 1).await;
        }
    }
    let before = terms_led(&cluster);
    cluster.freeze(leader);
    cluster.hooks.open("gate");
    sleep(span).await;
    cluster.thaw(leader);
    cluster.ready().await;
    cluster.cloud.clear_faults().await;
    let id = match id {
        Some(id) => id,
        None => cluster.cloud.announce(order).await,
    };
    cluster.until_stage(other, &id, "started").await;
    cluster.a_few_polls_later().await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    let after = terms_led(&cluster);
    assert!(after.len() <= before.len() + 1, "led in the terms {before:?} before, {after:?} in all");
}

macro_rules! freezes {
    ($($(#[$attribute:meta])* $name:ident: $moment:ident, $seconds:literal $(, $long:ident)?;)*) => {
        $(#[tokio::test]
        $(#[$attribute])*
        async fn $name() {
            $(crate::left_out::$long!();)?
            freeze_the_leader(Moment::$moment, Duration::from_secs($seconds)).await;
        })*
    };
}

freezes! {
    a_leader_that_was_idle_when_it_froze_for_a_second_does_no_harm: Idle, 1;
    a_leader_that_froze_for_a_second_while_hooks_ran_does_no_harm: HooksRun, 1;
    a_leader_that_froze_for_a_second_before_its_post_does_no_harm: BeforePost, 1;
    a_leader_that_froze_for_a_second_after_its_post_does_no_harm: AfterPost, 1;
    a_leader_that_froze_for_5_s_before_its_post_does_no_harm: BeforePost, 5;
    a_leader_that_froze_for_5_s_after_its_post_does_no_harm: AfterPost, 5, long;
    a_leader_that_froze_for_12_s_while_hooks_ran_does_no_harm: HooksRun, 12, long;
    a_leader_that_froze_for_12_s_before_its_post_does_no_harm: BeforePost, 12, long;
    a_leader_that_froze_for_12_s_after_its_post_does_no_harm: AfterPost, 12, long;
    #[ignore = "takes over a minute"]
    a_leader_that_was_idle_when_it_froze_for_a_minute_does_no_harm: Idle, 60;
    #[ignore = "takes over a minute"]
    a_leader_that_froze_for_a_minute_while_hooks_ran_does_no_harm: HooksRun, 60;
    #[ignore = "takes over a minute"]
    a_leader_that_froze_for_a_minute_before_its_post_does_no_harm: BeforePost, 60;
    #[ignore = "takes over a minute"]
    a_leader_that_froze_for_a_minute_after_its_post_does_no_harm: AfterPost, 60;
}

#[tokio::test]
async fn a_follower_that_was_frozen_disturbs_nobody_when_it_wakes() {
    // An election timeout long enough for a loaded machine to cost no leader its followers, and yet over before the
    // silence is noticed.
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).also("cluster.election_timeout", "500ms").start().await;
    let leader = cluster.leader(0).await;
    let follower = (leader + 1) % 3;
    let term = cluster.status(leader).await.unwrap().term;
    cluster.freeze(follower);
    cluster.until(leader, "aware of the silence", |status| !status.replicas[follower].reachable).await;
    cluster.thaw(follower);
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    for place in 0..3 {
        assert_eq!(cluster.leader(place).await, leader, "as {place} sees it");
        assert_eq!(cluster.status(place).await.unwrap().term, term, "as {place} sees it");
    }
}
