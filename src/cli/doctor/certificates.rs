//! Whether the certificates of `[cluster.tls]` would be taken by the other replicas, and for how long.

use std::time::Duration;

use super::finding::Finding;
use allclear_server::app::credentials;
use allclear_server::config::Config;
use allclear_server::net::tls::LoadedFiles;
use allclear_server::replica::clock::{self, rfc3339};

const CHECK: &str = "certificate";
/// Time enough to renew a certificate.
const SOON: Duration = Duration::from_hours(14 * 24);

pub(super) fn findings(config: &Config, name: &str) -> Vec<Finding> {
    let name = Some(name).filter(|name| !name.is_empty());
    match credentials::look(config, name) {
        Some(Ok(found)) => vec![in_order(&found)],
        Some(Err(unfit)) => {
            vec![Finding::fail(CHECK, unfit.to_string(), "correct the certificate: see `allclear certs --help`")]
        }
        None if config.cluster.insecure => {
            let what = "replicas connect without TLS: any host that reaches cluster.listen can act as a replica";
            vec![Finding::warn(CHECK, what, "configure [cluster.tls], or let only replicas into this network")]
        }
        None => Vec::new(),
    }
}

fn in_order(found: &LoadedFiles) -> Finding {
    let names = &found.names;
    let Some(end) = found.expires_at else {
        return Finding::ok(CHECK, format!("the certificate names {names}, and never expires"));
    };
    let what = format!("the certificate names {names}, and is valid until {}", rfc3339(end));
    if end.since(clock::now()) < SOON {
        return Finding::warn(CHECK, what, "renew the certificate: a running replica loads new files automatically");
    }
    Finding::ok(CHECK, what)
}
