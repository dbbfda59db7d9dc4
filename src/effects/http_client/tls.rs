//! TLS settings of a client: trusted certificate authorities and the client's own certificate, read from PEM files.
//! The provider of cryptography is named here, so the process needs no default one.

use core::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

/// The certificate with which a client authenticates itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientCertificate {
    /// PEM file: the client's certificate, then intermediate authorities.
    pub certificate: PathBuf,
    /// PEM file: the private key.
    pub key: PathBuf,
}

/// Trusts the authorities in the file `ca`, and the system's if `system` is set; without both no handshake succeeds.
/// Only root and this user may be able to change the files: with other authorities an attacker would receive the login.
pub(super) fn read(
    system: bool,
    ca: Option<&Path>,
    identity: Option<&ClientCertificate>,
    uid: u32,
) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    if system {
        // An authority that cannot be parsed only affects servers with its certificates.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    }
    if let Some(ca) = ca {
        for certificate in certificates(ca, uid)? {
            roots.add(certificate).map_err(|error| wrong(ca, &error))?;
        }
    }
    if system && roots.is_empty() {
        return Err("this machine has no certificate authorities: install ca-certificates, or name a file".to_owned());
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let builder = builder.with_safe_default_protocol_versions();
    let builder = builder
        .map_err(|error| format!("TLS cannot be set up on this machine: {error}"))?
        .with_root_certificates(roots);
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(ClientCertificate { certificate, key }) => {
            found(key)?;
            allclear_files::check_secret(key, uid).map_err(|why| why.to_string())?;
            let private_key = PrivateKeyDer::from_pem_file(key).map_err(|error| wrong(key, &error))?;
            let config = builder.with_client_auth_cert(certificates(certificate, uid)?, private_key);
            config.map_err(|error| wrong(certificate, &error))?
        }
    };
    // Clients live for one exchange or one hook; sessions to resume would only take memory.
    config.resumption = Resumption::disabled();
    Ok(config)
}

fn certificates(path: &Path, uid: u32) -> Result<Vec<CertificateDer<'static>>, String> {
    found(path)?;
    allclear_files::check_way_for(path, uid).map_err(|why| why.to_string())?;
    let certificates = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match certificates.map_err(|error| wrong(path, &error))? {
        none if none.is_empty() => Err(wrong(path, &"contains no certificate in PEM")),
        certificates => Ok(certificates),
    }
}

fn found(path: &Path) -> Result<(), String> {
    path.metadata().map(drop).map_err(|error| wrong(path, &error))
}

fn wrong(path: &Path, why: &dyn Display) -> String {
    format!("{}: {why}", path.display())
}
