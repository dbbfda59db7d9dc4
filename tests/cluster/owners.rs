//! A user with permission to connect cannot have an unprepared machine approved: neither under a name or in a group of
//! the configuration, nor in place of another user's workload, also after a restart of the replica. No user can remove
//! the hooks that an open event waits for, the workload's own user included.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use allclear::wire::pb::allclear::operator::v1::Event;
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::{Drain, Restore};
use serde_json::json;
use tonic::Code;

use super::cluster::Cluster;
use super::dialled::{client, hello, hook};
use super::workload::hook as configured;

const OWNER: u32 = 64_218;
const OTHER: u32 = 64_219;
const MEMBER: u32 = 64_220;

/// Run by the tests below, as another user: registers and unregisters as listed in `ASKS`.
#[tokio::test]
#[ignore = "is run by other tests"]
async fn somebody_asks() {
    let (Ok(door), Ok(asks)) = (std::env::var("DOOR"), std::env::var("ASKS")) else { return };
    let mut calls = client(door.as_ref()).await;
    let mut told = Vec::new();
    for ask in asks.split(';') {
        let words: Vec<_> = ask.split_whitespace().collect();
        let answer = match words[..] {
            ["unregister", name] => {
                let request = pb::UnregisterRequest { workload: name.into(), force: true };
                calls.unregister(request).await.map(drop)
            }
            [name, group, hooks] => {
                let hooks = hooks.split(',').filter_map(|hook| match hook {
                    "drain" => Some(Drain),
                    "restore" => Some(Restore),
                    _ => None,
                });
                let mut hello = hello(name, hooks.map(hook).collect());
                hello.group = (group != "-").then(|| group.into());
                hello.role = pb::Role::Primary.into();
                calls.register(hello).await.map(drop)
            }
            _ => panic!("{ask}"),
        };
        told.push(answer.map_or_else(|refusal| refusal.code(), |()| Code::Ok));
    }
    println!("told: {told:?}");
}

/// The replies to a user's requests `asks`: `NAME GROUP HOOKS`, or `unregister NAME`.
fn told(uid: u32, door: &Path, asks: &[&str]) -> String {
    let mut asking = Command::new(std::env::current_exe().unwrap());
    asking.args([crate::own_test!(somebody_asks), "--exact", "--ignored", "--nocapture"]);
    let asking = asking.env("DOOR", door).env("ASKS", asks.join(";")).current_dir("/");
    let output = asking.uid(uid).gid(uid).output().unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    said.lines().find_map(|line| line.split_once("told: ")).map(|(_, told)| told.to_owned()).unwrap_or(said)
}

/// A replica to which three users may connect; one user may be a member of the group and the configured workload.
async fn cluster() -> Option<Cluster> {
    if !crate::left_out::is_root() {
        return None;
    }
    let plan = Cluster::of(&["db-0"]).workload("guarded", vec![configured("drain").waits_for("gate")]);
    let orders = "[[group]]\nname = \"orders\"\nallow_uids = [64220]\n".to_owned();
    let cluster = plan.tables(vec![orders]).also("workloads.allow_uids", "[64218, 64219]").start().await;
    open_the_door(&cluster);
    Some(cluster)
}

fn open_the_door(cluster: &Cluster) {
    let door = cluster.door(0);
    for (path, mode) in [(door.parent().unwrap(), 0o755), (door.as_path(), 0o666)] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_dial_in_takes_no_hooks_away_from_anybody() {
    let Some(mut cluster) = cluster().await else { return };
    let door = cluster.door(0);
    assert_eq!(told(OWNER, &door, &["database - drain,restore"]), "[Ok]");
    let attacks =
        ["guarded - -", "guarded - drain", "spare orders -", "spare unknown -", "database - -", "unregister database"];
    let denied = format!("[{}]", ["PermissionDenied"; 6].join(", "));
    assert_eq!(told(OTHER, &door, &attacks), denied);
    assert_eq!(
        told(OWNER, &door, &attacks[..4]),
        "[PermissionDenied, PermissionDenied, PermissionDenied, PermissionDenied]"
    );
    assert_eq!(told(OTHER, &door, &["mine - -", "unregister mine"]), "[Ok, Ok]", "what is its own it may");
    assert_eq!(told(MEMBER, &door, &["spare orders -", "unregister spare"]), "[Ok, Ok]", "so may who is given a group");
    assert_eq!(told(MEMBER, &door, &["guarded orders -"]), "[PermissionDenied]");

    // No workload is connected, and no workload has connected in this run of the replica.
    cluster.kill(0);
    cluster.start(0);
    cluster.ready().await;
    open_the_door(&cluster);
    assert_eq!(told(OTHER, &door, &attacks), denied);

    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    assert_eq!(told(OTHER, &door, &attacks), denied);
    let taken = ["database - -", "database - drain", "database orders drain,restore", "unregister database"];
    let refused = "[FailedPrecondition, FailedPrecondition, PermissionDenied, FailedPrecondition]";
    assert_eq!(told(OWNER, &door, &taken), refused, "not by its own user either");
    let mut roots = client(&door).await;
    let forgets = hello("database", vec![]);
    assert_eq!(roots.register(forgets).await.unwrap_err().code(), Code::PermissionDenied, "it is another's");
    let misspelt = pb::Hello { group: Some("order".into()), ..hello("spare", vec![]) };
    let refusal = roots.register(misspelt).await.unwrap_err();
    assert_eq!(refusal.code(), Code::InvalidArgument, "{refusal}");
    assert!(refusal.message().contains("its groups are guardeds, orders"), "{refusal}");
    // The pending hook is waited for.
    cluster.hooks.open("gate");
    let waits = |event: &Event| event.blocker.iter().any(|blocker| blocker.message.contains("database"));
    let event = cluster.until_event(0, &id, "waiting for the workload that is away", waits).await;
    assert_eq!((event.stage.as_str(), cluster.cloud.posts().await.len()), ("preparing", 0), "{event:#?}");

    // The remedy is an operator's command.
    let unregister = pb::UnregisterRequest { workload: "database".into(), force: true };
    roots.unregister(unregister).await.unwrap();
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

/// The user registers the name before the configuration has the name. At the next start the name belongs to the
/// configuration.
#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_the_configuration_takes_for_itself_is_taken_from_its_user() {
    let Some(mut cluster) = cluster().await else { return };
    assert_eq!(told(OTHER, &cluster.door(0), &["later - -"]), "[Ok]");
    cluster.kill(0);
    let file = cluster.configuration(0);
    let toml = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, toml.replace("name = \"guarded\"", "name = \"later\"")).unwrap();
    cluster.start(0);
    cluster.ready().await;
    let is_told = async || cluster.log(0).contains("not permitted by the configuration");
    cluster.until_true("a word about it", is_told).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_true("the drain", async || cluster.hooks.begun() == ["drain"]).await;
    open_the_door(&cluster);
    assert_eq!(told(OTHER, &cluster.door(0), &["later - -"]), "[PermissionDenied]");
    assert!(cluster.cloud.posts().await.is_empty());
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
}
