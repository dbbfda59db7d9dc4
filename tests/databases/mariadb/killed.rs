//! The restore of a member is killed at any point, and the member's server restarted: the server stays read-only, and
//! half of the data is never taken for all data.

use super::super::hook::{DONE, Hook};
use super::super::killed::{Watch, killed_at};
use super::super::stage::{Kind, Stage};
use super::super::trio::{System as _, is_installed, until};
use super::super::writers::Writers;
use super::{MariaDb, asked_by_socket, by_socket, call};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_return_is_killed_at_each_point() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let writers = Writers::start::<MariaDb>(&stage.trio);
    let watch = Watch::begin::<MariaDb>(&stage.trio);
    for point in 1.. {
        let place = stage.primary();
        Hook::until_done::<MariaDb>(&stage.trio, place, "failover", &[]);
        until("a member that follows nobody", || {
            // The hooks end connections of other clients.
            asked_by_socket(&stage.trio, place, "STOP SLAVE; RESET SLAVE ALL").map_err(|error| error.to_string())
        });
        let ended = Hook::killed::<MariaDb>(&stage.trio, place, "restore", point, &[]);
        let Some(at) = killed_at(&ended) else {
            assert_eq!(ended.status, DONE, "{ended:?}");
            println!("a return has {} points", point - 1);
            break;
        };
        println!("{at}");
        stage.trio.kill(place);
        MariaDb::boot(&stage.trio, place);
        Hook::until_done::<MariaDb>(&stage.trio, place, "restore", &[]);
        writers.go_on();
    }
    watch.end();
    stage.all_is_there(writers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_copy_of_lost_data_is_killed_at_each_point() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let mut stage = Stage::<MariaDb>::bare().await;
    let watch = Watch::begin::<MariaDb>(&stage.trio);
    by_socket(
        &stage.trio,
        0,
        "CREATE DATABASE zoo; CREATE TABLE zoo.late (number BIGINT); INSERT INTO zoo.late VALUES (7)",
    );
    for point in 1.. {
        by_socket(&stage.trio, 0, &format!("INSERT INTO app.records VALUES (1, {point})"));
        stage.take_away(Kind::Redeploy, 2);
        MariaDb::boot(&stage.trio, 2);
        let ended = Hook::killed::<MariaDb>(&stage.trio, 2, "restore", point, &[]);
        if let Some(at) = killed_at(&ended) {
            println!("{at}");
            stage.trio.kill(2);
            MariaDb::boot(&stage.trio, 2);
            let (status, said) =
                call(&stage, 0, "failover", &[("ALLCLEAR_AVOID_VMS", "db-1"), ("ALLCLEAR_MODE", "dry_run")]);
            // The member is a candidate only with all data.
            assert!(status != DONE || has_everything(&stage, point), "{at}: {said}");
        } else {
            assert_eq!(ended.status, DONE, "{ended:?}");
        }
        Hook::until_done::<MariaDb>(&stage.trio, 2, "restore", &[]);
        assert!(has_everything(&stage, point), "{ended:?}");
        if ended.status == DONE {
            println!("a copy has {} points", point - 1);
            break;
        }
    }
    watch.end();
}

fn has_everything(stage: &Stage<MariaDb>, rows: usize) -> bool {
    let late = by_socket(&stage.trio, 2, "SELECT number FROM zoo.late");
    let half =
        by_socket(&stage.trio, 2, "SELECT schema_name FROM information_schema.schemata WHERE schema_comment <> ''");
    MariaDb::rows(&stage.trio, 2).unwrap().len() == rows && late.trim() == "7" && half.is_empty()
}
