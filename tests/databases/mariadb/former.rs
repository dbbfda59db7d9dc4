//! A former primary is back, while the present primary does not answer for a moment.

use super::super::hook::{BLOCKED, FAILED, Hook};
use super::super::stage::{Kind, Stage};
use super::super::trio::{System as _, VMS, is_installed, until};
use super::{MariaDb, by_socket, call, follow, start};

/// A moment without an answer is long enough.
const HASTY: &[(&str, &str)] = &[("PATIENCE_SECONDS", "2")];

fn is_blocked(stage: &Stage<MariaDb>, place: usize, phase: &str) {
    let (status, said) = call(stage, place, phase, HASTY);
    let is_told = said.contains("db-0 may be a former primary") && said.contains("; db-1: ");
    assert!(status == BLOCKED && is_told, "{phase} on {}: {status:?} {said}", VMS[place]);
}

/// If the hooks believed the former primary, two members would accept writes, and replicas would follow the former primary.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_primary_is_not_believed_while_the_present_primary_is_silent() {
    crate::left_out::long!();
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let trio = &stage.trio;
    trio.kill(0);
    by_socket(trio, 1, "STOP SLAVE; RESET SLAVE ALL; SET GLOBAL read_only = 0");
    by_socket(trio, 2, "STOP SLAVE");
    follow(trio, 2, 1);
    until("a replica of the present primary", || match by_socket(trio, 2, "SHOW SLAVE STATUS") {
        said if said.contains("\tYes\tYes\t") && said.contains(trio.vms[1].port()) => Ok(()),
        said => Err(said),
    });
    start(trio, 0);

    // No write shows which of the two is the present primary.
    trio.freeze(1);
    is_blocked(&stage, 0, "restore");
    assert_eq!(by_socket(trio, 0, "SELECT @@read_only").trim(), "1");
    by_socket(trio, 0, "SET GLOBAL read_only = 0");
    for place in [0, 2] {
        for phase in ["restore", "ready"] {
            is_blocked(&stage, place, phase);
        }
    }
    let follows = by_socket(trio, 2, "SHOW SLAVE STATUS");
    assert!(follows.contains(&format!("\t{}\t", trio.vms[1].port())), "{follows}");
    trio.thaw(1);
    let (status, said) = call(&stage, 2, "restore", &[]);
    assert!(status == FAILED && said.contains("db-0 and db-1 are both writable"), "{status:?} {said}");
    by_socket(trio, 0, "SET GLOBAL read_only = 1");
    by_socket(trio, 1, "INSERT INTO app.records VALUES (1, 1)");
    for place in [0, 2] {
        Hook::until_done::<MariaDb>(trio, place, "restore", &[]);
        assert_eq!(by_socket(trio, place, "SELECT COUNT(*) FROM app.records").trim(), "1");
    }
    assert_eq!(stage.primary(), 1);
}

/// No replica proves the primary before the first member has returned.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn of_two_members_without_data_one_returns_first() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let mut stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 0, "INSERT INTO app.records VALUES (1, 1)");
    for place in [1, 2] {
        stage.take_away(Kind::Redeploy, place);
        MariaDb::boot(&stage.trio, place);
    }
    let (status, said) = call(&stage, 1, "restore", HASTY);
    assert!(status == BLOCKED && said.contains("db-0 may be a former primary"), "{status:?} {said}");
    for place in [1, 2] {
        let told = [HASTY[0], ("ALLCLEAR_EVENT_RESOURCES", "db-1 db-2")];
        Hook::until_done::<MariaDb>(&stage.trio, place, "restore", &told);
        assert_eq!(by_socket(&stage.trio, place, "SELECT COUNT(*) FROM app.records").trim(), "1");
    }
}
