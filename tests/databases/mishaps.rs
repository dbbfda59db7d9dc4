//! What goes wrong: two VMs are taken at once, nobody can take over, and a switch is killed, given up, or dies with its
//! VM. Afterwards there is one primary, and nothing is lost. For systems where one member can go on alone.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::Event;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::events::takes_so_many;
use super::processes;
use super::stage::{Kind, Stage, observer};
use super::trio::{System, VMS, is_installed};
use super::writers::Writers;

/// Moments of a switch, counted from when its hook is first seen.
const MOMENTS: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(120), Duration::from_millis(250)];

/// The other two servers are down: the primary stays where it is, and goes on until one is back.
pub(crate) async fn nobody_can_take_over<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    let others: Vec<_> = (0..VMS.len()).filter(|place| *place != primary).collect();
    for place in &others {
        stage.trio.kill(*place);
    }
    let id = stage.announce(Kind::Reboot, &[primary]).await;
    let is_blocked = |event: &Event| {
        let mut failovers = event.hooks.iter().filter(|hook| hook.phase == "failover");
        failovers.any(|hook| hook.outcome.as_deref() == Some("blocked") && hook.reason.is_some())
    };
    let event = stage.cluster().until_event(others[0], &id, "without a target", is_blocked).await;
    let reasons = event.hooks.iter().filter_map(|hook| hook.reason.as_deref());
    println!("{}: {}", S::NAME, reasons.collect::<Vec<_>>().join("; "));
    assert_eq!(S::primary(&stage.trio), Some(primary));
    writers.go_on();
    for place in others {
        S::boot(&stage.trio, place);
    }
    stage.all_clear(&id, &[primary]).await;
    stage.over(&id).await;
    stage.all_is_there(writers);
}

/// The hook is killed, at one moment after the other, and every time the event goes on.
pub(crate) async fn the_switch_is_killed<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    for moment in MOMENTS {
        let primary = stage.primary();
        let id = stage.announce(Kind::Reboot, &[primary]).await;
        in_the_middle(&stage, primary, moment).await;
        for pid in switches(&stage, primary) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        stage.all_clear(&id, &[primary]).await;
        stage.over(&id).await;
        writers.go_on();
    }
    stage.all_is_there(writers);
}

/// The event is cancelled while its hook runs.
pub(crate) async fn the_switch_is_given_up<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    for moment in MOMENTS {
        let primary = stage.primary();
        let id = stage.announce(Kind::Reboot, &[primary]).await;
        in_the_middle(&stage, primary, moment).await;
        stage.cluster().cloud.cancel(&id).await;
        stage.cluster().closed_everywhere(&id).await;
        writers.go_on();
    }
    stage.all_is_there(writers);
}

/// The power is cut while the hook runs.
pub(crate) async fn the_vm_dies_in_its_switch<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    let id = stage.announce(Kind::Reboot, &[primary]).await;
    in_the_middle(&stage, primary, MOMENTS[1]).await;
    stage.take(Kind::Reboot, &[primary], Duration::from_secs(1)).await;
    stage.cluster().ready().await;
    stage.cluster().until_stage(observer(&[primary]), &id, "started").await;
    stage.over(&id).await;
    stage.all_is_there(writers);
}

/// So long after the failover's hook began on that VM.
async fn in_the_middle<S: System>(stage: &Stage<S>, place: usize, moment: Duration) {
    stage.cluster().until_true("a failover", async || !switches(stage, place).is_empty()).await;
    tokio::time::sleep(moment).await;
}

/// The processes of the failover's hook.
fn switches<S: System>(stage: &Stage<S>, place: usize) -> Vec<i32> {
    let folder = &stage.trio.vms[place].folder;
    let is_one = |pid: &i32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.ends_with(b"\0failover\0")
    };
    processes::of(folder).into_iter().filter(is_one).collect()
}

/// What systems go through that need no majority.
macro_rules! mishaps {
    ($($system:ident: $kind:ty;)*) => {
        $(mod $system {
            type System = $kind;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_reboot_of_two_of_three_vms_costs_no_acknowledged_write() {
                super::takes_so_many::<System>(super::Kind::Reboot, 2).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_primary_that_nobody_can_take_over_from_stays_where_it_is() {
                super::nobody_can_take_over::<System>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_switch_that_is_killed_is_gone_on_with_or_taken_back() {
                super::the_switch_is_killed::<System>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_switch_that_is_given_up_leaves_one_primary() {
                super::the_switch_is_given_up::<System>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_vm_that_dies_in_its_switch_leaves_one_primary() {
                super::the_vm_dies_in_its_switch::<System>().await;
            }
        })*
    };
}

mishaps! {
    postgresql: crate::postgresql::Postgresql;
}

/// Its switch is one request, which `tests/workloads/patroni.rs` loses in every way.
mod patroni {
    use crate::patroni::Patroni;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "all of them take half an hour"]
    async fn a_reboot_of_two_of_three_vms_costs_no_acknowledged_write() {
        super::takes_so_many::<Patroni>(super::Kind::Reboot, 2).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "all of them take half an hour"]
    async fn a_primary_that_nobody_can_take_over_from_stays_where_it_is() {
        super::nobody_can_take_over::<Patroni>().await;
    }
}
