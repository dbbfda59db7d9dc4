//! Help, version and wrong usage.

use std::io::Read as _;
use std::os::unix::net::UnixListener;
use std::time::Duration;

use super::{allclear, stderr, stdout};

#[test]
fn wrong_usage_ends_with_2_and_says_so_on_standard_error() {
    for arguments in [&["chek"][..], &["check"], &["check", "--config"], &[]] {
        let output = allclear(arguments, &[]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert_eq!(stdout(&output), "", "{arguments:?}");
        assert!(stderr(&output).contains("--help"), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn help_and_version_are_results() {
    let help = allclear(&["--help"], &[]);
    assert_eq!((help.status.code(), stderr(&help)), (Some(0), ""));
    assert!(stdout(&help).contains("check"), "{}", stdout(&help));
    let version = allclear(&["--version"], &[]);
    assert_eq!(stdout(&version), format!("allclear {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn members_and_leadership_are_asked_of_a_replica_and_wrong_usage_ends_with_2() {
    for arguments in [&["member"][..], &["member", "add", "db-3"], &["member", "remove"], &["leader"]] {
        let output = allclear(arguments, &[]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{arguments:?}");
    }
    let nobody = ["--endpoint", "/nowhere/operator.sock"];
    let commands =
        [&["member", "list"][..], &["member", "add", "a", "a:1"], &["member", "remove", "a"], &["leader", "transfer"]];
    for arguments in commands {
        let output = allclear(&[arguments, &nobody].concat(), &[]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(3), ""), "{arguments:?}");
        assert!(stderr(&output).contains("/nowhere/operator.sock"), "{arguments:?}: {}", stderr(&output));
    }
    let check = allclear(&[&["status", "--check"][..], &nobody].concat(), &[]);
    let line = stdout(&check);
    assert!(line.starts_with("UNKNOWN: no replica answers at /nowhere/operator.sock: "), "{line}");
    assert_eq!((check.status.code(), line.lines().count()), (Some(3), 1), "{line}");
}

#[test]
fn a_change_whose_connection_breaks_may_be_done_and_a_query_has_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("operator");
    let listener = UnixListener::bind(&path).unwrap();
    // Reads requests, and answers none.
    std::thread::spawn(move || {
        for mut caller in listener.incoming().flatten() {
            caller.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
            let mut taken = [0; 4096];
            while caller.read(&mut taken).is_ok_and(|count| count > 0) {}
        }
    });
    let run = |arguments: &[&str]| {
        let output = allclear(&[arguments, &["--endpoint", path.to_str().unwrap()]].concat(), &[]);
        (output.status.code(), stderr(&output).to_owned())
    };
    let (code, said) = run(&["pause", "--until", "2h", "--reason", "a backup"]);
    assert!(code == Some(1) && said.contains("the change may or may not be done: see `allclear status`"), "{said}");
    let (code, said) = run(&["member", "list"]);
    assert!(code == Some(3) && said.contains("no replica answers at"), "{said}");
}
