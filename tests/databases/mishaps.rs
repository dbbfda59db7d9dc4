//! Failures: a switch is asked for twice, killed, given up, or dies with its VM; two VMs are taken at once; no member
//! can take over. Afterwards there is one primary, and nothing is lost.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::{Event, Hook as Attempt};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::events::takes_so_many;
use super::hook::{BLOCKED, CONFIRM, DONE, Ended, Hook, NOT_APPLICABLE, NOT_DONE, UNDO};
use super::processes;
use super::stage::{Kind, Stage, observer};
use super::trio::{System, VMS, is_installed};
use super::writers::Writers;

/// Moments of a switch, counted from the first observation of its hook.
const MOMENTS: [Duration; 3] = [Duration::from_millis(20), Duration::from_millis(120), Duration::from_millis(250)];

async fn two_vms_are_taken<S: System>() {
    takes_so_many::<S>(Kind::Reboot, 2).await;
}

/// The other two servers are down: the primary stays in place, and goes on until another server is back.
async fn nobody_can_take_over<S: System>() {
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
    // Whichever hook checks first.
    let says_why = |hook: &Attempt| hook.outcome.as_deref() == Some("blocked") && hook.reason.is_some();
    let is_blocked = |event: &Event| event.hooks.iter().any(says_why);
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

/// The hook is killed, at each moment in turn, and every time the event goes on.
async fn the_switch_is_killed<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    for moment in MOMENTS {
        let primary = stage.primary();
        let id = stage.announce(Kind::Reboot, &[primary]).await;
        in_the_middle(&stage, primary, &id, moment).await;
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
async fn the_switch_is_given_up<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    for moment in MOMENTS {
        let primary = stage.primary();
        let id = stage.announce(Kind::Reboot, &[primary]).await;
        in_the_middle(&stage, primary, &id, moment).await;
        stage.cluster().cloud.cancel(&id).await;
        stage.cluster().closed_everywhere(&id).await;
        writers.go_on();
    }
    stage.all_is_there(writers);
}

/// The power is cut while the hook runs.
async fn the_vm_dies_in_its_switch<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    let id = stage.announce(Kind::Reboot, &[primary]).await;
    in_the_middle(&stage, primary, &id, MOMENTS[1]).await;
    stage.take(Kind::Reboot, &[primary], Duration::from_secs(1)).await;
    stage.cluster().ready().await;
    stage.cluster().until_stage(observer(&[primary]), &id, "started").await;
    stage.over(&id).await;
    stage.all_is_there(writers);
}

/// A member on a VM which an event names or may name is never chosen, in any spelling of the VM by the platform; where
/// no other member is left, nothing is stopped, and the reason is reported for each member.
async fn no_member_on_a_vm_to_avoid_is_chosen<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::bare().await;
    let writers = Writers::start::<S>(&stage.trio);
    let (primary, near, far) = around(&stage);
    let both = format!("{} {}", VMS[near], VMS[far]);
    let ended = Hook::run::<S>(&stage.trio, primary, "failover", &[("ALLCLEAR_AVOID_VMS", &both)]);
    assert_eq!(ended.status, BLOCKED, "{ended:?}");
    assert!(ended.said.contains(VMS[near]) && ended.said.contains(VMS[far]), "{ended:?}");
    assert_eq!(stage.primary(), primary);
    writers.go_on();
    let spelt = format!("_{}", VMS[near].to_uppercase());
    let told = [("ALLCLEAR_AVOID_VMS", &*spelt), ("ALLCLEAR_PREFER_VMS", &*both)];
    let ended = Hook::run::<S>(&stage.trio, primary, "failover", &told);
    assert_eq!((ended.status, stage.primary()), (DONE, far), "{ended:?}");
    Hook::until_done::<S>(&stage.trio, primary, "restore", &[]);
    stage.all_is_there(writers);
}

/// Nothing happens a second time, and a completed switch is not undone.
async fn the_switch_is_asked_for_again<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let stage = Stage::<S>::bare().await;
    let writers = Writers::start::<S>(&stage.trio);
    let (primary, near, far) = around(&stage);
    let call = |place, more: &[(&str, &str)]| Hook::run::<S>(&stage.trio, place, "failover", more);
    let has_no_effect = |ended: &Ended| matches!(ended.status, DONE | NOT_APPLICABLE);
    assert_eq!(call(primary, &[CONFIRM]).status, NOT_DONE);
    let on_a_replica = call(near, &[]);
    assert_eq!(on_a_replica.status, NOT_APPLICABLE, "{on_a_replica:?}");
    let preferred = format!("{} {}", VMS[far], VMS[near]);
    let ended = call(primary, &[("ALLCLEAR_PREFER_VMS", &preferred)]);
    assert_eq!((ended.status, stage.primary()), (DONE, far), "{ended:?}");
    for more in [&[CONFIRM][..], &[], &[UNDO], &[CONFIRM]] {
        let again = call(primary, more);
        assert!(has_no_effect(&again), "{more:?}: {again:?}");
        assert_eq!(stage.primary(), far);
    }
    writers.go_on();
    Hook::until_done::<S>(&stage.trio, primary, "restore", &[]);
    stage.all_is_there(writers);
}

/// The primary, and the two other members.
fn around<S: System>(stage: &Stage<S>) -> (usize, usize, usize) {
    let primary = stage.primary();
    (primary, (primary + 1) % VMS.len(), (primary + 2) % VMS.len())
}

/// Waits until `moment` after the start of the failover.
async fn in_the_middle<S: System>(stage: &Stage<S>, primary: usize, id: &str, moment: Duration) {
    let is_begun = |event: &Event| event.hooks.iter().any(|hook| hook.phase == "failover");
    stage.cluster().until_event(observer(&[primary]), id, "with a failover", is_begun).await;
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

/// Makes these tests of these systems.
macro_rules! tests {
    ($systems:tt $($name:ident: $test:ident;)*) => { $(tests!(@ $systems $name $test);)* };
    (@ { $($system:ident: $kind:ty;)* } $name:ident $test:ident) => {
        mod $name {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn $system() {
                super::$test::<$kind>().await;
            })*
        }
    };
}

tests! {
    {
        postgresql: crate::databases::postgresql::Postgresql;
        patroni: crate::databases::patroni::Patroni;
        redis: crate::databases::redis::Redis;
        sentinel: crate::databases::redis::Sentinel;
        mariadb: crate::databases::mariadb::MariaDb;
        etcd: crate::databases::etcd::Etcd;
    }
    a_switch_that_is_given_up_leaves_one_primary: the_switch_is_given_up;
    a_vm_that_dies_in_its_switch_leaves_one_primary: the_vm_dies_in_its_switch;
}

// Systems whose hooks are a program of the hook set. Patroni's switch is one request, which `patroni/killed.rs`
// interrupts around and in, and `tests/workloads/patroni` loses in every way.
tests! {
    {
        postgresql: crate::databases::postgresql::Postgresql;
        redis: crate::databases::redis::Redis;
        sentinel: crate::databases::redis::Sentinel;
        mariadb: crate::databases::mariadb::MariaDb;
        etcd: crate::databases::etcd::Etcd;
    }
    no_member_on_a_vm_to_avoid_becomes_the_primary: no_member_on_a_vm_to_avoid_is_chosen;
    a_switch_that_is_asked_for_again_is_done_once: the_switch_is_asked_for_again;
    a_switch_that_is_killed_is_gone_on_with_or_taken_back: the_switch_is_killed;
}

// Systems in which one member can go on alone.
tests! {
    {
        postgresql: crate::databases::postgresql::Postgresql;
        patroni: crate::databases::patroni::Patroni;
        redis: crate::databases::redis::Redis;
        sentinel: crate::databases::redis::Sentinel;
        mariadb: crate::databases::mariadb::MariaDb;
    }
    a_reboot_of_two_of_three_vms_costs_no_acknowledged_write: two_vms_are_taken;
    a_primary_that_nobody_can_take_over_from_stays_where_it_is: nobody_can_take_over;
}
