//! Documents that change, differ and lack earlier content: no VM goes unprepared, nothing is posted for undecided
//! content, and nothing is restored while an event may go on.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::{Value, json};

use super::cluster::{Cluster, Plan};
use super::workload::{Hook, hook};

const THREE: [&str; 3] = ["db-0", "db-1", "db-2"];

/// An event that starts an hour after its approval.
fn redeploy(vms: &[usize]) -> Value {
    json!({ "type": "Redeploy", "source": "Platform", "vms": vms, "notice": "10m", "start_delay": "1h" })
}

fn hooks() -> Vec<Hook> {
    ["drain", "restore"].map(hook).into()
}

/// Three members of which two may be out.
fn three(hooks: Vec<Hook>) -> Plan {
    Cluster::of(&THREE).workload("database", hooks).may_lose(2, "database")
}

async fn shows(cluster: &Cluster, vm: &str, event: &str, fields: Value) {
    cluster.cloud.fault(json!({ "vm": vm, "fault": { "kind": "shows", "event": event, "fields": fields } })).await;
}

/// The VMs with a completed hook of this phase.
fn done<'a>(event: &'a Event, phase: &str) -> Vec<&'a str> {
    let of_phase = |hook: &&_| is_done(hook, phase);
    let mut vms: Vec<&str> = event.hooks.iter().filter(of_phase).map(|hook| hook.vm.as_str()).collect();
    vms.sort_unstable();
    vms
}

fn is_done(hook: &allclear::wire::pb::allclear::operator::v1::Hook, phase: &str) -> bool {
    hook.phase == phase && hook.outcome.as_deref() == Some("done")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_endpoint_says_of_another_vm_and_with_other_letters_is_one_event_that_is_prepared_whole() {
    let cluster = three(hooks()).start().await;
    let (code, _, said) = cluster.says(0, &["pause", "--until", "1h", "--reason", "a look at it"]);
    assert_eq!(code, 0, "{said}");
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    shows(&cluster, "db-2", &id, json!({ "EventId": id, "Resources": ["db-1"], "EventType": "Freeze" })).await;
    let names_both = |event: &Event| event.resources.len() == 2 && event.r#type == "Redeploy";
    cluster.until_event(1, &id, "known with both of its VMs", names_both).await;
    let (code, _, said) = cluster.says(0, &["resume", "--reason", "seen"]);
    assert_eq!(code, 0, "{said}");
    let event = cluster.until_stage(0, &id, "approved").await;
    assert_eq!(done(&event, "drain"), ["db-0", "db-1"], "{event:#?}");
    assert_eq!(cluster.status(0).await.unwrap().events.len(), 1);
    let posts = cluster.cloud.posts().await;
    assert_eq!(posts.len(), 1, "{posts:?}");
    // The id has the letter case of the endpoint of the posting VM.
    let shown = if posts[0]["vm"] == "db-2" { id } else { id.to_uppercase() };
    assert!(posts[0]["body"].as_str().unwrap().contains(&shown), "{posts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_that_is_named_while_others_are_prepared_is_prepared_too() {
    let slow = vec![hook("drain").waits_for("gate"), hook("restore")];
    let cluster = three(slow).start().await;
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    cluster.until_true("the first drain", async || cluster.hooks.begun().contains(&"drain".to_owned())).await;
    shows(&cluster, "db-1", &id, json!({ "Resources": ["DB-0", "db-1"] })).await;
    let both = async || cluster.hooks.begun().iter().filter(|phase| *phase == "drain").count() == 2;
    cluster.until_true("the second drain", both).await;
    assert!(cluster.cloud.posts().await.is_empty());
    cluster.hooks.open("gate");
    let event = cluster.until_stage(0, &id, "approved").await;
    assert_eq!(done(&event, "drain"), ["db-0", "db-1"], "{event:#?}");
}

/// An event with a refused approval can be held, grows, and is approved with its new content.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_approval_is_made_anew_for_what_the_event_has_become() {
    let cluster = three(hooks()).start().await;
    cluster.cloud.fault(json!({ "on": "post", "fault": { "kind": "status", "status": 429 } })).await;
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    let was_refused = |event: &Event| event.approvals.iter().any(|it| it.outcome.as_deref() == Some("refused"));
    cluster.until_event(0, &id, "refused", was_refused).await;
    let hold = async || cluster.says(0, &["hold", &id, "--until", "1h", "--reason", "it grows"]).0 == 0;
    cluster.until_true("held", hold).await;
    cluster.cloud.clear_faults().await;
    for vm in THREE {
        shows(&cluster, vm, &id, json!({ "Resources": ["db-0", "db-2"] })).await;
    }
    cluster.until_event(0, &id, "known with both of its VMs", |event| event.resources.len() == 2).await;
    assert!(cluster.cloud.approvals(&id).iter().all(|post| !post.took_effect));
    let (code, _, said) = cluster.says(0, &["release", &id, "--reason", "go"]);
    assert_eq!(code, 0, "{said}");
    let event = cluster.until_stage(0, &id, "approved").await;
    assert_eq!(done(&event, "drain"), ["db-0", "db-2"], "{event:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_event_that_grows_is_prepared_and_not_posted_again() {
    let cluster = three(hooks()).start().await;
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    cluster.until_stage(0, &id, "approved").await;
    shows(&cluster, "db-1", &id, json!({ "Resources": ["db-0", "db-1"] })).await;
    let event = cluster.until_event(0, &id, "prepared", |event| done(event, "drain").len() == 2).await;
    assert_eq!(event.stage, "approved");
    assert_eq!(cluster.cloud.approvals(&id).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approved_event_that_was_taken_for_gone_is_prepared_again_when_it_returns() {
    let cluster = three(hooks()).start().await;
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    cluster.until_stage(0, &id, "approved").await;
    cluster.cloud.fault(json!({ "fault": { "kind": "lacks", "event": id } })).await;
    cluster.closed_everywhere(&id).await;
    cluster.cloud.clear_faults().await;
    let is_prepared = |event: &Event| event.stage == "approved" && done(event, "drain").len() == 2;
    let event = cluster.until_event(0, &id, "prepared again", is_prepared).await;
    assert_eq!(done(&event, "restore"), ["db-0"], "{event:#?}");
    assert_eq!(cluster.cloud.approvals(&id).len(), 1);
    cluster.cloud.start(&id).await;
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    let event = cluster.closed_everywhere(&id).await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_has_not_started_after_all_is_prepared_and_approved() {
    let cluster = three(hooks()).start().await;
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    for vm in THREE {
        shows(&cluster, vm, &id, json!({ "EventStatus": "Started", "NotBefore": "" })).await;
    }
    let has_started = |event: &Event| event.stage == "started";
    cluster.until_event(0, &id, "started", has_started).await;
    cluster.cloud.clear_faults().await;
    let event = cluster.until_stage(0, &id, "approved").await;
    assert_eq!(done(&event, "drain"), ["db-0"], "{event:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_element_that_cannot_be_read_is_no_end_of_its_event_and_no_obstacle_for_others() {
    let slow = vec![hook("drain").waits_for("gate"), hook("restore")];
    let cluster = three(slow).start().await;
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    cluster.until_true("the drain", async || cluster.hooks.begun().contains(&"drain".to_owned())).await;
    let unreadable = json!({ "kind": "shows", "event": id, "fields": { "Resources": 7 } });
    cluster.cloud.fault(json!({ "fault": unreadable })).await;
    cluster.a_few_polls_later().await;
    cluster.hooks.open("gate");
    let other = cluster.cloud.announce(redeploy(&[1])).await;
    cluster.until_stage(0, &other, "approved").await;
    let event = cluster.event(0, &id).await.unwrap();
    assert_eq!((event.stage.as_str(), event.resources.len()), ("preparing", 1), "{event:#?}");
    assert!(cluster.cloud.approvals(&id).is_empty());
    cluster.cloud.clear_faults().await;
    cluster.until_stage(0, &id, "approved").await;
}

/// An approval that another endpoint answers takes its time: it is posted once all the same.
async fn answers_after(ms: u64) {
    let cluster = Cluster::of(&THREE).also("metadata.poll_interval", "1s").start().await;
    cluster.cloud.fault(json!({ "on": "get", "fault": { "kind": "slow", "ms": ms } })).await;
    // Every endpoint is already in the middle of a slow answer.
    cluster.a_few_polls_later().await;
    let announced = std::time::Instant::now();
    let id = cluster.cloud.announce(redeploy(&[0])).await;
    let is_posted = async || !cluster.cloud.approvals(&id).is_empty();
    let patience = Duration::from_millis(ms * 10 + 20_000);
    tokio::time::timeout(patience, cluster.until_true("posted", is_posted)).await.unwrap();
    println!("with answers after {ms} ms the approval came after {:?}", announced.elapsed());
    assert_eq!(cluster.cloud.approvals(&id).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_answers_after_a_second_is_no_dead_one() {
    answers_after(1_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_answers_after_six_seconds_is_no_dead_one() {
    crate::left_out::long!();
    answers_after(6_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_answers_after_four_seconds_is_no_dead_one() {
    crate::left_out::long!();
    answers_after(4_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_answers_after_nine_seconds_is_no_dead_one() {
    crate::left_out::long!();
    answers_after(9_000).await;
}

/// Approvals that are due at the same time poll together and do not defer each other.
#[tokio::test(flavor = "multi_thread")]
async fn approvals_that_are_due_together_are_posted_together() {
    // A new leader, or the end of a claim, may repeat a post whose outcome is not known.
    let cluster = Cluster::of(&THREE).keeps_its_leader().also("cluster.claim_lease", "1m").start().await;
    let (code, _, said) = cluster.says(0, &["pause", "--until", "1h", "--reason", "all at once"]);
    assert_eq!(code, 0, "{said}");
    let mut ids = Vec::new();
    for number in 0..32 {
        ids.push(cluster.cloud.announce(redeploy(&[number % 3])).await);
    }
    for id in &ids {
        cluster.seen_by_all(id).await;
    }
    let (code, _, said) = cluster.says(0, &["resume", "--reason", "go"]);
    assert_eq!(code, 0, "{said}");
    for id in &ids {
        cluster.until_approved(0, id).await;
    }
    let posts = cluster.cloud.posts().await;
    let at = |post: &Value| post["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let (first, last) = (posts.iter().map(at).min().unwrap(), posts.iter().map(at).max().unwrap());
    println!("from the first of {} posts to the last it took {} ms", posts.len(), last - first);
    assert_eq!(posts.len(), ids.len(), "each once");
}
