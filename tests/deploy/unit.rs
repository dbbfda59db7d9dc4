//! The systemd unit and its drop-ins, checked by systemd.

use std::path::Path;
use std::process::Command;

use super::{has, program, shipped, told};

/// Below 2.0 of 10; `--threshold` counts in tenths.
const EXPOSURE_LIMIT: &str = "20";

fn keys() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(shipped("systemd/allclear.service")).unwrap();
    let pairs = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
    pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn value(wanted: &str) -> Option<String> {
    keys().into_iter().rev().find_map(|(key, value)| (key == wanted).then_some(value))
}

/// Installs the unit, with or without a drop-in.
fn installed(folder: &Path, drop_in: Option<&Path>) {
    let text = std::fs::read_to_string(shipped("systemd/allclear.service")).unwrap();
    let unit = folder.join("allclear.service");
    std::fs::write(&unit, text.replace("/usr/bin/allclear", program())).unwrap();
    if let Some(drop_in) = drop_in {
        std::fs::create_dir(folder.join("allclear.service.d")).unwrap();
        std::fs::copy(drop_in, folder.join("allclear.service.d/10.conf")).unwrap();
    }
}

fn drop_ins() -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(shipped("systemd")).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|end| end == "conf")).collect()
}

#[test]
fn the_unit_is_exposed_by_less_than_two_of_ten() {
    if !has("systemd-analyze") {
        return;
    }
    let judged = |threshold: &str| {
        let mut command = Command::new("systemd-analyze");
        command.args(["security", "--offline=yes", "--no-pager", "--threshold", threshold]);
        command.arg(shipped("systemd/allclear.service")).output().unwrap()
    };
    let output = judged(EXPOSURE_LIMIT);
    assert!(output.status.success(), "{}", told(&output));
    assert!(!judged("10").status.success(), "the judge must be able to say no");
}

#[test]
fn systemd_understands_every_line_of_the_unit_and_its_drop_ins() {
    if !has("systemd-analyze") {
        return;
    }
    let verified = |folder: &Path| {
        let mut command = Command::new("systemd-analyze");
        command.args(["verify", "--man=no", "--recursive-errors=no"]).arg(folder.join("allclear.service"));
        told(&command.output().unwrap())
    };
    let drop_ins = drop_ins();
    assert_eq!(drop_ins.len(), 2, "{drop_ins:?}");
    for drop_in in std::iter::once(None).chain(drop_ins.iter().map(|path| Some(path.as_path()))) {
        let folder = tempfile::tempdir().unwrap();
        installed(folder.path(), drop_in);
        assert_eq!(verified(folder.path()), "", "{drop_in:?}");
    }
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.conf");
    std::fs::write(&wrong, "[Service]\nProtectSytem=strict\n").unwrap();
    installed(folder.path(), Some(&wrong));
    assert!(verified(folder.path()).contains("ProtectSytem"), "what it does not understand it says");
}

#[test]
fn nothing_in_the_unit_ends_hooks_or_makes_replicas_forget_boots_and_users() {
    assert_eq!(value("KillMode").as_deref(), Some("process"), "hooks outlive the replica");
    // these keys would hide the boot's number, make all users look alike, and remove a database's shared memory
    for key in ["ProcSubset", "PrivateUsers", "RemoveIPC", "DynamicUser"] {
        assert_eq!(value(key), None, "{key}");
    }
    let exit_status = value("RestartPreventExitStatus").unwrap();
    let mut wrong = Command::new(program());
    wrong.args(["run", "--config", "/nonexistent"]);
    let status = wrong.output().unwrap().status.code().unwrap();
    assert_eq!(exit_status, status.to_string(), "a configuration that cannot be used is not tried for ever");
}

#[test]
fn a_replica_may_stop_and_start_in_the_time_that_the_unit_gives() {
    let seconds = |key: &str| value(key).unwrap().trim_end_matches('s').parse::<u64>().unwrap();
    // twice the time limit of `app`
    assert!(seconds("TimeoutStopSec") >= 8);
    assert_eq!(value("Type").as_deref(), Some("notify"));
    assert_eq!(value("NotifyAccess").as_deref(), Some("main"), "no hook may speak for the replica");
}
