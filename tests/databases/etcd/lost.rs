//! Lost data, and data which only seem lost. A member is removed from the cluster for lost data alone.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use super::super::hook::{BLOCKED, DONE, Ended, FAILED, Hook};
use super::super::killed::killed_at;
use super::super::stage::Stage;
use super::super::trio::{System, ThreeNodeBed, is_installed, until};
use super::super::writers::Writers;
use super::{Etcd, READING, open};

/// The identities of all members, as listed by another member.
fn members(trio: &ThreeNodeBed) -> Vec<String> {
    let listed = open(trio, 1, READING).unwrap().ask("cluster/member/list", &json!({})).unwrap();
    let id = |one: &Value| one["ID"].as_str().unwrap().to_owned();
    let mut ids: Vec<_> = listed["members"].as_array().unwrap().iter().map(id).collect();
    ids.sort();
    ids
}

/// A stage with a member which drained and is down, as after an event.
async fn stage_with_a_member_that_is_down() -> Stage<Etcd> {
    let stage = Stage::<Etcd>::bare().await;
    Hook::until_done::<Etcd>(&stage.trio, 0, "drain", &[]);
    stage.trio.kill(0);
    stage
}

/// etcd seems to have no data below a mount point with a late disk, behind a link which leads nowhere, or in a folder
/// which its user may not read, and starts as a new member where allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_member_is_not_removed_for_data_that_only_seem_to_be_gone() {
    if !is_installed::<Etcd>() {
        return;
    }
    let stage = stage_with_a_member_that_is_down().await;
    let trio = &stage.trio;
    let (before, vm) = (members(trio), &trio.vms[0]);
    // The start command does nothing, so the data decide.
    let restored = |setting: (&str, &str)| {
        let more = [("START", "true"), ("ALLCLEAR_TIME_LEFT_MS", "8000"), setting];
        Hook::run::<Etcd>(trio, 0, "restore", &more)
    };
    let is_left = |ended: &Ended, status: Option<i32>, reason: &str| {
        assert!(ended.status == status && ended.said.contains(reason), "not {reason:?}: {ended:?}");
        assert_eq!(members(trio), before, "after {reason:?}");
    };
    let (data, aside) = (vm.data(), vm.folder.join("aside"));

    // A folder never used by etcd, which the tables may name.
    let other = vm.folder.join("other");
    fs::create_dir(&other).unwrap();
    trio.own(&other).unwrap();
    is_left(&restored(("DATA_DIR", other.to_str().unwrap())), BLOCKED, "set it to where they are");
    // The state of the hooks is gone with another disk.
    fs::rename(&data, &aside).unwrap();
    is_left(&restored(("STATE_DIR", other.to_str().unwrap())), FAILED, "these hooks never saw");
    // The disk is not mounted, by the machine's own table and by the hooks' record; or a link at its path leads
    // nowhere.
    let fstab = vm.folder.join("fstab");
    fs::write(&fstab, format!("# disks\nUUID=1 {} ext4 defaults 0 2\n", data.display())).unwrap();
    is_left(&restored(("FSTAB", fstab.to_str().unwrap())), BLOCKED, "is not mounted");
    let kept = vm.folder.join("state/etcd-place.json");
    let remembered = fs::read_to_string(&kept).unwrap();
    let mut facts: Value = serde_json::from_str(&remembered).unwrap();
    facts["mount"] = json!(vm.folder);
    fs::write(&kept, facts.to_string()).unwrap();
    is_left(&restored(("X", "")), BLOCKED, "is not mounted, mount it");
    fs::write(&kept, &remembered).unwrap();
    std::os::unix::fs::symlink("/nowhere/etcd", &data).unwrap();
    is_left(&restored(("X", "")), BLOCKED, "is its disk mounted?");
    fs::remove_file(&data).unwrap();
    fs::rename(&aside, &data).unwrap();
    // The hooks' user may not read the folder.
    if trio.user.is_some() {
        fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
        std::os::unix::fs::chown(&data, Some(0), Some(0)).unwrap();
        is_left(&restored(("X", "")), FAILED, "nobody can tell whether etcd's data are in");
        trio.own(&data).unwrap();
    }
    // A part of the data.
    fs::rename(data.join("member/wal"), &aside).unwrap();
    is_left(&restored(("X", "")), FAILED, "only a part of the data is there");
    fs::rename(&aside, data.join("member/wal")).unwrap();

    Hook::until_done::<Etcd>(trio, 0, "restore", &[]);
    assert_eq!(members(trio), before);
}

/// The member's service starts the server again at each point, as after any end of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_member_that_lost_its_data_comes_back_wherever_its_restore_is_killed() {
    if !is_installed::<Etcd>() {
        return;
    }
    let mut stage = Stage::<Etcd>::bare().await;
    let writers = Writers::start::<Etcd>(&stage.trio);
    for point in 1.. {
        Hook::until_done::<Etcd>(&stage.trio, 0, "drain", &[]);
        stage.take_away(super::super::stage::Kind::Redeploy, 0);
        let trio = &stage.trio;
        Etcd::boot(trio, 0);
        let before = members(trio);
        let ended = until("a restore", || match Hook::killed::<Etcd>(trio, 0, "restore", point, &[]) {
            Ended { status: BLOCKED, said } => Err(said),
            ended => Ok(ended),
        });
        let at = killed_at(&ended).map(str::to_owned);
        assert!(at.is_some() || ended.status == DONE, "{ended:?}");
        if at.is_some() {
            trio.kill(0);
            Etcd::boot(trio, 0);
            Hook::until_done::<Etcd>(trio, 0, "restore", &[]);
        }
        assert_ne!(members(trio), before, "it was added anew");
        let starts_with = fs::read_to_string(trio.vms[0].folder.join("state/etcd.env")).unwrap();
        assert!(!starts_with.contains("db-1"), "it would start when its data are lost again: {starts_with}");
        writers.go_on();
        let Some(at) = at else {
            assert!(point > 8, "a restore has {point} points");
            break;
        };
        println!("restore: {at}");
    }
    stage.all_is_there(writers);
}
