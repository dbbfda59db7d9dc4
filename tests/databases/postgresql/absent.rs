//! A member stopped by a person, as reported by the member's own `ready` hook.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Status};

use super::super::stage::{Kind, Stage, observer};
use super::super::trio::{System as _, VMS, is_installed};
use super::super::writers::Writers;
use super::Postgresql;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_standby_that_is_stopped_by_hand_makes_others_wait_and_they_say_for_whom() {
    if !is_installed::<Postgresql>() {
        return;
    }
    let mut stage = Stage::<Postgresql>::with_allclear().await;
    let writers = Writers::start::<Postgresql>(&stage.trio);
    let primary = stage.primary();
    let standbys: Vec<usize> = (0..VMS.len()).filter(|place| *place != primary).collect();
    let [stopped, other] = standbys[..] else { panic!("two standbys: {standbys:?}") };
    let has_roles = |status: &Status| status.workloads.iter().all(|workload| workload.role != "unknown");
    stage.cluster().until(primary, "told of the roles", has_roles).await;
    stage.trio.kill(stopped);
    let is_out =
        |status: &Status| status.members.iter().any(|member| member.vm == VMS[stopped] && member.state == "not_ready");
    stage.cluster().until(primary, "told that it is not ready", is_out).await;

    let id = stage.announce(Kind::Reboot, &[other]).await;
    let waits = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == "budget");
    let event = stage.cluster().until_event(observer(&[other]), &id, "waiting for room", waits).await;
    let message = event.blocker.unwrap().message;
    println!("{message}");
    assert!(message.contains(VMS[stopped]) && message.contains("not ready"), "{message}");
    let begun = event.hooks.iter().filter(|hook| hook.phase != "checkpoint");
    assert_eq!(begun.count(), 0, "{:#?}", event.hooks);

    Postgresql::boot(&stage.trio, stopped);
    stage.all_clear(&id, &[other]).await;
    stage.take(Kind::Reboot, &[other], Duration::from_secs(1)).await;
    stage.over(&id).await;
    writers.go_on();
    stage.all_is_there(writers);
}
