//! The choice of the leader: members refused by Patroni are passed over, tags and synchronous replication are heeded,
//! and a paused cluster is switched over regardless.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

use super::super::processes;
use super::super::stage::Stage;
use super::super::trio::{DatabaseVm, ThreeNodeBed, VMS, is_installed, until};
use super::super::writers::Writers;
use super::adapter::{run, until_done};
use super::rest::{configure, get, leader, members, until_cluster};
use super::{NEWEST, Newest, Old, Patroni, Setup};

/// The primary, and the two other members.
fn around<S: Setup>(stage: &Stage<Patroni<S>>) -> (usize, usize, usize) {
    let primary = stage.primary();
    (primary, (primary + 1) % VMS.len(), (primary + 2) % VMS.len())
}

fn preferring(first: usize, second: usize) -> Value {
    json!({ "prefer_vms": [VMS[first], VMS[second]] })
}

/// The process of Patroni itself, without the server.
fn patroni_on(vm: &DatabaseVm) -> Pid {
    let is_it = |pid: &i32| {
        let arguments = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.ends_with(b"patroni.yml\0")
    };
    Pid::from_raw(processes::of(&vm.folder).into_iter().find(is_it).expect("Patroni runs"))
}

/// The member streams and is well in `/cluster`, but the REST API hangs, so Patroni refuses the member.
async fn a_member_that_patroni_refuses_is_passed_over<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let stage = Stage::<Patroni<S>>::bare().await;
    let writers = Writers::start::<Patroni<S>>(&stage.trio);
    let (primary, near, far) = around(&stage);
    until_all_follow(&stage.trio);
    let hangs = patroni_on(&stage.trio.vms[far]);
    kill(hangs, Signal::SIGSTOP).unwrap();
    let ended = run::<S>(&stage.trio, primary, "failover", &preferring(far, near));
    assert_eq!((ended.status, stage.primary()), (Some(0), near), "{ended:?}");
    let asked: Vec<_> = ended.said.lines().filter(|line| line.contains("switching over")).collect();
    assert!(asked.len() == 2 && asked[0].ends_with(VMS[far]), "{ended:?}");
    kill(hangs, Signal::SIGCONT).unwrap();
    until_done::<S>(&stage.trio, primary, "restore", &json!({}));
    writers.go_on();
    stage.all_is_there(writers);
}

/// Where all candidates are refused nothing is stopped, for any number of attempts.
async fn where_all_are_refused_the_primary_goes_on<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let stage = Stage::<Patroni<S>>::bare().await;
    let writers = Writers::start::<Patroni<S>>(&stage.trio);
    let (primary, near, far) = around(&stage);
    until_all_follow(&stage.trio);
    let started = || super::rest::get(&stage.trio, primary, "/patroni").unwrap()["postmaster_start_time"].clone();
    let before = started();
    let hang = [near, far].map(|place| patroni_on(&stage.trio.vms[place]));
    for pid in hang {
        kill(pid, Signal::SIGSTOP).unwrap();
    }
    let ended = run::<S>(&stage.trio, primary, "failover", &preferring(far, near));
    let is_refused = |place: &usize| ended.said.contains(&format!("Patroni refused {}", VMS[*place]));
    assert!(ended.status == Some(75) && [near, far].iter().all(is_refused), "{ended:?}");
    writers.go_on();
    // A member which hangs this long may have left the cluster.
    let ended = run::<S>(&stage.trio, primary, "failover", &preferring(far, near));
    assert_eq!(ended.status, Some(75), "{ended:?}");
    writers.go_on();
    for pid in hang {
        kill(pid, Signal::SIGCONT).unwrap();
    }
    assert_eq!((stage.primary(), started()), (primary, before));
    stage.all_is_there(writers);
}

async fn a_paused_cluster_is_switched_over_and_a_synchronous_one_to_its_standby<S: Setup>() {
    if !is_installed::<Patroni<S>>() {
        return;
    }
    let stage = Stage::<Patroni<S>>::bare().await;
    let writers = Writers::start::<Patroni<S>>(&stage.trio);
    let (primary, near, far) = around(&stage);
    until_all_follow(&stage.trio);
    configure(&stage.trio, "{\"pause\": true}");
    until_cluster(&stage.trio, "a pause", |cluster| cluster["pause"] == true);
    until_done::<S>(&stage.trio, primary, "failover", &preferring(far, near));
    assert_eq!(stage.primary(), far);
    configure(&stage.trio, "{\"pause\": null}");
    until_done::<S>(&stage.trio, primary, "restore", &json!({}));
    writers.go_on();

    for mode in S::SYNCHRONOUS {
        let primary = stage.primary();
        configure(&stage.trio, &json!({ "synchronous_mode": mode }).to_string());
        let is_synchronous =
            |member: &&Value| matches!(member["role"].as_str(), Some("sync_standby" | "quorum_standby"));
        let is_set = |cluster: &Value| members(cluster).any(|member| is_synchronous(&member));
        let cluster = until_cluster(&stage.trio, "a synchronous standby", is_set);
        let synchronous: Vec<usize> =
            members(&cluster).filter(is_synchronous).map(|member| place_of(&member["name"])).collect();
        let other = (0..VMS.len()).find(|place| *place != primary && !synchronous.contains(place));
        let prefers: Vec<&str> = other.iter().chain(&synchronous).map(|place| VMS[*place]).collect();
        until_done::<S>(&stage.trio, primary, "failover", &json!({ "prefer_vms": prefers }));
        assert!(synchronous.contains(&stage.primary()), "{mode}: {cluster}");
        until_done::<S>(&stage.trio, primary, "restore", &json!({}));
        writers.go_on();
    }
    stage.all_is_there(writers);
}

fn place_of(name: &Value) -> usize {
    VMS.iter().position(|vm| name == vm).unwrap()
}

/// `/cluster` is as old as Patroni's last loop.
fn until_all_follow(trio: &ThreeNodeBed) {
    let is_well = |member: &Value| matches!(member["state"].as_str(), Some("running" | "streaming"));
    let all = |cluster: &Value| {
        let follows = |member: &&Value| member["lag"].as_u64().is_some_and(|lag| lag < 1 << 20);
        members(cluster).filter(follows).count() == 2 && members(cluster).all(is_well)
    };
    let cluster = until_cluster(trio, "two members that follow", all);
    // The leader reports which members stream.
    let leader = place_of(&leader(&cluster).unwrap()["name"]);
    until("two members that stream", || {
        let said = get(trio, leader, "/patroni").map_err(|error| error.to_string())?;
        let streams = |it: &&Value| it["state"] == "streaming";
        let count = said["replication"].as_array().into_iter().flatten().filter(streams).count();
        if count == 2 { Ok(()) } else { Err(said.to_string()) }
    });
}

/// The last of the members has a tag, as users write tags.
struct Tagged<const TAG: usize>;

const TAGS: [&str; 3] = ["nofailover: 'true'", "nofailover: 'false'", "failover_priority: 0"];

impl<const TAG: usize> Setup for Tagged<TAG> {
    const NAME: &'static str = "Patroni with tags";
    const PROGRAMS: &'static [&'static str] = NEWEST;

    fn own(_trio: &ThreeNodeBed, vm: &DatabaseVm) -> (String, String) {
        let tags = if vm.name == VMS[2] { format!("tags: {{{}}}\n", TAGS[TAG]) } else { String::new() };
        (String::new(), tags)
    }
}

async fn a_member_that_is_tagged_never_to_lead_is_not_asked<const TAG: usize>() {
    if !is_installed::<Patroni<Tagged<TAG>>>() {
        return;
    }
    let stage = Stage::<Patroni<Tagged<TAG>>>::bare().await;
    until_all_follow(&stage.trio);
    // Patroni itself would refuse the candidate.
    let wanted = json!({ "leader": VMS[0], "candidate": VMS[2] }).to_string();
    let refused = super::rest::post(&stage.trio, 0, "/switchover", &wanted).unwrap();
    assert!(refused.contains(" 412 ") && refused.contains("no good candidates"), "{}: {refused}", TAGS[TAG]);
    let ended = run::<Tagged<TAG>>(&stage.trio, 0, "failover", &preferring(2, 1));
    assert_eq!((ended.status, stage.primary()), (Some(0), 1), "{ended:?}");
    assert_eq!(ended.said.matches("switching over").count(), 1, "{ended:?}");
}

macro_rules! tests {
    ($($setup:ident: $kind:ty;)*) => {
        $(mod $setup {
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_member_that_patroni_refuses_is_passed_over() {
                super::a_member_that_patroni_refuses_is_passed_over::<$kind>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn where_all_are_refused_the_primary_goes_on() {
                super::where_all_are_refused_the_primary_goes_on::<$kind>().await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "all of them take half an hour"]
            async fn a_paused_cluster_is_switched_over_and_a_synchronous_one_to_its_standby() {
                super::a_paused_cluster_is_switched_over_and_a_synchronous_one_to_its_standby::<$kind>().await;
            }
        })*
    };
}

tests! {
    newest: super::Newest;
    old: super::Old;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_tag_is_as_true_as_patroni_takes_it() {
    a_member_that_is_tagged_never_to_lead_is_not_asked::<0>().await;
    a_member_that_is_tagged_never_to_lead_is_not_asked::<1>().await;
    a_member_that_is_tagged_never_to_lead_is_not_asked::<2>().await;
}
