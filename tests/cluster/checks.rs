//! Checks of the hooks outside of events: a fault is found before an event needs the hooks.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::json;

use super::cluster::Cluster;
use super::workload::hook;

fn warns(status: &Status) -> bool {
    let wanted = "the check of database on db-1 found a fault, so hooks of the next event may fail: gate is closed";
    status.warnings.iter().any(|warning| warning.text.contains(wanted) && !warning.since.is_empty())
}

#[tokio::test]
async fn a_role_that_is_not_told_is_a_warning_until_it_is_told_again() {
    let plan = Cluster::of(&["db-0", "db-1", "db-2"]).with_primary("db-0");
    let cluster = plan.workload("database", vec![hook("drain")]).start().await;
    let is_well = |status: &Status| status.warnings.is_empty();
    cluster.until(1, "without warnings", is_well).await;
    cluster.hooks.open("mute");
    let wanted = "the role of database on db-1 is not known, so database counts as a possible primary: the command ended with exit status: 3";
    let is_told = |status: &Status| status.warnings.iter().any(|warning| warning.text.contains(wanted));
    cluster.until(1, "warned", is_told).await;
    let (code, line, _) = cluster.says(1, &["status", "--check"]);
    assert!(code == 1 && line.starts_with("WARNING") && line.contains(wanted), "{code}: {line}");
    cluster.hooks.shut("mute");
    cluster.until(1, "no longer warned", is_well).await;
}

#[tokio::test]
async fn a_check_that_fails_is_a_warning_until_the_fault_is_repaired() {
    let hooks = vec![hook("check").every_second().blocked_until("gate"), hook("drain")];
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).start().await;
    cluster.until(1, "warned", warns).await;
    let (_, page) = cluster.page(1, "/metrics").await;
    assert!(page.lines().any(|line| line.starts_with("allclear_checks_failed") && line.ends_with(" 1")), "{page}");
    let (code, line, _) = cluster.says(1, &["status", "--check"]);
    assert!(code == 1 && line.starts_with("WARNING") && line.contains("found a fault"), "{code}: {line}");
    let is_harmless = |(phase, mode): &(String, String)| phase == "check" && mode == "dry_run";
    assert!(cluster.hooks.modes().iter().all(is_harmless), "{}", cluster.hooks.written());

    // The fault blocks nothing, and no check of the group runs during the event.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1, "notice": "10m" })).await;
    cluster.until_stage(1, &id, "started").await;
    let checks = || cluster.hooks.begun().iter().filter(|phase| *phase == "check").count();
    let before = checks();
    cluster.a_few_polls_later().await;
    assert_eq!(checks(), before, "{}", cluster.hooks.written());
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;

    cluster.hooks.open("gate");
    cluster.until(1, "no longer warned", |status| !warns(status)).await;
    assert!(cluster.log(1).contains("the check of a workload finds no fault any more"));
}
