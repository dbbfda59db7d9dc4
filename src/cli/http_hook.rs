//! `allclear http-hook`: a hook that asks a server over HTTP; started by supervisors, not by people.

use std::process::ExitCode;

use crate::workloads::{self, Adapter};

/// Asks a server to do what a hook is for, and answers as a command hook does
#[derive(clap::Args)]
pub(super) struct HttpHook {
    /// Whose answers are expected: none, patroni
    #[arg(long, default_value = "none", value_parser = adapter)]
    adapter: Adapter,
    url: String,
}

impl HttpHook {
    pub(super) fn run(&self) -> ExitCode {
        workloads::http_hook(&self.url, self.adapter)
    }
}

fn adapter(word: &str) -> Result<Adapter, String> {
    Adapter::from_word(word).ok_or_else(|| "it is none or patroni".to_owned())
}
