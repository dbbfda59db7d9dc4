//! The tests that were left out, for lack of time or of a tool. The last test of the program prints a list, with a
//! command for each lack.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// A tool, right or time, and the command that provides the tool, right or time.
type Lack = (String, &'static str);

static LEFT_OUT: Mutex<BTreeMap<Lack, usize>> = Mutex::new(BTreeMap::new());

const INSTALLS_ALL: &str = ".ci/tools";
const AS_ROOT: &str = "sudo -E env PATH=\"$PATH\" cargo test --test processes";
const AS_USER: &str = "cargo test --test processes, without sudo";
pub(crate) const RUNS_LONG: &str = "ALLCLEAR_LONG=1 cargo test --test processes";
/// The variable has the number of approvals that are measured.
const FLOOD: &str = "ALLCLEAR_FLOOD";
pub(crate) const RUNS_FLOODS: &str = "ALLCLEAR_FLOOD=3 cargo test --test processes flood::";

/// Ends a long test, unless long tests are wanted: `ALLCLEAR_LONG` or `CI` is set.
macro_rules! long {
    () => {
        if crate::left_out::is_unwanted(crate::left_out::runs_long_tests(), "time", crate::left_out::RUNS_LONG) {
            return;
        }
    };
}
pub(crate) use long;

/// Ends a flood, unless floods are wanted: each has the machine to itself for half a minute.
macro_rules! flood {
    () => {
        if crate::left_out::is_unwanted(
            crate::left_out::runs_floods(),
            "a machine to itself",
            crate::left_out::RUNS_FLOODS,
        ) {
            return;
        }
    };
}
pub(crate) use flood;

pub(crate) fn runs_floods() -> bool {
    std::env::var_os(FLOOD).is_some()
}

/// Whether the test ends at once. Counts the test.
pub(crate) fn is_unwanted(is_wanted: bool, lack: &str, command: &'static str) -> bool {
    if !is_wanted {
        count(lack, command);
    }
    !is_wanted
}

pub(crate) fn runs_long_tests() -> bool {
    ["CI", "ALLCLEAR_LONG"].iter().any(|name| std::env::var_os(name).is_some())
}

/// Counts a test without a tool. Where CI is set, the absence is a failure.
pub(crate) fn lacks(tool: &str) {
    assert!(std::env::var_os("CI").is_none(), "{tool} is missing, and CI is set: {INSTALLS_ALL} installs it");
    count(tool, INSTALLS_ALL);
}

/// Whether the test runs as root. Counts a test of another user.
pub(crate) fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if !is_root {
        count("the rights of root", AS_ROOT);
    }
    is_root
}

/// Whether the test runs as an ordinary user. Counts a test of root.
pub(crate) fn is_ordinary_user() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    if is_root {
        count("an ordinary user", AS_USER);
    }
    !is_root
}

/// Counts a test without a right in this kernel or container.
pub(crate) fn is_forbidden(what: &str) {
    count(what, AS_ROOT);
}

fn count(lack: &str, command: &'static str) {
    let mut left_out = LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner);
    *left_out.entry((lack.to_owned(), command)).or_default() += 1;
}

/// A line for each command, with the number of tests and the lacks.
fn list(left_out: &BTreeMap<Lack, usize>) -> String {
    let mut by_command: BTreeMap<&str, (usize, Vec<&str>)> = BTreeMap::new();
    for ((lack, command), tests) in left_out {
        let (all, lacks) = by_command.entry(command).or_default();
        *all += tests;
        lacks.push(lack);
    }
    let mut text = String::new();
    for (command, (tests, lacks)) in by_command {
        let tests = if tests == 1 { "1 test".to_owned() } else { format!("{tests} tests") };
        writeln!(text, "left out: {tests} for lack of {}. Run: {command}", lacks.join(", ")).unwrap();
    }
    text
}

/// Tests begin in the order of their names, so every other test has begun before this one.
pub(crate) fn print() {
    let text = list(&LEFT_OUT.lock().unwrap_or_else(PoisonError::into_inner));
    // The test harness captures `println`, and no direct write.
    let _ = write!(std::io::stderr(), "{text}");
}

#[test]
fn the_list_has_a_line_for_each_command() {
    let lack = |lack: &str, command| (lack.to_owned(), command);
    let left_out = BTreeMap::from([
        (lack("etcd", INSTALLS_ALL), 2),
        (lack("promtool", INSTALLS_ALL), 1),
        (lack("the rights of root", AS_ROOT), 1),
    ]);
    assert_eq!(
        list(&left_out),
        "left out: 3 tests for lack of etcd, promtool. Run: .ci/tools\n\
         left out: 1 test for lack of the rights of root. Run: sudo -E env PATH=\"$PATH\" cargo test --test processes\n"
    );
    assert_eq!(list(&BTreeMap::new()), "");
}
