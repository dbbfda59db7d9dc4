//! `allclear check` prints the effective configuration, or every mistake in the configuration and in the certificates
//! that the file names. The command opens no port and connects to no other process. Warnings go to standard error.

use std::io::Write as _;

use super::{Configured, Exit, failed, misused, say};
use allclear_core::model::id::VmName;
use allclear_server::app::{confidence, credentials, doubts};

pub(super) fn check(file: &Configured) -> Result<(), Exit> {
    let checked = printed(file);
    match checked {
        Ok(()) => say("valid"),
        Err(Exit::Usage) => say("invalid"),
        Err(_) => {}
    }
    checked
}

fn printed(file: &Configured) -> Result<(), Exit> {
    let config = file.load()?;
    let name = config.replica.name.as_ref().map(VmName::as_str);
    if let Some(Err(unfit)) = credentials::look(&config, name) {
        return Err(misused(format_args!("{}: {unfit}", file.path.display())));
    }
    for told in confidence::told_to_all(&config, &file.path).into_iter().chain(confidence::too_short(&config)) {
        say(told);
    }
    for doubt in doubts::doubts(&config) {
        say(format_args!("warning: {}; {}", doubt.what, doubt.remedy));
    }
    let printed = write!(std::io::stdout().lock(), "{config}");
    printed.map_err(|error| failed(format_args!("the configuration is valid, but could not be printed: {error}")))
}
