//! The reason of a failed handshake: a word for counting, and a sentence for people.

use std::error::Error;
use std::io;
use std::sync::Arc;

use rustls::{AlertDescription, CertificateError, InvalidMessage, OtherError};

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HandshakeError {
    #[error("the peer does not use TLS; check that the peer has [cluster.tls]")]
    PlainText,
    #[error("the peer presents no certificate")]
    NoCertificate,
    #[error("the certificate of the peer is signed by an authority that is not in cluster.tls.ca")]
    UnknownAuthority,
    #[error("the certificate of the peer has expired")]
    Expired,
    #[error("the certificate of the peer is not valid yet; check the clocks of both machines")]
    NotYetValid,
    #[error("the certificate of the peer is for another cluster: the certificate names {0}")]
    OtherCluster(String),
    #[error("the certificate of the peer names no replica of allclear, but {0}")]
    Unnamed(String),
    #[error("the certificate of the peer is not for {wanted}: the certificate names {named}")]
    WrongName { wanted: String, named: String },
    #[error(
        "the peer is neither configured here nor a member: its certificate names {0}; add the peer to \
             cluster.replicas"
    )]
    UnknownReplica(String),
    #[error(
        "the peer is not a member of the cluster: its certificate names {0}; if an operator removed the peer, \
             stop the peer or add the peer again"
    )]
    NoMember(String),
    #[error("the peer refuses this replica's certificate{0}")]
    ByPeer(&'static str),
    #[error("the peer did not finish the handshake")]
    Unfinished,
    #[error("the peer has too many connections open")]
    TooMany,
    #[error("{0}")]
    Other(String),
}

impl HandshakeError {
    /// In the order of `place`.
    pub const NAMES: [&'static str; 14] = [
        "plain_text",
        "no_certificate",
        "unknown_authority",
        "expired",
        "not_yet_valid",
        "other_cluster",
        "unnamed",
        "wrong_name",
        "unknown_replica",
        "no_member",
        "by_peer",
        "unfinished",
        "too_many",
        "other",
    ];

    pub fn as_str(&self) -> &'static str {
        Self::NAMES[self.place()]
    }

    pub(super) const fn place(&self) -> usize {
        match self {
            Self::PlainText => 0,
            Self::NoCertificate => 1,
            Self::UnknownAuthority => 2,
            Self::Expired => 3,
            Self::NotYetValid => 4,
            Self::OtherCluster(_) => 5,
            Self::Unnamed(_) => 6,
            Self::WrongName { .. } => 7,
            Self::UnknownReplica(_) => 8,
            Self::NoMember(_) => 9,
            Self::ByPeer(_) => 10,
            Self::Unfinished => 11,
            Self::TooMany => 12,
            Self::Other(_) => 13,
        }
    }

    /// The reason why a handshake, or the first read after the handshake, failed.
    pub(super) fn of(error: &io::Error) -> Self {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => Self::PlainText,
            Some(rustls::Error::NoCertificatesPresented) => Self::NoCertificate,
            Some(rustls::Error::InvalidCertificate(why)) => Self::of_certificate(why),
            Some(rustls::Error::AlertReceived(alert)) => Self::of_alert(*alert),
            Some(other) => Self::Other(format!("no agreement on TLS 1.3: {other}")),
            None if error.kind() == io::ErrorKind::UnexpectedEof => Self::Unfinished,
            None => Self::Other(error.to_string()),
        }
    }

    fn of_certificate(why: &CertificateError) -> Self {
        match why {
            CertificateError::Expired => Self::Expired,
            CertificateError::NotValidYet => Self::NotYetValid,
            CertificateError::UnknownIssuer => Self::UnknownAuthority,
            CertificateError::Other(OtherError(told)) => match told.downcast_ref::<Self>() {
                Some(refusal) => refusal.clone(),
                None => Self::Other(format!("the certificate of the peer is not accepted: {told}")),
            },
            other => Self::Other(format!("the certificate of the peer is not accepted: {other}")),
        }
    }

    fn of_alert(alert: AlertDescription) -> Self {
        match alert {
            AlertDescription::CertificateExpired => Self::ByPeer(": the certificate has expired, or is not valid yet"),
            AlertDescription::UnknownCA => Self::ByPeer(": the peer does not know the authority"),
            AlertDescription::CertificateUnknown => {
                Self::ByPeer(": the peer does not accept the names or the kind of the certificate")
            }
            AlertDescription::CertificateRequired | AlertDescription::BadCertificate => Self::ByPeer(""),
            other => Self::Other(format!("the peer ended the handshake: {other:?}")),
        }
    }

    /// The error for the protocol, whose alert gives the peer a part of the reason.
    pub(super) fn into_tls(self) -> rustls::Error {
        rustls::Error::InvalidCertificate(match self {
            Self::Expired => CertificateError::Expired,
            Self::NotYetValid => CertificateError::NotValidYet,
            Self::UnknownAuthority => CertificateError::UnknownIssuer,
            other => CertificateError::Other(OtherError(Arc::new(other))),
        })
    }
}

impl From<webpki::Error> for HandshakeError {
    fn from(error: webpki::Error) -> Self {
        match error {
            webpki::Error::CertExpired { .. } => Self::Expired,
            webpki::Error::CertNotValidYet { .. } => Self::NotYetValid,
            webpki::Error::UnknownIssuer | webpki::Error::InvalidSignatureForPublicKey => Self::UnknownAuthority,
            other => Self::Other(format!("the certificate of the peer is not accepted: {other}")),
        }
    }
}

/// The innermost cause: the outer errors only say that something failed.
pub fn cause(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [HandshakeError; 14] {
        let text = String::new;
        [
            HandshakeError::PlainText,
            HandshakeError::NoCertificate,
            HandshakeError::UnknownAuthority,
            HandshakeError::Expired,
            HandshakeError::NotYetValid,
            HandshakeError::OtherCluster(text()),
            HandshakeError::Unnamed(text()),
            HandshakeError::WrongName { wanted: text(), named: text() },
            HandshakeError::UnknownReplica(text()),
            HandshakeError::NoMember(text()),
            HandshakeError::ByPeer(""),
            HandshakeError::Unfinished,
            HandshakeError::TooMany,
            HandshakeError::Other(text()),
        ]
    }

    #[test]
    fn every_reason_has_a_word_of_its_own() {
        for (place, refusal) in all().iter().enumerate() {
            assert_eq!((refusal.place(), refusal.as_str()), (place, HandshakeError::NAMES[place]));
        }
        let words: std::collections::BTreeSet<_> = HandshakeError::NAMES.into_iter().collect();
        assert_eq!(words.len(), all().len());
    }

    #[test]
    fn what_goes_through_the_protocol_comes_back_as_it_was() {
        for refusal in all().into_iter().filter(|refusal| !matches!(refusal, HandshakeError::ByPeer(_))) {
            let error = io::Error::new(io::ErrorKind::InvalidData, refusal.clone().into_tls());
            assert_eq!(HandshakeError::of(&error), refusal);
        }
    }
}
