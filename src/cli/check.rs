//! `allclear check`: the configuration as it is understood, or every mistake in it. Opens no port, asks nobody.

use std::io::Write as _;
use std::path::PathBuf;

use super::{Exit, say};
use crate::config;

/// Prints the configuration with every default and override, or every mistake in it at once
#[derive(clap::Args)]
pub(super) struct Check {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Check {
    pub(super) fn run(self) -> Exit {
        match config::load(&self.config, config::environment()) {
            Ok(config) => match write!(std::io::stdout().lock(), "{config}") {
                Ok(()) => Exit::Done,
                Err(error) => {
                    say(format_args!("the configuration is valid, but could not be printed: {error}"));
                    Exit::Failed
                }
            },
            Err(mistakes) => {
                say(mistakes);
                Exit::Usage
            }
        }
    }
}
