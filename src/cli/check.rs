//! `allclear check`: the configuration as it is understood, or every mistake in it, the certificates that it names among
//! them. Opens no port, asks nobody.

use std::io::Write as _;
use std::path::PathBuf;

use super::{Exit, say};
use crate::app::credentials;
use crate::config;
use crate::machine::id::VmName;

/// Prints the configuration with every default and override, or every mistake in it at once
#[derive(clap::Args)]
pub(super) struct Check {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
}

impl Check {
    pub(super) fn run(self) -> Exit {
        let config = match config::load(&self.config, config::environment()) {
            Ok(config) => config,
            Err(mistakes) => {
                say(mistakes);
                return Exit::Usage;
            }
        };
        let name = config.replica.name.as_ref().map(VmName::as_str);
        if let Some(Err(unfit)) = credentials::look(&config, name) {
            say(format_args!("{}: {unfit}", self.config.display()));
            return Exit::Usage;
        }
        match write!(std::io::stdout().lock(), "{config}") {
            Ok(()) => Exit::Done,
            Err(error) => {
                say(format_args!("the configuration is valid, but could not be printed: {error}"));
                Exit::Failed
            }
        }
    }
}
