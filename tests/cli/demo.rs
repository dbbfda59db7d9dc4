//! `allclear demo`: the main task, as a user sees the command.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use allclear::testbed::processes;
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{allclear, program, stage, stderr, stdout};

/// Enough for all hooks on a machine that does much else.
const NOTICE: [&str; 2] = ["--notice", "1m"];

fn play(arguments: &[&str]) -> (Output, Value) {
    play_with(arguments, &[])
}

/// Runs the demo with its own folder for temporary files, and asserts that nothing is left.
pub(crate) fn play_with(arguments: &[&str], environment: &[(&str, &str)]) -> (Output, Value) {
    let _stage = stage();
    let folder = tempfile::tempdir().unwrap();
    // Servers run as another user, and this user needs access through the folder.
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
    let temporary = folder.path().to_str().unwrap();
    let notice: &[&str] = if arguments.contains(&"--notice") { &[] } else { &NOTICE };
    let arguments = [&["demo", "--json"], notice, arguments].concat();
    let output = allclear(&arguments, &[&[("TMPDIR", temporary)], environment].concat());
    let report: Value = serde_json::from_str(stdout(&output)).unwrap();
    assert_eq!(report["missing"], Value::Array(Vec::new()), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    nothing_is_left(folder.path());
    (output, report)
}

pub(crate) fn nothing_is_left(folder: &Path) {
    let left: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(left, Vec::<std::path::PathBuf>::new());
    assert_eq!(processes_that_name(folder), Vec::<String>::new());
    assert_eq!(processes::of(folder), Vec::<i32>::new());
}

pub(crate) fn processes_that_name(folder: &Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let entries = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path().join("cmdline"));
    let arguments = entries.filter_map(|path| std::fs::read(path).ok());
    let arguments = arguments.map(|bytes| String::from_utf8_lossy(&bytes).replace('\0', " "));
    arguments.filter(|arguments| arguments.contains(folder)).collect()
}

pub(crate) fn of_phase<'a>(event: &'a Value, phase: &str) -> Vec<&'a Value> {
    event["hooks"].as_array().unwrap().iter().filter(|hook| hook["phase"] == phase).collect()
}

#[test]
fn every_hook_is_done_and_one_all_clear_is_given() {
    let (output, report) = play(&[]);
    assert_eq!(report["ok"], true);
    let [event] = report["events"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&event["stage"], &event["start_cause"]), (&"closed".into(), &"approved".into()));
    assert_eq!((&event["posts_received"], &event["posts_taken"]), (&1.into(), &1.into()));
    assert_eq!(event["approvals"].as_array().unwrap().len(), 1);
    for phase in ["checkpoint", "failover", "drain", "shutdown", "restore"] {
        let hooks = of_phase(event, phase);
        assert_eq!(hooks.len(), 1, "{phase}: {report}");
        assert_eq!(hooks[0]["outcome"], "done", "{phase}");
    }
    let times: Vec<f64> =
        stderr(&output).lines().filter_map(|line| line.split_once(" s  ")?.0.trim().parse().ok()).collect();
    assert!(times.len() > 15 && times.is_sorted(), "{}", stderr(&output));
    for told in ["announces Redeploy by User of db-0", "receives the approval from db-", "closed"] {
        assert!(stderr(&output).contains(told), "{told}: {}", stderr(&output));
    }
}

#[test]
fn a_demo_ends_with_what_to_do_next() {
    crate::left_out::long!();
    let _stage = stage();
    let folder = tempfile::tempdir().unwrap();
    let arguments = [&["demo"], NOTICE.as_slice()].concat();
    let output = allclear(&arguments, &[("TMPDIR", folder.path().to_str().unwrap())]);
    let told = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{told}\n{}", stderr(&output));
    let next = told.split_once("\nNext:\n").expect(told).1;
    assert!(next.contains(" demo --keep") && next.contains("docs/install.md"), "{next}");
    assert!(!told.contains('\x1b'), "{told}");
    assert_eq!(told.matches("policy chose the treatment").count(), 1, "{told}");
    assert_eq!(told.matches("was first seen").count(), 1, "{told}");
}

#[test]
fn a_hook_goes_on_when_the_leader_is_killed_and_is_not_run_again() {
    crate::left_out::long!();
    let (_, report) = play(&["--kill-leader", "--notice", "3m"]);
    let takeover = &report["takeover"];
    assert_ne!(takeover["new_leader"], takeover["old_leader"]);
    assert!(takeover["new_leader"].is_string() && takeover["restarted_after_s"].is_number(), "{takeover}");
    let event = &report["events"][0];
    // Leadership had left the VM of the event.
    assert_ne!(event["resources"][0], takeover["old_leader"]);
    assert_eq!((&event["posts_received"], &event["posts_taken"]), (&1.into(), &1.into()));
    let hooks = of_phase(event, "checkpoint");
    assert_eq!(hooks.len(), 1, "{report}");
    assert_eq!(hooks[0]["outcome"], "done");
}

#[test]
fn maintenance_that_is_called_off_is_put_back() {
    crate::left_out::long!();
    let (_, report) = play(&["--scenario", "canceled-maintenance"]);
    let event = &report["events"][0];
    assert_eq!((&event["platform"], &event["stage"]), (&"cancelled".into(), &"closed".into()));
    assert_eq!(of_phase(event, "restore").len(), 1, "{report}");
}

#[test]
fn a_deletion_ends_though_those_who_are_deleted_hear_of_nothing_any_more() {
    crate::left_out::long!();
    let (_, report) = play(&["--scenario", "terminate"]);
    let events = report["events"].as_array().unwrap();
    assert!(events.iter().all(|event| event["stage"] == "closed" && event["posts_taken"] == 1), "{report}");
}

#[test]
fn a_notice_that_is_too_short_for_the_hooks_is_told_with_what_to_do() {
    crate::left_out::long!();
    let _stage = stage();
    let folder = tempfile::tempdir().unwrap();
    let output = allclear(&["demo", "--notice", "5s"], &[("TMPDIR", folder.path().to_str().unwrap())]);
    assert_eq!(output.status.code(), Some(1), "{}", stdout(&output));
    assert!(stdout(&output).contains("Try a longer notice, with --notice 2m"), "{}", stdout(&output));
}

#[test]
fn a_notice_that_cannot_be_used_starts_nothing() {
    for notice in ["4s", "0s", "soon", "2h", "500000000000y"] {
        let output = allclear(&["demo", "--notice", notice], &[]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
        assert!(stderr(&output).contains("--notice <DURATION>"), "{}", stderr(&output));
    }
}

#[test]
fn an_unknown_scenario_starts_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().to_str().unwrap();
    let output = allclear(&["demo", "--scenario", "redeploi"], &[("TMPDIR", temporary)]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    assert!(stderr(&output).contains("did you mean redeploy?"), "{}", stderr(&output));
    nothing_is_left(folder.path());
}

/// The demo is stopped while hooks run; such hooks continue by themselves if only their replicas end.
#[test]
fn nothing_is_left_of_a_demo_that_is_stopped() {
    let _stage = stage();
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(program());
    command.args(["demo", "--kill-leader"]).env_clear().env("TMPDIR", folder.path()).stdin(Stdio::null());
    let mut demo = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let hook_runs = || processes_that_name(folder.path()).iter().any(|arguments| arguments.contains("demo-hook"));
    let saw_a_hook = super::comes_true(hook_runs);
    super::signal(demo.id(), Signal::SIGINT);
    let status = demo.wait().unwrap();
    assert!(saw_a_hook);
    assert_eq!(status.code(), Some(1));
    nothing_is_left(folder.path());
}
