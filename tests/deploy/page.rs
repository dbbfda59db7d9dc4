//! The steps of `deploy/docs/install.md` and `deploy/docs/upgrade.md`, as far as a quick check can go: the program has
//! the commands, and accepts the configuration. `fresh.rs` runs the steps.

use std::process::Command;

use super::{done, program, shipped};

/// The audience of each block of commands, and the commands.
fn blocks() -> Vec<(String, String)> {
    let pages = ["docs/install.md", "docs/upgrade.md"].map(|page| std::fs::read_to_string(shipped(page)).unwrap());
    let pages = pages.concat();
    let blocks = pages.split("\n```sh\n# ").skip(1).map(|rest| rest.split("\n```").next().unwrap());
    blocks.map(|block| block.split_once('\n').unwrap()).map(|(whom, text)| (whom.into(), text.into())).collect()
}

/// The words of every command of the program.
fn commands(script: &str) -> Vec<Vec<String>> {
    let lines = script.replace("\\\n", " ");
    let parts = lines.lines().flat_map(|line| line.split([';', '|', '&'])).map(str::trim);
    let own = |part: &str| {
        let part = part.strip_prefix("do ").unwrap_or(part);
        let part = if part.starts_with("runuser ") { part.split_once(" -- ")?.1 } else { part };
        let words = part.strip_prefix("allclear ")?.split_whitespace();
        Some(words.filter(|word| !word.contains('>')).map(str::to_owned).collect())
    };
    parts.filter_map(own).collect()
}

#[test]
fn every_command_of_the_page_is_one_that_the_program_knows() {
    let commands: Vec<_> = blocks().iter().flat_map(|(_, script)| commands(script)).collect();
    assert!(commands.len() >= 5, "{commands:?}");
    for command in commands {
        // nothing is executed, but every word before `--help` has to be right
        done(Command::new(program()).args(command).arg("--help"));
    }
    let wrong = Command::new(program()).args(["status", "--colour", "--help"]).output().unwrap();
    assert!(!wrong.status.success(), "a flag that there is not is seen");
}

#[test]
fn the_configuration_of_the_page_is_one_that_the_program_takes() {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(program(), folder.path().join("allclear")).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    for (_, script) in blocks().iter().filter(|(whom, _)| whom == "where the authority is kept") {
        done(Command::new("bash").args(["-ec", script]).current_dir(folder.path()).env("PATH", &path));
    }
    let blocks = blocks();
    let script = blocks.iter().find(|(_, script)| script.contains("allclear.toml <<END\n")).unwrap().1.as_str();
    let written = script.split_once("<<END\n").unwrap().1.split("\nEND\n").next().unwrap();
    let written = written.replace("$(hostname)", "db-0");
    let small = std::fs::read_to_string(shipped("allclear.toml")).unwrap();
    assert_eq!(small.split_once('\n').unwrap().1.trim_end(), written, "the shipped file, without its first comment");
    let certificates = folder.path().join("orders-ca/db-0");
    let text = written.replace("/etc/allclear/tls", &certificates.display().to_string());
    let file = folder.path().join("allclear.toml");
    std::fs::write(&file, text).unwrap();
    let shown = done(Command::new(program()).arg("check").arg("--config").arg(file));
    assert!(shown.contains("10.0.0.6:7420"), "{shown}");
}
