//! Claim: the contents of `deploy` can be installed and work as documented: the unit and its notifications, the
//! package, the manifests, and the steps of `deploy/docs`, which are run unchanged.

mod documents;
mod empty_root;
mod fresh;
mod image;
mod manifests;
mod notify;
mod package;
mod page;
mod rpm;
mod unit;

use crate::cluster::cloud;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file or folder of `deploy`.
fn shipped(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(path)
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_allclear")
}

/// The output on both streams; the command must succeed.
fn done(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", told(&output));
    told(&output)
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// True if the tool exists.
fn has(tool: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&folders).any(|folder| folder.join(tool).exists());
    if !found {
        crate::left_out::lacks(tool);
    }
    found
}
