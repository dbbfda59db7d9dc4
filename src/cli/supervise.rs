//! `allclear supervise`: the small process between a replica and one hook; started by `allclear run`, not by people.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::workloads;

/// Runs the hook of one attempt and leaves its outcome in the attempt's folder
#[derive(clap::Args)]
pub(super) struct Supervise {
    folder: PathBuf,
}

impl Supervise {
    pub(super) fn run(&self) -> ExitCode {
        workloads::supervise(&self.folder)
    }
}
