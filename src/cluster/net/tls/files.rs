//! The three PEM files of `[cluster.tls]`, read and checked against each other.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor};
use rustls::sign::CertifiedKey;
use webpki::KeyUsage;

use super::chain;
use super::handshake_error::HandshakeError;
use super::names::{CertificateNames, CertificatePolicy};
use allclear_core::model::time::Timestamp;

const CERT: &str = "cluster.tls.cert";
const KEY: &str = "cluster.tls.key";
const CA: &str = "cluster.tls.ca";

/// A larger file is no certificate.
const MOST_BYTES: u64 = 1 << 20;
const MOST_CERTIFICATES: usize = 64;
/// Write for the group, anything for others.
const TOO_OPEN: u32 = 0o037;

/// The paths of the files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Files {
    /// This replica's certificate, and the intermediate certificates up to the authority's.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// Every trusted authority; two during a replacement.
    pub ca: PathBuf,
}

/// The problem, the file, and the advice.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{key}`: {}: {why}", path.display())]
pub struct Unfit {
    pub key: &'static str,
    pub path: PathBuf,
    pub why: String,
}

/// The content of the files, checked against each other.
#[derive(Clone, Debug)]
pub struct LoadedFiles {
    pub(super) key: Arc<CertifiedKey>,
    pub(super) authorities: Arc<[TrustAnchor<'static>]>,
    pub names: CertificateNames,
    /// `None` for a certificate that never ends.
    pub expires_at: Option<Timestamp>,
}

/// The state of each file, to detect a change: modification time, inode, and length.
pub(super) type Seen = [Option<(i64, i64, u64, u64)>; 3];

impl Files {
    pub(super) fn seen(&self) -> Seen {
        [&self.cert, &self.key, &self.ca].map(|path| {
            let found = std::fs::metadata(path).ok()?;
            Some((found.mtime(), found.mtime_nsec(), found.ino(), found.len()))
        })
    }

    /// Reads the files for a replica of this realm, or for any replica if `replica` is `None`.
    pub fn read(&self, realm: &CertificatePolicy, replica: Option<&str>, now: Timestamp) -> Result<LoadedFiles, Unfit> {
        let certificates = certificates(CERT, &self.cert)?;
        let key = self.key()?;
        let authorities = certificates_of(CA, &self.ca)?;
        let unfit = |why: String| Unfit { key: CERT, path: self.cert.clone(), why };
        let refused = |refusal: HandshakeError| unfit(of_own(&refusal));
        let (own, between) = certificates.split_first().ok_or_else(|| unfit(NO_CERTIFICATE.into()))?;
        for usage in [KeyUsage::server_auth(), KeyUsage::client_auth()] {
            chain::verify(own, between, &authorities, usage, chain::unix_time(now)).map_err(refused)?;
        }
        let names = chain::names(own).map_err(refused)?;
        match replica {
            Some(replica) => realm.speaks_for(&names, replica),
            None => realm.permits(&names),
        }
        .map_err(refused)?;
        let expires_at = chain::expires_at(own).map_err(refused)?;
        let key = CertifiedKey::from_der(certificates, key, &chain::provider()).map_err(|error| Unfit {
            key: KEY,
            path: self.key.clone(),
            why: format!("is not the key of the certificate in {}: {error}", self.cert.display()),
        })?;
        Ok(LoadedFiles { key: Arc::new(key), authorities: authorities.into(), names, expires_at })
    }

    fn key(&self) -> Result<PrivateKeyDer<'static>, Unfit> {
        let unfit = |why: String| Unfit { key: KEY, path: self.key.clone(), why };
        let (bytes, mode) = bytes(&self.key).map_err(&unfit)?;
        if mode & TOO_OPEN != 0 {
            let advice = "restrict the file to the replica's user: chmod 600";
            return Err(unfit(format!(
                "has mode {:04o}, so other users can act as this replica; {advice}",
                mode & 0o7777
            )));
        }
        exchangeable(&self.key).map_err(&unfit)?;
        PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| unfit(format!("holds no private key in PEM: {error}")))
    }
}

const NO_CERTIFICATE: &str = "holds no certificate in PEM";

/// The problem of this replica's own certificate.
fn of_own(refusal: &HandshakeError) -> String {
    match refusal {
        HandshakeError::UnknownAuthority => {
            "is signed by no authority in cluster.tls.ca; add the intermediate certificates to this file".into()
        }
        HandshakeError::Expired => "has expired; renew the certificate".into(),
        HandshakeError::NotYetValid => "is not valid yet; check the clock of this machine".into(),
        HandshakeError::OtherCluster(named) => format!("is for another cluster: the certificate names {named}"),
        HandshakeError::Unnamed(named) => format!(
            "names no replica of allclear, but {named}; the certificate has to name allclear://CLUSTER/replica/NAME \
             as a URI, or the replica as a DNS name with cluster.tls.names = \"dns\""
        ),
        HandshakeError::WrongName { wanted, named } => format!("is not for {wanted}: the certificate names {named}"),
        other => format!("cannot be used: {other}"),
    }
}

fn certificates(key: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, Unfit> {
    let unfit = |why: String| Unfit { key, path: path.to_owned(), why };
    let (bytes, _) = bytes(path).map_err(&unfit)?;
    exchangeable(path).map_err(&unfit)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).take(MOST_CERTIFICATES).collect();
    let found = found.map_err(|error| unfit(format!("{NO_CERTIFICATE}: {error}")))?;
    if found.is_empty() { Err(unfit(NO_CERTIFICATE.into())) } else { Ok(found) }
}

fn certificates_of(key: &'static str, path: &Path) -> Result<Vec<TrustAnchor<'static>>, Unfit> {
    let anchor =
        |certificate: &CertificateDer<'_>| webpki::anchor_from_trusted_cert(certificate).map(|it| it.to_owned());
    let found: Result<Vec<_>, _> = certificates(key, path)?.iter().map(anchor).collect();
    found.map_err(|error| Unfit {
        key,
        path: path.to_owned(),
        why: format!("holds no certificate of an authority: {error}"),
    })
}

/// Fails if another user could replace the file.
fn exchangeable(path: &Path) -> Result<(), String> {
    allclear_files::check_way(path).map_err(|why| format!("cannot be trusted: {why}"))
}

/// The whole file and its mode.
fn bytes(path: &Path) -> Result<(Vec<u8>, u32), String> {
    let read = || -> io::Result<_> {
        let file = File::open(path)?;
        let found = file.metadata()?;
        if found.is_dir() {
            return Err(io::Error::new(io::ErrorKind::IsADirectory, "the path is a directory"));
        }
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok((bytes, found.mode()))
    };
    read().map_err(|error| format!("cannot be read: {error}"))
}
