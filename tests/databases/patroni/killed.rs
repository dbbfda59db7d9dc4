//! The adapter is killed before, in and after each of its requests, together with every process on the VM, which then
//! boots: never two members take writes, no acknowledged write is lost, and the next attempt ends the switch well.
//! Replication is synchronous, for the death of an asynchronous primary's VM loses the writes missing on its standbys.

use serde_json::json;

use super::super::hook::BLOCKED;
use super::super::killed::Watch;
use super::super::stage::Stage;
use super::super::trio::{DatabaseVm, System as _, VMS, is_installed, until};
use super::super::writers::Writers;
use super::adapter::{begin, end, hook, run, until_done};
use super::proxy::{Point, Proxies};
use super::rest::{configure, members, until_cluster};
use super::{Newest, Old, Patroni, Setup};

/// All clients find the members' REST API behind a proxy.
struct Proxied<S>(std::marker::PhantomData<S>);

impl<S: Setup> Setup for Proxied<S> {
    const NAME: &'static str = S::NAME;
    const PROGRAMS: &'static [&'static str] = S::PROGRAMS;

    fn advertised(vm: &DatabaseVm) -> &str {
        &vm.addresses[2]
    }
}

async fn a_failover_is_killed_at_each_request<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let stage = Stage::<Patroni<Proxied<S>>>::bare().await;
    let proxies = Proxies::start(&stage.trio);
    let writers = Writers::start::<Patroni<Proxied<S>>>(&stage.trio);
    let watch = Watch::begin::<Patroni<Proxied<S>>>(&stage.trio);
    configure(&stage.trio, "{\"synchronous_mode\": true}");
    let is_synchronous = |member: &serde_json::Value| member["role"] == "sync_standby";
    until_cluster(&stage.trio, "a synchronous standby", |cluster| members(cluster).any(is_synchronous));
    until_done::<Proxied<S>>(&stage.trio, 1, "restore", &json!({}));
    until_done::<Proxied<S>>(&stage.trio, 2, "restore", &json!({}));
    let points = (1..).flat_map(|number| [Point::Before(number), Point::Meanwhile(number), Point::After(number)]);
    for (count, point) in points.enumerate() {
        let primary = stage.primary();
        let hook = hook::<Proxied<S>>(&stage.trio, primary, "failover");
        // The synchronous members are agreed on a moment after a switch; until then Patroni refuses every candidate.
        let (ended, hit) = until("a failover", || {
            let child = proxies.aim(point, || {
                let child = begin(&hook, primary, "failover", &json!({}));
                let pid = child.id().cast_signed();
                (child, pid)
            });
            match (end(child), proxies.hit()) {
                (ended, None) if ended.status == BLOCKED => Err(ended.said),
                (ended, hit) => Ok((ended, hit)),
            }
        });
        let Some(at) = hit else {
            assert_eq!(ended.status, Some(0), "{ended:?}");
            println!("{}: a failover has {count} points", S::NAME);
            assert!(count > 9, "it looks, switches over, and looks again");
            break;
        };
        assert_eq!(ended.status, None, "{ended:?}");
        println!("{}: {at}", S::NAME);
        stage.trio.kill(primary);
        Patroni::<Proxied<S>>::boot(&stage.trio, primary);
        until_done::<Proxied<S>>(&stage.trio, primary, "failover", &json!({}));
        assert_ne!(stage.primary(), primary, "{at}");
        let confirmed = run::<Proxied<S>>(&stage.trio, primary, "failover", &json!({ "intent": "confirm" }));
        assert_eq!(confirmed.status, Some(0), "{at}: {confirmed:?}");
        for place in 0..VMS.len() {
            until_done::<Proxied<S>>(&stage.trio, place, "restore", &json!({}));
        }
        writers.go_on();
    }
    until_done::<Proxied<S>>(&stage.trio, 0, "restore", &json!({}));
    watch.end();
    stage.all_is_there(writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn newest() {
    a_failover_is_killed_at_each_request::<Newest>().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn old() {
    a_failover_is_killed_at_each_request::<Old>().await;
}
