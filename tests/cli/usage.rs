//! Help, version and wrong usage.

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
}
