//! The toy databases of `deploy/examples` work as their purpose demands.

use std::fs;
use std::path::Path;

use allclear::wire::pb::allclear::workload::v1;
use allclear::wire::pb::allclear::workload::v1::{Intent, Phase, Role};
use tokio::process::{Child, Command};

use crate::clients::bench::{Tongue, process, python};
use crate::clients::replica::{Replica, Session, run, step};

struct Member {
    session: Session,
    _replica: Replica,
    _process: Child,
}

async fn member(tongue: &Tongue, vm: &str, folder: &Path) -> Member {
    let socket = folder.join(format!("{vm}.socket"));
    let mut replica = Replica::new(&socket);
    let mut command = match tongue {
        Tongue::Rust => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_allclear"));
            command.arg("demo-kv");
            command
        }
        Tongue::Python(..) => process(tongue, "", "deploy/examples/kv.py"),
    };
    command.args([vm.as_ref(), socket.as_os_str(), folder.as_os_str()]);
    let process = command.kill_on_drop(true).spawn().unwrap();
    Member { session: replica.session().await, _replica: replica, _process: process }
}

/// Waits until the member reports this role, in its first message or later.
async fn becomes(session: &mut Session, role: Role) {
    // An outcome may be sent once more before the acknowledgement arrives.
    while session.hello.role() != role {
        session.said().await.expect("it goes on");
    }
}

async fn switches_and_loses_nothing(first: &Tongue, second: &Tongue) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let mut db_0 = member(first, "db-0", path).await;
    let mut db_1 = member(second, "db-1", path).await;
    let (old, new) = (&mut db_0.session, &mut db_1.session);
    becomes(old, Role::Primary).await;
    becomes(new, Role::Replica).await;

    new.step(&run("a1", Phase::Failover)).await;
    assert_eq!(new.settled("a1").await, "not_applicable");
    old.step(&step("a2", Phase::Failover, Intent::Confirm)).await;
    assert_eq!(old.settled("a2").await, "not_done");
    old.step(&run("a3", Phase::Checkpoint)).await;
    assert_eq!(old.settled("a3").await, "done");
    old.step(&run("a4", Phase::Failover)).await;
    assert_eq!(old.settled("a4").await, "blocked: there is no member to switch to");
    let saved = || {
        let text = fs::read_to_string(path.join("primary")).unwrap();
        let (primary, count) = text.split_once(' ').unwrap();
        (primary.to_owned(), count.parse::<u64>().unwrap())
    };
    let (_, before) = saved();
    assert!(before > 0);

    old.step(&v1::Step { prefer: vec!["db-1".into()], ..run("a5", Phase::Failover) }).await;
    assert_eq!(old.settled("a5").await, "done");
    let (primary, at_the_switch) = saved();
    assert_eq!(primary, "db-1");
    assert!(at_the_switch >= before);
    becomes(new, Role::Primary).await;
    becomes(old, Role::Replica).await;
    old.step(&step("a6", Phase::Failover, Intent::Confirm)).await;
    assert_eq!(old.settled("a6").await, "done");
    old.step(&run("a7", Phase::Restore)).await;
    assert_eq!(old.settled("a7").await, "done");
    new.step(&run("a8", Phase::Checkpoint)).await;
    assert_eq!(new.settled("a8").await, "done");
    assert!(saved().1 > at_the_switch);
}

#[tokio::test]
async fn a_switch_in_rust_loses_nothing() {
    switches_and_loses_nothing(&Tongue::Rust, &Tongue::Rust).await;
}

#[tokio::test]
async fn a_switch_in_python_loses_nothing() {
    if let Some(python) = python() {
        switches_and_loses_nothing(&python, &python).await;
    }
}

#[tokio::test]
async fn a_switch_between_languages_loses_nothing() {
    if let Some(python) = python() {
        switches_and_loses_nothing(&Tongue::Rust, &python).await;
        switches_and_loses_nothing(&python, &Tongue::Rust).await;
    }
}
