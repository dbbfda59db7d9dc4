//! Writes are not stopped again and again for nothing.

use std::time::Duration;

use super::super::hook::{DONE, FAILED};
use super::super::stage::Stage;
use super::super::trio::{is_installed, until};
use super::super::writers::Writers;
use super::{MariaDb, by_socket, call, connect};

const LONG: Duration = Duration::from_mins(5);

/// A statement with minutes of writes keeps a server from being read-only, and all other writes wait as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn writes_are_stopped_in_vain_twice_for_one_event() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    by_socket(&stage.trio, 0, "CREATE TABLE app.slow (client INT, number BIGINT)");
    let writers = Writers::start::<MariaDb>(&stage.trio);
    let mut slow = connect(&stage.trio, 0, LONG).unwrap();
    let writing = std::thread::spawn(move || slow.ask("INSERT INTO app.slow SELECT 1, SLEEP(200)"));
    until("the statement", || match by_socket(&stage.trio, 0, "SHOW PROCESSLIST") {
        said if said.contains("SLEEP(200)") => Ok(()),
        said => Err(said),
    });
    let event = [("ALLCLEAR_EVENT_ID", "first")];
    for _ in 0..2 {
        let (status, said) = call(&stage, 0, "failover", &event);
        assert!(status == FAILED && said.contains("error 1205") && said.contains("taken back"), "{status:?} {said}");
        assert!(said.contains("INSERT INTO app.slow"), "{said}");
        assert_eq!(stage.primary(), 0);
    }
    let (status, said) = call(&stage, 0, "failover", &event);
    assert!(status == FAILED && said.contains("writes were stopped 2 times in vain"), "{status:?} {said}");
    assert!(said.contains("error 1205"), "{said}");
    let id = "SELECT id FROM information_schema.processlist WHERE info LIKE 'INSERT INTO app.slow%'";
    let id = by_socket(&stage.trio, 0, id);
    by_socket(&stage.trio, 0, &format!("KILL {id}"));
    writing.join().unwrap().unwrap_err();
    assert_eq!(call(&stage, 0, "failover", &event).0, FAILED);
    let (status, said) = call(&stage, 0, "failover", &[("ALLCLEAR_EVENT_ID", "second")]);
    assert_eq!(status, DONE, "{said}");
    stage.all_is_there(writers);
}

/// A user's session holds a lock of a table: a server waits for the lock before it is read-only.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_lock_of_a_table_is_told() {
    if !is_installed::<MariaDb>() {
        return;
    }
    let stage = Stage::<MariaDb>::bare().await;
    let mut work = connect(&stage.trio, 0, LONG).unwrap();
    work.ask("LOCK TABLES app.records WRITE").unwrap();
    let (status, said) = call(&stage, 0, "failover", &[("PATIENCE_SECONDS", "20")]);
    assert!(status == FAILED && said.contains("error 1205") && said.contains("app since"), "{status:?} {said}");
    assert_eq!(stage.primary(), 0);
    work.ask("UNLOCK TABLES").unwrap();
    let (status, said) = call(&stage, 0, "failover", &[]);
    assert_eq!(status, DONE, "{said}");
}
