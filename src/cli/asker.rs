//! The name of the person who gives a command, for the record.

use allclear_server::config;

/// Names longer than this are no names of people.
const LONGEST: usize = 64;

#[derive(clap::Args)]
pub(super) struct Asker {
    /// Your name, kept in the log beside your reason [default: your login name; under sudo, your own]
    #[arg(long = "as", value_name = "NAME", value_parser = read_name)]
    name: Option<String>,
}

impl Asker {
    /// The given name, or the login name.
    pub(super) fn name(&self) -> Option<String> {
        self.name.clone().or_else(|| read_name(&config::login_name()?).ok())
    }
}

fn read_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    let fits = (1..=LONGEST).contains(&name.len()) && !name.chars().any(char::is_control);
    if fits { Ok(name.to_owned()) } else { Err(format!("write 1 to {LONGEST} bytes on one line")) }
}
