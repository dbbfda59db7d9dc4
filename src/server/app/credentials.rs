//! Makes the TLS credentials from the configuration.

use std::sync::Arc;

use crate::config::{self, Config};
use crate::net::tls::{CertificatePolicy, Credentials, Files, LoadedFiles, Options, Unfit};
use crate::replica::clock;

/// Credentials of this replica; `None` where plain text is configured.
pub fn of(config: &Config, replica: &str) -> Result<Option<Arc<Credentials>>, Unfit> {
    let Some(tls) = &config.cluster.tls else { return Ok(None) };
    let options = Options {
        files: files(tls),
        realm: realm(config, tls),
        replica: replica.to_owned(),
        max_connection_age: tls.max_connection_age,
        clock: clock::now,
    };
    Credentials::load(options).map(Some)
}

/// Loads the files for an inspection; without the replica's name, for any replica of the cluster.
pub fn look(config: &Config, replica: Option<&str>) -> Option<Result<LoadedFiles, Unfit>> {
    let tls = config.cluster.tls.as_ref()?;
    Some(files(tls).read(&realm(config, tls), replica, clock::now()))
}

fn files(tls: &config::Tls) -> Files {
    Files { cert: tls.cert.clone(), key: tls.key.clone(), ca: tls.ca.clone() }
}

fn realm(config: &Config, tls: &config::Tls) -> CertificatePolicy {
    CertificatePolicy { cluster: config.cluster.name.clone(), by: tls.names }
}
