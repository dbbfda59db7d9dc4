//! The configuration, read once at start: source, overrides from the environment, validation.
//!
//! A `Config` is valid by construction, so its users check nothing again. Every error is reported at once, with its
//! place and a remedy. This module reads one file and the environment, and nothing else; no default depends on the
//! machine.

mod cluster;
mod control_plane;
mod env;
mod environment;
mod error;
mod headers;
mod hook;
mod http;
mod listeners;
mod metadata;
mod notify;
mod overrides;
mod policy;
mod printed;
mod reader;
mod role;
mod scalar;
mod secret;
mod source;
mod tls;
mod tracing;
mod validated;
mod window;
mod workload;

use std::io::Read as _;
use std::path::Path;

pub use cluster::{ClusterConfig, PeerAddress, ReplicaConfig};
pub use env::{Env, NOT_SHOWN};
pub use environment::{ENDPOINT, colours_refused, endpoint, environment, log_filter, login_name};
pub use error::{ConfigError, ConfigErrors, Hidden, Location};
pub use hook::{CommandSettings, ConfiguredHook, HookTarget};
pub use http::Http;
pub use listeners::{Operator, Registration, StatusConfig, USUAL_SOCKET};
pub use metadata::Metadata;
pub use role::{ConfiguredRoleSource, RoleConfig};
pub use tls::Tls;
pub use validated::Config;
pub use workload::ConfiguredWorkload;

/// The limit for the bytes of a file; any configuration is shorter.
const LONGEST: u64 = 1 << 20;

/// Reads a file with overrides from the environment, and returns the configuration or all mistakes.
pub fn load(path: &Path, environment: impl IntoIterator<Item = (String, String)>) -> Result<Config, ConfigErrors> {
    let file = path.display().to_string();
    match text_of(path) {
        Ok(text) => {
            let mut config = read(&file, &text, environment)?;
            config.file = std::path::absolute(path).unwrap_or_else(|_| path.into());
            Ok(config)
        }
        Err(message) => Err(ConfigErrors { file, mistakes: vec![ConfigError { place: Location::Whole, message }] }),
    }
}

fn text_of(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes));
    match read {
        Err(error) => Err(format!("cannot be read: {error}")),
        Ok(length) if length as u64 > LONGEST => Err("is longer than 1 MiB, the limit for a configuration".to_owned()),
        Ok(_) => String::from_utf8(bytes).map_err(|_| "is not UTF-8 text".to_owned()),
    }
}

/// Reads as `load`, from the text of a file; the name only appears in mistakes.
pub fn read(
    file: &str,
    text: &str,
    environment: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigErrors> {
    let fail = |findings: error::Findings| ConfigErrors { file: file.to_owned(), mistakes: findings.into_sorted() };
    let findings = error::Findings::default();
    let mut document = source::parse(text, &findings);
    // mistakes after a broken line may only be consequences of the broken line, and would mislead the user
    if !findings.is_empty() {
        return Err(fail(findings));
    }
    let environment: Vec<_> = environment.into_iter().collect();
    let credentials = secret::credentials(&environment);
    overrides::override_with(&mut document, environment, &findings);
    let config = validated::read(&document, reader::Reading { findings: &findings, credentials: &credentials });
    match config {
        Some(config) if findings.is_empty() => Ok(config),
        Some(_) | None => Err(fail(findings)),
    }
}
