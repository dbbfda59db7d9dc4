//! Tests of every system. No test asserts a time; durations are printed.

use std::time::Duration;

use allclear::wire::pb::allclear::operator::v1::Event;

use super::stage::{Cost, Kind, Stage};
use super::trio::{System, VMS, is_installed};
use super::writers::Writers;

/// As long as no test has to wait for it in vain.
const AWAY: Duration = Duration::from_secs(2);
/// Longer than clients and replicas wait for a VM.
const FROZEN: Duration = Duration::from_secs(8);

/// The primary's VM is taken while clients write.
pub(crate) async fn takes_the_primary<S: System>(kind: Kind) {
    takes_so_many::<S>(kind, 1).await;
}

/// The VMs of the primary and of further members, `count` in all, are taken at once.
pub(crate) async fn takes_so_many<S: System>(kind: Kind, count: usize) {
    if !is_installed::<S>() {
        return;
    }
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    let places: Vec<usize> = (0..count).map(|step| (primary + step) % VMS.len()).collect();
    let event = stage.event(kind, &places, if kind == Kind::Freeze { FROZEN } else { AWAY }).await;
    let cost = stage.all_is_there(writers);
    tell::<S>(kind, &event, &cost);
}

/// A replica's VM is taken: no member fails over, and no write is in doubt.
pub(crate) async fn takes_a_replica<S: System>(kind: Kind) {
    if !is_installed::<S>() {
        return;
    }
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    let event = stage.event(kind, &[(primary + 1) % VMS.len()], AWAY).await;
    assert_eq!(stage.primary(), primary);
    let cost = stage.all_is_there(writers);
    tell::<S>(kind, &event, &cost);
}

/// The primary's VM is deleted: nothing is restored on this VM, and the two other members need nothing.
pub(crate) async fn takes_the_primary_for_good<S: System>() {
    if !is_installed::<S>() {
        return;
    }
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    let others: Vec<_> = (0..VMS.len()).filter(|place| *place != primary).collect();
    let id = stage.announce(Kind::Terminate, &[primary]).await;
    stage.all_clear(&id, &[primary]).await;
    stage.take_away(Kind::Terminate, primary);
    stage.cluster().cloud.finish(&id).await;
    let event = stage.cluster().until_stage(others[0], &id, "closed").await;
    let put_back = event.hooks.iter().find(|hook| matches!(&*hook.phase, "restore" | "ready"));
    assert!(put_back.is_none(), "{put_back:#?}");
    let cost = stage.all_is_there_on(&others, writers);
    tell::<S>(Kind::Terminate, &event, &cost);
}

/// One fault domain after the other, each as soon as the previous domain is restored.
pub(crate) async fn take_one_vm_after_the_other<S: System>(kind: Kind) {
    if !is_installed::<S>() {
        return;
    }
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let (mut moves, mut before) = (0, stage.primary());
    for (place, vm) in VMS.iter().enumerate() {
        let event = stage.event(kind, &[place], AWAY).await;
        writers.go_on();
        moves += usize::from(stage.primary() != before);
        before = stage.primary();
        println!("{}: {vm}: {}", S::NAME, hooks(&event).join(", "));
    }
    let cost = stage.all_is_there(writers);
    println!("{}: the primary moved {moves} times, and the longest gap was {:?}", S::NAME, cost.gap);
    assert!(moves <= 2, "the primary moved {moves} times");
}

fn tell<S: System>(kind: Kind, event: &Event, cost: &Cost) {
    let Cost { gap, since, worst, acknowledged, errors, lost } = cost;
    println!("{}, {kind:?}: {acknowledged} acknowledged, {errors} errors, {lost} lost", S::NAME);
    let since = jiff::Timestamp::try_from(*since).expect("a time of this age");
    println!("  gap {gap:?}, of one client {worst:?}, from {since:.3}");
    println!("  {}", hooks(event).join(", "));
}

/// The hooks of an event, with their durations.
fn hooks(event: &Event) -> Vec<String> {
    let at = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_millisecond();
    let told = event.hooks.iter().map(|hook| {
        let took = hook.ended_at.as_deref().map_or(0, at) - at(&hook.started_at);
        let outcome = hook.outcome.as_deref().unwrap_or("runs");
        format!("{} on {} {outcome} from {} in {took} ms", hook.phase, hook.on, hook.started_at)
    });
    told.collect()
}

/// Makes the tests of every system.
macro_rules! events {
    ($($system:ident: $kind:ty;)*) => {
        $(mod $system {
            use super::Kind::{Freeze, Preempt, Reboot, Redeploy};
            type System = $kind;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn a_reboot_of_the_primarys_vm_costs_no_acknowledged_write() {
                if stringify!($system) != "postgresql" {
                    crate::left_out::long!();
                }
                super::takes_the_primary::<System>(Reboot).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_redeploy_of_the_primarys_vm_costs_no_acknowledged_write() {
                super::takes_the_primary::<System>(Redeploy).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_preemption_of_the_primarys_vm_costs_no_acknowledged_write() {
                super::takes_the_primary::<System>(Preempt).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_freeze_of_the_primarys_vm_costs_no_acknowledged_write() {
                super::takes_the_primary::<System>(Freeze).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_primarys_vm_that_never_comes_back_costs_no_acknowledged_write() {
                super::takes_the_primary_for_good::<System>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_reboot_of_a_replicas_vm_leaves_the_primary_where_it_is() {
                super::takes_a_replica::<System>(Reboot).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_wave_over_three_vms_moves_the_primary_at_most_twice() {
                super::take_one_vm_after_the_other::<System>(Reboot).await;
            }
        })*
    };
}

events! {
    etcd: crate::databases::etcd::Etcd;
    patroni: crate::databases::patroni::Patroni;
    patroni_old: crate::databases::patroni::Patroni<crate::databases::patroni::Old>;
    mariadb: crate::databases::mariadb::MariaDb;
    postgresql: crate::databases::postgresql::Postgresql;
    redis: crate::databases::redis::Redis;
    sentinel: crate::databases::redis::Sentinel;
}
