//! `allclear demo --with`: real servers, where they are installed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use allclear::testbed::{POSTGRESQL, REDIS, System, processes, programs};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::demo::{nothing_is_left, of_phase, play_with};
use super::{allclear, program, stage, stderr, stdout};

const PATH: (&str, &str) = ("PATH", "/usr/bin:/bin");

/// If a server is missing, the demo reports this and starts nothing.
fn is_installed(name: &str, system: &System) -> bool {
    let Some(missing) = programs::missing(system.programs) else { return true };
    let output = allclear(&["demo", "--with", name], &[PATH]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
    assert!(stderr(&output).contains(&format!("there is no {missing}")), "{}", stderr(&output));
    assert!(stderr(&output).contains("apt install"), "{}", stderr(&output));
    crate::left_out::lacks(missing);
    false
}

/// A temporary folder that the servers' user can pass through.
fn folder_to_pass() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

#[test]
fn the_primary_of_postgresql_moves_before_its_machine_goes_down_and_no_write_is_lost() {
    crate::left_out::long!();
    if !is_installed("postgres", &POSTGRESQL) {
        return;
    }
    let (output, report) = play_with(&["--with", "postgres", "--notice", "2m"], &[PATH]);
    let writes = &report["writes"];
    assert!(writes["acknowledged"].as_u64().unwrap() > 0, "{writes}");
    let members = writes["members"].as_array().unwrap();
    assert_eq!(members.len(), 3, "{writes}");
    for wrong in ["lost", "repeated", "invented"] {
        assert!(members.iter().all(|member| member[wrong] == 0), "{writes}");
    }
    assert!(writes["longest_pause_ms"].is_number(), "{writes}");
    let [step] = report["moves"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(step["from"], "db-0");
    let event = &report["events"][0];
    assert_eq!((&event["posts_received"], &event["posts_taken"]), (&1.into(), &1.into()));
    for phase in ["failover", "restore"] {
        let is_done = |hook: &&Value| hook["outcome"] == "done";
        assert!(of_phase(event, phase).last().is_some_and(is_done), "{phase}: {report}");
    }
    for line in ["db-0 is the database's primary", "the primary has moved from here to", "goes down", "is up again"] {
        assert!(stderr(&output).contains(line), "{line}: {}", stderr(&output));
    }
}

#[test]
fn a_demo_of_redis_can_be_read_where_there_is_no_terminal() {
    crate::left_out::long!();
    if !is_installed("redis", &REDIS) {
        return;
    }
    let _stage = stage();
    let folder = folder_to_pass();
    let temporary = folder.path().to_str().unwrap();
    let arguments = ["demo", "--with", "redis", "--scenario", "user-reboot", "--notice", "2m"];
    let output = allclear(&arguments, &[PATH, ("TMPDIR", temporary)]);
    assert_eq!(output.status.code(), Some(0), "{}\n{}", stdout(&output), stderr(&output));
    for line in [
        "Redis acknowledged ",
        "pause when the primary moved",
        "longest pause of all",
        "every acknowledged write exists exactly once, on db-0, db-1 and db-2",
        "All is well",
    ] {
        assert!(stdout(&output).contains(line), "{line}: {}", stdout(&output));
    }
    assert!(!stdout(&output).contains('\x1b'), "{}", stdout(&output));
    nothing_is_left(folder.path());
}

#[test]
fn no_server_is_left_of_a_demo_that_is_stopped() {
    // In the middle of the longest setup, and once clients write.
    is_stopped("postgres", &POSTGRESQL, |folder| !processes::of(folder).is_empty());
    is_stopped("redis", &REDIS, |folder| folder.join("servers/db-2/data/appendonlydir").exists());
}

fn is_stopped(name: &str, system: &System, is_time: impl Fn(&Path) -> bool) {
    if !is_installed(name, system) {
        return;
    }
    let _stage = stage();
    let folder = folder_to_pass();
    let mut command = Command::new(program());
    command.args(["demo", "--with", name]).env_clear().envs([PATH]).env("TMPDIR", folder.path());
    let mut demo = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let of_demo = |entry: std::io::Result<std::fs::DirEntry>| Some(entry.ok()?.path());
    let is_time = || std::fs::read_dir(folder.path()).unwrap().filter_map(of_demo).any(|path| is_time(&path));
    let saw_it = super::comes_true(is_time);
    super::signal(demo.id(), Signal::SIGINT);
    let status = demo.wait().unwrap();
    assert!(saw_it);
    assert_eq!(status.code(), Some(1));
    nothing_is_left(folder.path());
}

#[test]
fn machines_that_do_not_come_back_are_not_shown_with_servers() {
    for scenario in ["terminate", "preempt", "hardware-failure"] {
        let output = allclear(&["demo", "--with", "postgres", "--scenario", scenario], &[]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
        assert!(stderr(&output).contains("use another scenario"), "{}", stderr(&output));
    }
}
