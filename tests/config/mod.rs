//! Claim: a configuration is valid, or all its mistakes are reported at once, each with the place and the way out.

mod environment;
mod example;
mod garbage;
mod mistakes;
mod resolved;

use allclear::config::{self, Config, ConfigErrors};

fn read(text: &str) -> Result<Config, ConfigErrors> {
    read_with(text, &[])
}

fn read_with(text: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigErrors> {
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    config::read("allclear.toml", text, environment)
}
