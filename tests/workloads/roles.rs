//! A workload's role within its group comes from a program or from an address; no caller waits long for the answer.

use std::collections::BTreeMap;
use std::time::Duration;

use allclear::core::model::workload::Role;
use allclear::hooks::{HookCommand, HookEnvironment, RoleSource};
use allclear::http_client::Options;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Enough for a shell on a busy machine, and short for a program that never ends.
const PATIENCE: Duration = Duration::from_secs(2);

async fn ask(source: &RoleSource) -> Result<Role, String> {
    let facts = BTreeMap::from([("ALLCLEAR_VM", "db-0".to_owned())]);
    source.ask(&facts, &HookEnvironment::default(), PATIENCE).await
}

async fn ask_a_shell(line: &str) -> Result<Role, String> {
    let argv = ["/bin/sh", "-c", line].map(str::to_owned).into();
    ask(&RoleSource::Command(HookCommand { argv, ..HookCommand::default() })).await
}

#[tokio::test]
async fn a_program_tells_the_role_and_sees_nothing_but_what_it_needs() {
    assert_eq!(ask_a_shell("echo primary of $ALLCLEAR_VM").await, Ok(Role::Primary));
    assert_eq!(ask_a_shell("[ $ALLCLEAR_VM = db-0 ] && [ -z \"$CARGO\" ] && echo replica").await, Ok(Role::Replica));
    assert_eq!(ask_a_shell("echo '{\"role\": \"replica\"}'").await, Ok(Role::Replica));
}

#[tokio::test]
async fn what_a_program_says_that_fails_is_no_answer() {
    assert!(ask_a_shell("echo primary; exit 3").await.unwrap_err().contains('3'));
    assert!(ask_a_shell("echo perhaps").await.unwrap_err().contains("neither"));
    let nobody = RoleSource::Command(HookCommand { argv: vec!["/no/such/program".into()], ..HookCommand::default() });
    assert!(ask(&nobody).await.unwrap_err().contains("/no/such/program"));
}

#[tokio::test]
async fn a_program_that_never_ends_is_ended_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let line = format!("sleep 1000 & echo $! > {}; echo primary; wait", pid.display());
    assert!(ask_a_shell(&line).await.unwrap_err().contains("did not end within"));
    let pid = std::fs::read_to_string(&pid).unwrap();
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_there() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn what_a_program_says_that_never_stops_talking_is_no_answer() {
    let said = ask_a_shell("exec yes primary").await;
    assert!(said.is_err(), "{said:?}");
}

#[tokio::test]
async fn an_address_tells_the_role() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let source = RoleSource::Http {
        url: format!("http://{}/role", listener.local_addr().unwrap()),
        options: Options::default(),
    };
    tokio::spawn(async move {
        for answer in ["200 OK\r\ncontent-length: 7\r\n\r\nprimary", "503 No\r\ncontent-length: 7\r\n\r\nprimary"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await.unwrap();
            stream.write_all(format!("HTTP/1.1 {answer}").as_bytes()).await.unwrap();
        }
    });
    assert_eq!(ask(&source).await, Ok(Role::Primary));
    assert!(ask(&source).await.unwrap_err().contains("503"));
    assert!(ask(&source).await.is_err(), "nobody listens any more");
}
