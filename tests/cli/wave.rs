//! `allclear demo` with a database as a session workload: the example, in both languages, and a program that is no
//! database.

use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use super::demo::{nothing_is_left, of_phase, play_with, processes_that_name};
use super::{allclear, program, python, stage, stderr, stdout};

/// Three events, each with its all-clear and its hooks, and a primary moved out of their way.
fn is_a_wave_that_went_well(report: &Value, told: &str) {
    assert_eq!(report["ok"], true);
    let events = report["events"].as_array().unwrap();
    assert_eq!(events.len(), 3);
    for event in events {
        assert_eq!((&event["posts_received"], &event["posts_taken"]), (&1.into(), &1.into()));
        assert_eq!(of_phase(event, "checkpoint").len(), 1, "{report}");
        // A member moved away is restored; a member to which nothing was done is not restored.
        let (moved, restored) = (of_phase(event, "failover"), of_phase(event, "restore"));
        assert_eq!(moved.len(), restored.len(), "{report}");
        assert!(restored.iter().all(|restore| restore["outcome"] == "done"), "{report}");
    }
    // The primary begins on the VM of the first event.
    let moves = report["moves"].as_array().unwrap();
    assert_eq!(moves[0]["from"], "db-0");
    assert!(moves.len() <= 2, "{report}");
    assert_eq!(of_phase(&events[0], "failover")[0]["outcome"], "done", "{report}");
    for line in ["db-0 is the database's primary", "the primary has moved from here to", "is back as"] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn a_wave_moves_the_primary_of_the_example_twice_at_the_most() {
    crate::left_out::long!();
    let (output, report) = play_with(&["--scenario", "wave"], &[]);
    is_a_wave_that_went_well(&report, stderr(&output));
}

#[test]
fn the_example_in_python_takes_part_as_well() {
    crate::left_out::long!();
    let Some((interpreter, package)) = python::installed() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/examples/kv.py");
    let member = format!("{} {}", interpreter.display(), script.display());
    let environment = [("PYTHONPATH", package.to_str().unwrap())];
    let (output, report) = play_with(&["--scenario", "wave", "--workload", &member], &environment);
    is_a_wave_that_went_well(&report, stderr(&output));
}

#[test]
fn a_program_that_is_no_database_ends_the_demo_with_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().to_str().unwrap();
    let output = allclear(&["demo", "--workload", "ls --no-such-option"], &[("TMPDIR", temporary), ("PATH", "/bin")]);
    assert_eq!((output.status.code(), stdout(&output).lines().count()), (Some(1), 2));
    for told in ["the database on db-0 ended unexpectedly", "no-such-option"] {
        assert!(stderr(&output).contains(told), "{told}: {}", stderr(&output));
    }
    nothing_is_left(folder.path());
}

/// A shell that starts the database and waits for the database would leave the database behind.
#[test]
fn no_member_is_left_of_a_demo_that_is_stopped() {
    let _stage = stage();
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("member");
    std::fs::write(&script, format!("{} demo-kv \"$@\" & wait", program())).unwrap();
    let temporary = folder.path().join("temporary");
    std::fs::create_dir(&temporary).unwrap();
    let mut command = Command::new(program());
    command.args(["demo", "--workload", &format!("/bin/sh {}", script.display())]);
    command.env_clear().env("TMPDIR", &temporary).stdin(Stdio::null());
    let mut demo = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let members = || processes_that_name(&temporary).iter().filter(|arguments| arguments.contains(" demo-kv ")).count();
    let saw_all = super::comes_true(|| members() == 3);
    super::signal(demo.id(), Signal::SIGINT);
    let status = demo.wait().unwrap();
    assert!(saw_all);
    assert_eq!(status.code(), Some(1));
    nothing_is_left(&temporary);
}

#[test]
fn a_leader_cannot_be_killed_during_hooks_that_take_no_time() {
    let output = allclear(&["demo", "--kill-leader", "--workload", "example"], &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    assert!(stderr(&output).contains("use hooks"), "{}", stderr(&output));
}
