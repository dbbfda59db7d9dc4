//! Members of a group and their slots, checked by the harm to a database: the times at which members were stopped.

use std::path::PathBuf;

use allclear::wire::pb::allclear::operator::v1::{Event, MemberState, Status};
use serde_json::{Value, json};

use super::cluster::{Cluster, Plan};
use super::workload::{Hook, hook};

/// A database that is a file while stopped. Each stop logs the number of databases stopped by then.
const SCRIPT: &str = r#"#!/bin/sh
stopped="$FOLDER/stopped-$ALLCLEAR_VM"
while [ -e "$FOLDER/hangs-$ALLCLEAR_VM" ]; do sleep 0.1; done
say() {
    echo "$ALLCLEAR_VM $ALLCLEAR_WORKLOAD $ALLCLEAR_PHASE $1 $ALLCLEAR_INTENT $ALLCLEAR_ATTEMPT" >> "$FOLDER/hooks.log"
}
[ -z "$ALLCLEAR_ATTEMPT" ] || say begin
case "$ALLCLEAR_PHASE" in
drain | shutdown)
    : > "$stopped"
    set -- "$FOLDER"/stopped-*
    say "stopped $#"
    while [ -n "$WAIT_FOR" ] && [ ! -e "$FOLDER/$WAIT_FOR" ]; do sleep 0.05; done
    ;;
restore)
    [ ! -e "$FOLDER/broken" ] || { echo "its disk is broken" >&2; exit 1; }
    rm -f "$stopped"
    ;;
ready)
    [ ! -e "$stopped" ] || { echo "it is stopped" >&2; exit 1; }
    ;;
esac
[ -z "$ALLCLEAR_ATTEMPT" ] || say end
"#;

fn hooks() -> Vec<Hook> {
    ["drain", "shutdown", "restore", "ready"].map(hook).into()
}

pub(crate) fn members(vms: &[&'static str]) -> Plan {
    Cluster::of(vms).script(SCRIPT).workload("database", hooks())
}

pub(crate) const THREE: [&str; 3] = ["db-0", "db-1", "db-2"];

pub(crate) fn reboot(source: &str, vms: &[usize], notice: &str) -> Value {
    json!({ "type": "Redeploy", "source": source, "vms": vms, "notice": notice })
}

/// The largest number of databases stopped at once.
pub(crate) fn most_stopped(cluster: &Cluster) -> usize {
    let written = cluster.hooks.written();
    let counts = written.lines().filter_map(|line| line.split_once(" stopped ")?.1.split(' ').next()?.parse().ok());
    counts.max().unwrap_or(0)
}

/// Announces all events together and finishes each event after its start, until all are closed.
pub(crate) async fn play(cluster: &Cluster, orders: &[Value]) -> Vec<Event> {
    let mut ids = Vec::new();
    for order in orders {
        ids.push(cluster.cloud.announce(order.clone()).await);
    }
    let mut ended: Vec<String> = Vec::new();
    let is_over = async || {
        let status = cluster.status(0).await;
        !status.is_none_or(|status| status.events.iter().any(|event| ids.contains(&event.id)))
    };
    for id in &ids {
        cluster.seen_by_all(id).await;
    }
    while !is_over().await {
        for id in ids.iter().filter(|id| !ended.contains(id)).cloned().collect::<Vec<_>>() {
            if cluster.event(0, &id).await.is_some_and(|event| event.stage == "started") {
                cluster.cloud.finish(&id).await;
                ended.push(id);
            }
        }
        cluster.a_few_polls_later().await;
    }
    let mut events = Vec::new();
    for id in &ids {
        events.push(cluster.closed_everywhere(id).await);
    }
    events
}

/// Each event was approved by allclear, once, and the hooks ran on each of its members.
fn all_went_well(cluster: &Cluster, events: &[Event]) {
    for event in events {
        assert_eq!(event.start_cause.as_deref(), Some("approved"), "{event:#?}");
        let stops =
            event.hooks.iter().filter(|hook| hook.phase == "shutdown" && hook.outcome.as_deref() == Some("done"));
        assert_eq!(stops.count(), event.resources.len(), "{event:#?}");
        assert_eq!(cluster.cloud.approvals(&event.id).len(), 1, "{event:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_three_events_announced_together_one_member_is_out_at_a_time() {
    let cluster = members(&THREE).may_lose(1, "database").start().await;
    let orders = [0, 1, 2].map(|vm| reboot("Platform", &[vm], "10m"));
    let events = play(&cluster, &orders).await;
    all_went_well(&cluster, &events);
    assert_eq!(most_stopped(&cluster), 1, "{}", cluster.hooks.written());
}

#[tokio::test(flavor = "multi_thread")]
async fn of_five_members_two_are_out_at_a_time() {
    crate::left_out::long!();
    let cluster = members(&["db-0", "db-1", "db-2", "db-3", "db-4"]).may_lose(2, "database").start().await;
    let orders = [0, 1, 2, 3, 4].map(|vm| reboot("Platform", &[vm], "10m"));
    let events = play(&cluster, &orders).await;
    all_went_well(&cluster, &events);
    assert_eq!(most_stopped(&cluster), 2, "{}", cluster.hooks.written());
}

#[tokio::test(flavor = "multi_thread")]
async fn standbys_with_known_roles_and_an_event_of_a_user_between_them_wait_for_each_other() {
    crate::left_out::long!();
    let cluster = members(&THREE).with_primary("db-0").may_lose(1, "database").start().await;
    let are_known = |status: &Status| status.workloads.iter().all(|each| each.role != "unknown");
    cluster.until(0, "knows the roles", are_known).await;
    let orders = [reboot("Platform", &[1], "10m"), reboot("User", &[2], "10m"), reboot("Platform", &[1], "12m")];
    let events = play(&cluster, &orders).await;
    for event in &events {
        assert_eq!(event.start_cause.as_deref(), Some("approved"), "{event:#?}");
    }
    assert_eq!(most_stopped(&cluster), 1, "{}", cluster.hooks.written());
}

/// The platform takes both members of the first event at once, so no other member may be out; the third member follows.
#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_names_two_members_goes_alone() {
    let cluster = members(&THREE).may_lose(1, "database").start().await;
    let orders = [reboot("Platform", &[0, 1], "10m"), reboot("Platform", &[2], "10m")];
    let events = play(&cluster, &orders).await;
    all_went_well(&cluster, &events);
    assert_eq!(most_stopped(&cluster), 2, "{}", cluster.hooks.written());
}

pub(crate) fn database_on<'a>(status: &'a Status, vm: &str) -> &'a MemberState {
    status.members.iter().find(|member| member.vm == vm).unwrap()
}

/// The file that marks the database of a VM as stopped.
fn stopped(cluster: &Cluster, vm: &str) -> PathBuf {
    cluster.hooks.path(&format!("stopped-{vm}"))
}

fn waits_for_room(event: &Event) -> bool {
    event.blocker.as_ref().is_some_and(|blocker| blocker.code == "budget")
}

/// Started, finished, and not restored yet: the disk is broken. Another event waits for the restore.
async fn with_a_broken_disk(cluster: &Cluster) -> (String, String) {
    cluster.hooks.open("broken");
    let first = cluster.cloud.announce(reboot("Platform", &[0], "10m")).await;
    cluster.until_stage(0, &first, "started").await;
    let second = cluster.cloud.announce(reboot("Platform", &[1], "10m")).await;
    cluster.cloud.finish(&first).await;
    let failing = |status: &Status| {
        let owed = database_on(status, "db-0").owed.as_deref().unwrap_or_default();
        owed.contains("restore failed") && owed.contains("its disk is broken")
    };
    let status = cluster.until(2, "told of the restore that fails", failing).await;
    assert_eq!(database_on(&status, "db-0").state, "returning");
    let warning = status.warnings.iter().find(|warning| warning.text.contains("its disk is broken")).unwrap();
    assert!(warning.text.contains("allclear workload restored db-0/database"), "{}", warning.text);
    cluster.until_event(2, &second, "waiting for room", waits_for_room).await;
    // Another replica learns of the failing restore in its own time.
    let told = ["allclear_restores_failing 1", "allclear_workload_members{state=\"returning\"} 1"];
    let is_measured = async || {
        let (code, metrics) = cluster.page(1, "/metrics").await;
        code == 200 && told.iter().all(|line| metrics.contains(line))
    };
    cluster.until_true("metrics of the restore that fails", is_measured).await;
    let (code, list, _) = cluster.says(1, &["workload", "list"]);
    assert!(code == 0 && list.contains("its disk is broken"), "{list}");
    (first, second)
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_restore_fails_nobody_else_is_stopped_and_then_everything_goes_on_by_itself() {
    let cluster = members(&THREE).may_lose(1, "database").start().await;
    let (first, second) = with_a_broken_disk(&cluster).await;
    let restores = || cluster.hooks.begun().iter().filter(|phase| *phase == "restore").count();
    cluster.until_true("several attempts", async || restores() >= 3).await;
    assert!(!stopped(&cluster, "db-1").exists());
    assert_eq!(cluster.cloud.posts().await.len(), 1);
    cluster.hooks.shut("broken");
    cluster.closed_everywhere(&first).await;
    cluster.until_stage(0, &second, "started").await;
    cluster.cloud.finish(&second).await;
    cluster.closed_everywhere(&second).await;
    assert_eq!(most_stopped(&cluster), 1, "{}", cluster.hooks.written());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_says_that_a_member_serves_whose_restore_fails() {
    let cluster = members(&THREE).may_lose(1, "database").start().await;
    let (first, second) = with_a_broken_disk(&cluster).await;
    let _ = std::fs::remove_file(stopped(&cluster, "db-0"));
    let restored = ["workload", "restored", "db-0/database", "--reason", "started by hand"];
    let (code, _, said) = cluster.says(2, &restored);
    assert_eq!(code, 0, "{said}");
    cluster.closed_everywhere(&first).await;
    let event = cluster.until_stage(0, &second, "started").await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    let (code, _, said) = cluster.says(2, &["workload", "restored", "db-2/database", "--reason", "nothing is owed"]);
    assert!(code != 0 && !said.is_empty(), "{code}: {said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_somebody_stopped_makes_others_wait_until_it_is_ready() {
    let cluster = members(&THREE).may_lose(1, "database").start().await;
    std::fs::write(stopped(&cluster, "db-2"), "").unwrap();
    let not_ready = |status: &Status| database_on(status, "db-2").state == "not_ready";
    let status = cluster.until(0, "told that db-2 is not ready", not_ready).await;
    assert!(database_on(&status, "db-2").since.is_some());
    let warned = |status: &Status| status.warnings.iter().map(|it| it.text.clone()).collect::<Vec<_>>().join("\n");
    let elsewhere =
        "database on db-2 is not ready: `allclear status` on db-2 shows the reason. Until it is ready it counts";
    assert!(warned(&status).contains(elsewhere), "{status:?}");
    let own = cluster.until(2, "told on its VM", not_ready).await;
    assert!(warned(&own).contains("database on db-2 is not ready: ") && !warned(&own).contains(elsewhere), "{own:?}");
    let id = cluster.cloud.announce(reboot("Platform", &[0], "10m")).await;
    let event = cluster.until_event(0, &id, "waiting for room", waits_for_room).await;
    let blocker = event.blocker.unwrap();
    let message = blocker.message;
    assert!(message.contains("database on db-2") && message.contains("not ready"), "{message}");
    assert!(
        blocker.next.contains("starts the event, although database on db-2 is out of service, when the notice ends")
    );
    std::fs::remove_file(stopped(&cluster, "db-2")).unwrap();
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(most_stopped(&cluster), 1, "{}", cluster.hooks.written());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_event_lets_its_member_return_and_prepares_it_again_when_it_is_released() {
    let slow = vec![hook("drain"), hook("shutdown").waits_for("gate"), hook("restore"), hook("ready")];
    let plan = Cluster::of(&THREE).script(SCRIPT).workload("database", slow).may_lose(1, "database");
    let cluster = plan.also("policy.give_back_after", "2s").start().await;
    let id = cluster.cloud.announce(reboot("Platform", &[0], "10m")).await;
    cluster.until_true("the drain", async || stopped(&cluster, "db-0").exists()).await;
    let (code, _, said) = cluster.says(1, &["hold", &id, "--until", "1h", "--reason", "month's end"]);
    assert_eq!(code, 0, "{said}");
    // Before the hold, the event would be approved without this gate.
    cluster.hooks.open("gate");
    let serves = |status: &Status| database_on(status, "db-0").state == "in_service";
    cluster.until(0, "back in service", serves).await;
    assert!(!stopped(&cluster, "db-0").exists());
    let (code, _, said) = cluster.says(1, &["release", &id, "--reason", "it is over"]);
    assert_eq!(code, 0, "{said}");
    let event = cluster.until_stage(0, &id, "started").await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    assert!(stopped(&cluster, "db-0").exists());
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}
