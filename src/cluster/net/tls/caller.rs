//! The certificate of the connection of a call, for its handler.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::credentials::Credentials;
use super::handshake_error::HandshakeError;
use super::names::CertificateNames;

/// A peer with a certificate of this cluster. The peer may still claim to be another replica of the cluster.
#[derive(Clone)]
pub struct Caller {
    credentials: Arc<Credentials>,
    names: Arc<CertificateNames>,
    from: Arc<str>,
}

impl Caller {
    pub(super) fn new(credentials: Arc<Credentials>, names: CertificateNames, from: &str) -> Self {
        Self { credentials, names: Arc::new(names), from: from.into() }
    }

    /// Refuses a peer whose certificate is not this replica's.
    pub fn require_replica(&self, replica: &str) -> Result<(), HandshakeError> {
        self.credentials.realm().speaks_for(&self.names, replica).map_err(|refusal| self.noted(refusal))
    }

    /// Refuses a peer whose certificate belongs to none of these replicas.
    pub fn require_one_of<'a>(&self, mut known: impl Iterator<Item = &'a str>) -> Result<(), HandshakeError> {
        if known.any(|replica| self.bears(replica)) {
            return Ok(());
        }
        Err(self.noted(HandshakeError::UnknownReplica(self.names.to_string())))
    }

    /// Whether the peer's certificate is this replica's; a mismatch is not a refusal.
    pub fn bears(&self, replica: &str) -> bool {
        self.credentials.realm().speaks_for(&self.names, replica).is_ok()
    }

    /// Refuses a peer that is no member of the cluster.
    pub fn is_no_member(&self) -> HandshakeError {
        self.noted(HandshakeError::NoMember(self.names.to_string()))
    }

    pub(super) fn max_connection_age(&self) -> Duration {
        self.credentials.max_connection_age()
    }

    fn noted(&self, refusal: HandshakeError) -> HandshakeError {
        self.credentials.refused(&self.to_string(), &refusal);
        refusal
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.names, self.from)
    }
}
