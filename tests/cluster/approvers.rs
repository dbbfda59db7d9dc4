//! An approver that is killed or frozen before, during or after its post: another replica takes over, and the platform
//! receives at most one more post. The duration is printed; `ALLCLEAR_TIMED=1` also checks the duration, on an
//! unloaded machine.

use std::time::{Duration, Instant};

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::json;

use super::cluster::Cluster;
use super::workload::hook;

/// The limit in the specification, with a claim lease of 5 s.
const REPLACED_WITHIN: Duration = Duration::from_secs(8);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Blow {
    Kill,
    Freeze,
}

/// The progress of the post at the time of the kill or freeze.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The approver fetches a fresh document.
    Before,
    /// The platform has received the post, and the post has no effect.
    During,
    /// The platform has accepted the post, and no replica knows.
    After,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Approver {
    Leader,
    /// Because the leader's documents lack the event.
    Follower,
    /// Because the leader's channel is stalled.
    FollowerOfABlindLeader,
}

impl Moment {
    /// The fault of the approver's endpoint from the claim on, long enough for the kill or freeze meanwhile.
    fn fault(self, vm: &str) -> serde_json::Value {
        let slow = json!({ "kind": "slow", "ms": 4000 });
        match self {
            Self::Before => json!({ "vm": vm, "on": "get", "fault": slow }),
            Self::During => json!({ "vm": vm, "on": "post", "times": 1, "fault": { "kind": "hang" } }),
            Self::After => json!({ "vm": vm, "on": "post", "times": 1, "fault": slow }),
        }
    }

    async fn has_come(self, cluster: &Cluster, asked: usize, id: &str, approver: &str) {
        match self {
            Self::Before => takes_its_document(cluster, asked, id, approver).await,
            Self::During | Self::After => {
                cluster.until_true("its post", async || cluster.cloud.posts().await.len() == 1).await;
            }
        }
    }
}

/// Waits until the first approver of an event requests the document that precedes confirmation and post. The
/// approver's endpoint must be slow.
pub(crate) async fn takes_its_document(cluster: &Cluster, asked: usize, id: &str, approver: &str) {
    let claimed = |event: &Event| event.approvals.first().is_some_and(|claim| claim.approver == approver);
    let event = cluster.until_event(asked, id, "claimed by the one that is meant", claimed).await;
    let since = &event.approvals[0].claimed_at;
    cluster.until_true("its fresh document", async || cluster.cloud.is_polled(approver, since).await).await;
}

/// Kills or freezes the approver of an event, and waits until the event is over and the approver is back.
async fn strike(blow: Blow, moment: Moment, approver: Approver) {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"])
        .workload("database", vec![hook("drain").waits_for("gate"), hook("restore")])
        .also("metadata.stall_after", if approver == Approver::FollowerOfABlindLeader { "6s" } else { "15s" });
    let mut cluster = plan.start().await;
    let leader = cluster.leader(0).await;
    let (affected, other) = ((leader + 1) % 3, (leader + 2) % 3);
    let (struck, seen_by) = match approver {
        Approver::Leader => (leader, vec![0, 1, 2]),
        Approver::Follower | Approver::FollowerOfABlindLeader => (other, vec![affected, other]),
    };
    if approver == Approver::FollowerOfABlindLeader {
        let empty = json!({ "vm": format!("db-{leader}"), "on": "get", "fault": { "kind": "empty" } });
        cluster.cloud.fault(empty).await;
        let is_blind = |status: &Status| status.replicas[leader].metadata == "stalled";
        cluster.until(affected, "told that the leader is blind", is_blind).await;
    }
    // The event stays Scheduled, so that nothing would stop a further post.
    let order = json!({ "type": "Reboot", "vm": affected, "seen_by": seen_by, "start_delay": 600_000 });
    let id = cluster.cloud.announce(order).await;
    cluster.until_event(affected, &id, "seen", |event| event.seen_by.len() == seen_by.len()).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    let name = format!("db-{struck}");
    cluster.cloud.fault(moment.fault(&name)).await;
    cluster.hooks.open("gate");
    moment.has_come(&cluster, affected, &id, &name).await;
    match blow {
        Blow::Kill => cluster.kill(struck),
        Blow::Freeze => cluster.freeze(struck),
    }
    let began = Instant::now();
    let event = cluster.until_approved(affected, &id).await;
    let took = began.elapsed();
    println!("approved by another after {took:?}");
    let is_timed = std::env::var_os("ALLCLEAR_TIMED").is_some();
    assert!(!is_timed || took <= REPLACED_WITHIN, "approved by another only after {took:?}");
    assert_eq!(event.approvals[0].approver, name);
    assert_ne!(event.approvals.last().unwrap().approver, name);
    let posts = if moment == Moment::Before { 1 } else { 2 };
    assert_eq!(cluster.cloud.posts().await.len(), posts);

    cluster.cloud.clear_faults().await;
    match blow {
        Blow::Kill => cluster.start(struck),
        Blow::Freeze => cluster.thaw(struck),
    }
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    cluster.cloud.start(&id).await;
    cluster.until_stage(affected, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.outcome.as_deref(), Some("completed"));
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
    assert_eq!(cluster.cloud.posts().await.len(), posts, "it posted when it was back");
}

macro_rules! strikes {
    ($($name:ident: $blow:ident, $moment:ident, $approver:ident $(, $long:ident)?;)*) => {
        $(#[tokio::test]
        async fn $name() {
            $(crate::left_out::$long!();)?
            strike(Blow::$blow, Moment::$moment, Approver::$approver).await;
        })*
    };
}

strikes! {
    a_leader_that_is_killed_before_its_post_is_replaced: Kill, Before, Leader, long;
    a_leader_that_is_killed_during_its_post_is_replaced: Kill, During, Leader, long;
    a_leader_that_is_killed_after_its_post_is_replaced: Kill, After, Leader;
    a_leader_that_is_frozen_before_its_post_is_replaced: Freeze, Before, Leader, long;
    a_leader_that_is_frozen_during_its_post_is_replaced: Freeze, During, Leader, long;
    a_leader_that_is_frozen_after_its_post_is_replaced: Freeze, After, Leader, long;
    an_approver_that_does_not_lead_and_is_killed_before_its_post_is_replaced: Kill, Before, Follower, long;
    an_approver_that_does_not_lead_and_is_killed_during_its_post_is_replaced: Kill, During, Follower, long;
    an_approver_that_does_not_lead_and_is_killed_after_its_post_is_replaced: Kill, After, Follower, long;
    an_approver_that_does_not_lead_and_is_frozen_before_its_post_is_replaced: Freeze, Before, Follower, long;
    an_approver_that_does_not_lead_and_is_frozen_during_its_post_is_replaced: Freeze, During, Follower, long;
    an_approver_that_does_not_lead_and_is_frozen_after_its_post_is_replaced: Freeze, After, Follower, long;
    an_approver_that_is_killed_is_replaced_though_the_leader_is_blind: Kill, Before, FollowerOfABlindLeader, long;
    an_approver_that_is_frozen_is_replaced_though_the_leader_is_blind: Freeze, During, FollowerOfABlindLeader;
}
