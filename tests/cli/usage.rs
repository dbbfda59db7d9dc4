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
